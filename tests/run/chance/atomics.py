"""Counts, sums and extremes by atomics, on elements and tiles, in global memory and through shared memory."""
import numpy as np

from chance.base import SPELLING, Kernel, pick
from elementwise import number
from run_case import exactly

RULE = {"add": np.add.at, "max": np.maximum.at, "min": np.minimum.at}


def atomics(rng):
    return pick(rng, [scattered, scattered, tiles])(rng)


def scattered(rng):
    """Every value goes to the bin that its index names; some indices lie outside."""
    kernel = Kernel()
    kernel.threads = threads = int(pick(rng, [32, 64, 128, 256]))
    op = pick(rng, ["add", "add", "max", "min"])
    dtype = pick(rng, ["i32", "u32", "f32", "f16", "bf16"] if op == "add" else ["i32", "u32", "f32"])
    n, bins = int(rng.integers(1, 4 * threads)), int(pick(rng, [1, 2, 7, 33, 64, 100]))
    index = rng.integers(-2, bins + 2, n).astype(np.int32)
    values = exactly(dtype, rng.integers(0 if dtype == "u32" else -3, 4, n))
    start = exactly(dtype, rng.integers(0 if dtype == "u32" else -3, 4, bins))
    kernel.tensor("I", ["N"], "i32")
    kernel.tensor("V", ["N"], dtype)
    kernel.tensor("C", ["B"], dtype)
    kernel.inputs = {"I": index, "V": values, "C": start}
    want = number(dtype, start).astype(np.float64)
    inside = (index >= 0) & (index < bins)
    RULE[op](want, index[inside], number(dtype, values).astype(np.float64)[inside])
    kernel.want["C"] = exactly(dtype, want)
    kernel.grid = "ceildiv(N, %d)" % threads
    order = pick(rng, ["", ", \"relaxed\"", ", memory_order=\"acq_rel\"", ", \"seq_cst\"", ", \"release\""])
    local = op == "add" and rng.integers(2) == 0
    target = "S" if local else "C"
    add = "atomic_%s(%s[k], V[t]%s)" % (op, target, order)
    if rng.integers(3) == 0:
        add = "v = atomic_%s(%s[k], V[t]%s, return_prev=True)" % (op, target, order)
    if rng.integers(2):
        body = ["t = bx * %d + get_thread_binding()" % threads, "if t < N:", "    k = I[t]", "    if 0 <= k < %d:" % bins, "        " + add]
    else:
        body = ["for i in Parallel(%d):" % threads, "    t = bx * %d + i" % threads, "    k = if_then_else(t < N, I[t], -1)",
                "    if 0 <= k < %d:" % bins, "        " + add]
    if local:
        flush = pick(rng, [["atomic_add(C[0:%d], S)" % bins], ["for i in Parallel(%d):" % bins, "    atomic_add(C[i], S[i])"],
                           ["F = alloc_fragment((%d,), %s)" % (bins, SPELLING[dtype]), "copy(S, F)", "atomic_add(C[0], F)"]])
        body = ["S = alloc_shared((%d,), %s)" % (bins, SPELLING[dtype]), "clear(S)"] + body + flush
    kernel.body = body
    return kernel


def tiles(rng):
    """The sum of tiles, each added whole by another block."""
    kernel = Kernel()
    kernel.threads = int(pick(rng, [32, 64, 128, 256]))
    dtype, held = pick(rng, ["i32", "u32", "f32", "f16", "bf16"]), pick(rng, ["f32", "i32", "bf16", "f16", "i8"])
    held = held if dtype in ("f32", "f16", "bf16") or held in ("i32", "i8") else dtype
    m, n = int(pick(rng, [1, 4, 16, 33])), int(pick(rng, [4, 8, 20, 33, 64]))
    blocks = int(rng.integers(1, 5))
    rows, columns = int(rng.integers(1, m + 1)), int(rng.integers(1, n + 1))
    low = 0 if dtype == "u32" or held[0] == "u" else -3
    a = exactly(held, rng.integers(low, 4, (blocks * m, n)))
    start = exactly(dtype, rng.integers(low, 4, (rows, columns)))
    kernel.tensor("A", ["M", "N"], held)
    kernel.tensor("C", ["R", "S"], dtype)
    kernel.inputs = {"A": a, "C": start}
    total = number(held, a).astype(np.float64).reshape(blocks, m, n).sum(axis=0)[:rows, :columns]
    kernel.want["C"] = exactly(dtype, number(dtype, start).astype(np.float64) + total)
    kernel.grid = str(blocks)
    space = pick(rng, ["shared", "fragment"])
    kernel.body = ["T = alloc_%s((%d, %d), %s)" % (space, m, n, SPELLING[held]), "copy(A[bx * %d, 0], T)" % m, "atomic_add(C[0, 0], T)"]
    return kernel
