"""Reductions, running sums, transposes and broadcasts over fragments, shared memory and tensors."""
import numpy as np

from chance.base import BITS, SPELLING, Kernel, as_type, pick, whole_numbers
from elementwise import FLOATS, number
from run_case import exactly

HELD = ["f32", "f32", "f16", "bf16", "i32", "u32", "i8"]
RULES = {"sum": np.add.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce,
         "abssum": lambda x, axis: np.abs(x).sum(axis=axis), "absmax": lambda x, axis: np.abs(x).max(axis=axis)}
FOLD = {"sum": np.add, "abssum": np.add, "max": np.maximum, "absmax": np.maximum, "min": np.minimum}


def reductions(rng):
    """A tile is reduced along a dimension, perhaps onto what is there, and the vector spread over the tile again."""
    kernel = Kernel()
    kernel.threads = int(pick(rng, [32, 64, 96, 128, 128, 256]))
    m, n = (int(pick(rng, [1, 2, 3, 5, 8, 16, 17, 32, 33, 64, 100, 128])) for _ in range(2))
    while m * n > 40 * kernel.threads:
        m, n = (m + 1) // 2, n
    blocks = int(pick(rng, [1, 2, 3]))
    dtype = pick(rng, HELD)
    a = whole_numbers(rng, dtype, (blocks * m, n), 3)
    kernel.tensor("A", ["M", "N"], dtype)
    kernel.inputs["A"] = a
    kernel.grid = str(blocks)
    place = pick(rng, ["fragment", "fragment", "shared"])
    value = number(dtype, a).astype(np.float64).reshape(blocks, m, n)
    body = ["F = alloc_%s((%d, %d), %s)" % (place, m, n, SPELLING[dtype]), "copy(A[bx * %d, 0], F)" % m]
    form = pick(rng, ["reduce", "reduce", "reduce", "cumsum", "transpose"])
    if form == "reduce":
        reduce_tile(rng, kernel, body, dtype, value, (blocks, m, n))
    elif form == "cumsum":
        cumsum_tile(rng, kernel, body, dtype, value, (blocks, m, n), place)
    else:
        body += ["R = alloc_%s((%d, %d), %s)" % (pick(rng, ["fragment", "shared"]), n, m, SPELLING[dtype]), "transpose(F, R)",
                 "copy(R, T[bx * %d, 0])" % n]
        kernel.tensor("T", ["P", "Q"], dtype)
        kernel.want["T"] = exactly(dtype, value.swapaxes(1, 2).reshape(blocks * n, m))
    kernel.body = body
    return kernel


def reduce_tile(rng, kernel, body, dtype, value, shape):
    blocks, m, n = shape
    op, dim, clear = pick(rng, list(RULES)), int(rng.integers(2)), bool(rng.integers(3))
    length = n if dim == 0 else m
    place = pick(rng, ["fragment", "fragment", "shared"])
    body.append("s = alloc_%s((%d,), %s)" % (place, length, SPELLING[dtype]))
    result = RULES[op](value, axis=1 + dim)
    if not clear:
        start = int(rng.integers(0, 4))
        body.append("fill(s, %d)" % start)
        result = FOLD[op](result, start)
    form = pick(rng, ["reduce_%s(F, s, dim=%d%s)" % (op, dim - (2 if rng.integers(4) == 0 else 0), "" if clear else ", clear=False"),
                      "reduce(F, s, \"%s\", dim=%d%s)" % (op, dim, "" if clear else ", clear=False")])
    body += [form, "copy(s, S[bx, 0:%d])" % length]
    kernel.tensor("S", ["P", "Q"], dtype)
    kernel.want["S"] = wrapped(dtype, result)
    if rng.integers(2):
        index = "j" if dim == 0 else "i"
        body += ["for i, j in Parallel(%d, %d):" % (m, n), "    F[i, j] = F[i, j] - s[%s]" % index, "copy(F, T[bx * %d, 0])" % m]
        kernel.tensor("T", ["M", "N"], dtype)
        held = number(dtype, kernel.want["S"]).astype(np.float64)
        kernel.want["T"] = wrapped(dtype, (value - np.expand_dims(held, 1 + dim)).reshape(blocks * m, n))


def cumsum_tile(rng, kernel, body, dtype, value, shape, place):
    blocks, m, n = shape
    dim, reverse = int(rng.integers(2)), bool(rng.integers(2))
    options = ", dim=%d%s" % (dim, ", reverse=True" if reverse else "")
    if rng.integers(2):
        body.append("cumsum(F%s)" % options)
        source = "F"
    else:
        body += ["G = alloc_%s((%d, %d), %s)" % (place, m, n, SPELLING[dtype]), "cumsum(F, G%s)" % options]
        source = "G"
    body.append("copy(%s, T[bx * %d, 0])" % (source, m))
    kernel.tensor("T", ["M", "N"], dtype)
    flipped = np.flip(value, 1 + dim) if reverse else value
    total = np.cumsum(flipped, axis=1 + dim)
    kernel.want["T"] = wrapped(dtype, (np.flip(total, 1 + dim) if reverse else total).reshape(blocks * m, n))


def wrapped(dtype, values):
    """Whole numbers in a type: integers wrap, floats round."""
    if dtype in FLOATS:
        return exactly(dtype, values)
    whole = np.asarray(values).astype(np.int64) & ((1 << BITS[dtype]) - 1)
    return as_type(("i32", whole.astype(np.uint32).view(np.int32)), dtype)[1] if BITS[dtype] < 32 else exactly(dtype, whole.astype(np.uint32).view(np.int32) if dtype == "i32" else whole)
