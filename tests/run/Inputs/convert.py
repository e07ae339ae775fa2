"""convert.py write | read FILE | read16 FILE: float32 arrays for bfloat16 tensors, with ties and infinities."""
import sys

import numpy as np


def to_bf16(x):
    u = np.asarray(x, np.float32).view(np.uint32)
    return ((u + 0x7FFF + (u >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(u):
    return (u.astype(np.uint32) << 16).view(np.float32)


a = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
a[0, :5] = [1 + 2**-8, 1 + 3 * 2**-8, np.inf, -np.inf, 2**-130]
want = from_bf16(to_bf16(a)) * 2  # exact
if sys.argv[1] == "write":
    np.save("a.npy", a)
    np.save("a16.npy", to_bf16(a))
    np.save("want.npy", want)
elif sys.argv[1] == "read":
    b = np.load(sys.argv[2])
    assert b.dtype == np.float32 and (b == want).all()
else:
    b = np.load(sys.argv[2])
    assert b.dtype == np.uint16 and (from_bf16(b) == want).all()
