"""Arrays for tile-run-arrays.test: x, 2.5 x in two types, and the same with two mistakes; `read` checks the result."""
import sys

import numpy as np

if sys.argv[1] == "write":
    x = np.random.default_rng(1).standard_normal((5, 70)).astype(np.float32)
    want = x * np.float32(2.5)
    np.save("x.npy", x)
    np.save("want.npy", want)
    np.save("want64.npy", want.astype(np.float64))
    want[2, 3] += 1
    want[4, 1] = np.nan
    np.save("wrong.npy", want)
else:
    got = np.load("y.npy")
    assert got.dtype == np.float32 and got.shape == (5, 70)
    assert np.array_equal(got, np.load("want.npy"))
