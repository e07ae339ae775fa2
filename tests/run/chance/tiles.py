"""Element-wise work, chains of copies and matrix products on random shapes."""
import numpy as np

from chance.base import (BITS, DTYPES, SPELLING, Elements, Kernel, as_type, pick, random_shape, shifted, tiling, whole_numbers)
from elementwise import hold, number
from run_case import exactly


def elements(rng):
    """C = an expression over A and B, read from global memory, a shared tile or a fragment; perhaps through a variable."""
    kernel = Kernel()
    kernel.threads = int(pick(rng, [32, 64, 96, 128, 128, 256, 512, 1024]))
    shape = random_shape(rng, 6000)
    dims, tile, starts, loop = tiling(rng, kernel, shape)
    while np.prod(tile) > 64 * kernel.threads:  # a thread's iterations are unrolled, and may not be too many (E0530)
        kernel.threads *= 2
    body, leaves = [], []
    index = ["i", "j", "k", "l"][:len(shape)]
    spot = "[%s]" % ", ".join("%s + %s" % p for p in zip(starts, index))
    for name in "AB":
        dtype = pick(rng, DTYPES)
        kernel.tensor(name, dims, dtype)
        array = whole_numbers(rng, dtype, shape)
        kernel.inputs[name] = array
        place = pick(rng, ["global", "global", "shifted", "shared", "fragment"])
        if place == "global":
            leaves.append((name + spot, (dtype, array)))
        elif place == "shifted":
            by = [int(rng.integers(-2, 3)) for _ in shape]
            at = ", ".join("%s + %s + %d" % (s, i, d) for s, i, d in zip(starts, index, by))
            leaves.append(("%s[%s]" % (name, at), (dtype, shifted(array, by))))
        else:
            held = pick(rng, DTYPES)
            body.append("%s_tile = alloc_%s(%s, %s)" % (name, place, tuple(tile), SPELLING[held]))
            body.append("copy(%s[%s], %s_tile)" % (name, ", ".join(starts), name))
            leaves.append(("%s_tile[%s]" % (name, ", ".join(index)), as_type((dtype, array), held)))
    result = pick(rng, DTYPES)
    kernel.tensor("C", dims, result)
    maker = Elements(rng, leaves)
    text, value = maker.expression(int(rng.integers(1, 5)))
    inner = []
    if rng.integers(3) == 0:  # a variable that is set again under a condition
        held = pick(rng, DTYPES)
        other, other_value = maker.expression(1)
        condition, flag = maker.compare(1)
        inner += ["v = alloc_var(%s, init=%s)" % (SPELLING[held], text), "if %s:" % condition, "    v = %s" % other]
        value = (held, np.where(flag[1] != 0, as_type(other_value, held)[1], as_type(value, held)[1]))
        text = "v"
    if rng.integers(3) == 0:
        place = pick(rng, ["shared", "fragment"])
        body.append("C_tile = alloc_%s(%s, %s)" % (place, tuple(tile), SPELLING[result]))
        inner.append("C_tile[%s] = %s" % (", ".join(index), text))
        after = ["copy(C_tile, C[%s])" % ", ".join(starts)]
    else:
        inner.append("C%s = %s" % (spot, text))
        after = []
    extents = ", ".join(map(str, tile))
    body += ["for %s in Parallel(%s):" % (", ".join(index), extents)] + ["    " + line for line in inner] + after
    allocations = [line for line in body if "= alloc_" in line and not line.startswith(" ")]
    rest = [line for line in body if line not in allocations]
    kernel.body = allocations + ([loop] + ["    " + line for line in rest] if loop else rest)
    kernel.want["C"] = as_type(value, result)[1]
    return kernel


def moves(rng):
    """A walks through shared tiles and fragments to B, converted on the way; perhaps only a slice of each tile."""
    kernel = Kernel()
    kernel.threads = int(pick(rng, [32, 64, 128, 128, 256, 512, 1024]))
    shape = random_shape(rng)
    dims, tile, starts, loop = tiling(rng, kernel, shape)
    source, target = pick(rng, DTYPES), pick(rng, DTYPES)
    kernel.tensor("A", dims, source)
    kernel.tensor("B", dims, target)
    array = whole_numbers(rng, source, shape)
    kernel.inputs["A"] = array
    value, here = (source, array), "A[%s]" % ", ".join(starts)
    allocations, body, registers = [], [], 0
    for step in range(int(rng.integers(1, 5))):
        space, held = pick(rng, ["shared", "shared", "fragment"]), pick(rng, DTYPES)
        registers += -(-int(np.prod(tile)) // kernel.threads)
        space = space if registers <= 150 else "shared"
        pad = [int(pick(rng, [0, 0, 0, 8, 1])) if space == "shared" else 0 for _ in tile]
        if np.prod([t + p for t, p in zip(tile, pad)]) > 12000:  # four such tiles fit into shared memory
            pad = [0 for _ in tile]
        left = [int(rng.integers(0, p + 1)) for p in pad]
        allocations.append("T%d = alloc_%s(%s, %s)" % (step, space, tuple(t + p for t, p in zip(tile, pad)), SPELLING[held]))
        there = "T%d" % step
        if any(pad):
            there += "[%s]" % ", ".join("%d:%d" % (l, l + t) for l, t in zip(left, tile))
        body.append("copy(%s, %s)" % (here, there))
        value, here = as_type(value, held), there
    body.append("copy(%s, B[%s])" % (here, ", ".join(starts)))
    kernel.body = allocations + ([loop] + ["    " + line for line in body] if loop else body)
    kernel.want["B"] = as_type(value, target)[1]
    return kernel


def products(rng):
    """C = A @ B^T in one of the ways to write it."""
    kernel = Kernel()
    kernel.threads = threads = int(pick(rng, [128, 128, 256, 512]))
    bm, bk = int(pick(rng, [128, 128, 128, 256])), int(pick(rng, [16, 32, 48, 64, 64, 128, 256]))
    bn = int(pick(rng, [16, 32, 48, 64, 96, 128, 160, 256, 320, 512]))
    while (bm + bn) * bk * 2 > 180000:
        bk //= 2 if bk % 32 == 0 else 3
    bn = bn // 2 if bm == 256 and bn > 256 else bn
    m, n = int(rng.integers(1, 2 * bm)), int(rng.integers(1, 2 * bn))
    k = int(rng.integers(1, 4 * bk))
    if rng.integers(2):
        m, n, k = -(-m // 8) * 8, -(-n // 8) * 8, -(-k // 8) * 8
    ab, c = pick(rng, ["bf16", "f16"]), pick(rng, ["f32", "bf16", "f16"])
    batch = int(pick(rng, [0, 0, 3]))
    lead, at = (["Z"], "bz, ") if batch else ([], "")
    kernel.tensor("A", lead + ["M", "K"], ab)
    kernel.tensor("B", lead + ["N", "K"], ab)
    kernel.tensor("C", lead + ["M", "N"], c)
    kernel.grid = "ceildiv(N, %d), ceildiv(M, %d)%s" % (bn, bm, ", Z" if batch else "")
    kernel.blocks = "(bx, by%s)" % (", bz" if batch else "")
    a = whole_numbers(rng, ab, ([batch] if batch else []) + [m, k], 2)
    b = whole_numbers(rng, ab, ([batch] if batch else []) + [n, k], 2)
    kernel.inputs = {"A": a, "B": b}
    after = []  # what is done to the product
    tmem = rng.integers(2) == 0 or bm * bn > 200 * threads
    body = ["A_tile = alloc_shared((%d, %d), %s)" % (bm, bk, SPELLING[ab]), "B_tile = alloc_shared((%d, %d), %s)" % (bn, bk, SPELLING[ab])]
    body.append("acc = alloc_%s((%d, %d), float32)" % ("tmem" if tmem else "fragment", bm, bn))
    barrier = pick(rng, ["", "", "one", "array"])
    body += {"": [], "one": ["done = alloc_barrier(1)"], "array": ["bars = alloc_barrier([1] * 3)"]}[barrier]
    mbar = {"": "", "one": ", mbar=done", "array": ", mbar=bars[%s]" % pick(rng, ["1", "k % 3"])}[barrier]
    clears = rng.integers(2) == 0
    body += ["clear(acc)"] if clears else []
    times = int(pick(rng, [1, 1, 2]))
    rounds = "ceildiv(K, %d)" % bk
    loop = pick(rng, ["for k in serial(%s):" % rounds, "for k in Pipelined(%s, num_stages=3):" % rounds, "for k in range(%s):" % rounds,
                      "for k in unroll(%s):" % rounds])
    guard = rng.integers(4) == 0  # only even rounds, then only odd ones
    lines = ["copy(A[%sby * %d, k * %d], A_tile)" % (at, bm, bk), "copy(B[%sbx * %d, k * %d], B_tile)" % (at, bn, bk)]
    if rng.integers(4) == 0:  # the operand is changed in place
        lines += ["for i, j in Parallel(%d, %d):" % (bm, bk), "    A_tile[i, j] = A_tile[i, j] * 2"]
        after.append(lambda x: 2 * x)
    first = "k == 0" if not guard else "(p == 0) & (k == 0)"
    lines.append("gemm(A_tile, B_tile, acc, transpose_B=True%s%s)" % ("" if clears else ", clear_accum=" + first, mbar))
    lines += ["gemm(A_tile, B_tile, acc, transpose_B=True%s)" % mbar] * (times - 1)
    if guard:
        body += ["for p in serial(2):", "    " + loop, "        if k % 2 == p:"] + ["            " + line for line in lines]
    else:
        body += [loop] + ["    " + line for line in lines]
    after.append(lambda x: times * x)
    there = "C[%sby * %d, bx * %d]" % (at, bm, bn)
    if tmem:
        columns = next(p for p in (bn, bn // 2, bn // 4, 16) if bm * p <= 128 * threads and bn % p == 0)
        body.append("part = alloc_fragment((%d, %d), float32)" % (bm, columns))
        lines = ["copy(acc%s, part)" % ("" if columns == bn else "[:, h * %d:h * %d + %d]" % (columns, columns, columns)),
                 "copy(part, C[%sby * %d, bx * %d%s])" % (at, bm, bn, "" if columns == bn else " + h * %d" % columns)]
        body += lines if columns == bn else ["for h in serial(%d):" % (bn // columns)] + ["    " + line for line in lines]
    else:
        if rng.integers(2) == 0:
            body += ["for i, j in Parallel(%d, %d):" % (bm, bn), "    acc[i, j] = acc[i, j] * 2.0 + 1.0"]
            after.append(lambda x: 2 * x + 1)
        body.append("copy(acc, %s)" % there)
    kernel.body = body

    def result(x, y):
        x = x @ np.swapaxes(y, -1, -2)
        for step in after:
            x = step(x)
        return x
    kernel.want["C"] = hold(c, result(number(ab, a).astype(np.float64), number(ab, b).astype(np.float64)).astype(np.float32))
    kernel.approximate(rng, {"A": ab, "B": ab}, result, c)
    return kernel


# Bits of -2 to 2 in the 8-bit float types, which numpy lacks.
SMALL_FLOATS = {"e4m3": [0xC0, 0xB8, 0x00, 0x38, 0x40], "e5m2": [0xC0, 0xBC, 0x00, 0x3C, 0x40]}
TRIPLES = [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("f32", "f32", "f32"), ("e4m3", "e4m3", "f32"),
           ("e5m2", "e4m3", "f32"), ("e4m3", "e5m2", "f16"), ("i8", "i8", "i32"), ("u8", "i8", "i32"), ("i8", "u8", "i32"), ("u8", "u8", "i32")]


def small_operand(rng, dtype, shape):
    """An operand's bits, and its numbers."""
    numbers = rng.integers(0 if dtype == "u8" else -2, 3, shape)
    if dtype in SMALL_FLOATS:
        return np.array(SMALL_FLOATS[dtype], np.uint8)[numbers + 2], numbers.astype(np.float64)
    return exactly(dtype, numbers), numbers.astype(np.float64)


def forms(rng):
    """C = A B of every kind and storage order that the target has."""
    kernel = Kernel()
    a_type, b_type, c_type = pick(rng, TRIPLES)
    bits = 8 if a_type in SMALL_FLOATS else BITS[a_type]
    atom = 256 // bits
    a_major, b_major = (False, False) if a_type == "f32" else (bool(rng.integers(2)), bool(rng.integers(2)))
    bm, bk = int(pick(rng, [64, 128, 128, 256])), atom * int(pick(rng, [1, 2, 3, 4, 4, 8]))
    step = 8 if bm == 64 and c_type != "i32" and not (bits == 8 and b_major) else 16
    bn = step * int(rng.integers(1, 256 // step + 1))
    if a_major or b_major:  # whole panels of a swizzle
        bn, bk = max(bn // 64 * 64, 64), max(bk // 64 * 64, 64)
    while (bm + bn) * bk * bits > 8 * 180000:
        bk = max(bk // 2 // atom * atom, atom)
    m, n, k = (int(rng.integers(1, 2 * d + 1)) for d in (bm, bn, bk))
    if rng.integers(2):
        m, n, k = (-(-d // 16) * 16 for d in (m, n, k))
    kernel.threads = int(pick(rng, [128, 256]))
    a, x = small_operand(rng, a_type, (k, m) if a_major else (m, k))
    b, y = small_operand(rng, b_type, (k, n) if b_major else (n, k))
    kernel.tensor("A", ["K", "M"] if a_major else ["M", "K"], a_type)
    kernel.tensor("B", ["K", "N"] if b_major else ["N", "K"], b_type)
    kernel.tensor("C", ["M", "N"], c_type)
    kernel.inputs = {"A": a, "B": b}
    result = lambda x, y: (x.T if a_major else x) @ (y if b_major else y.T)  # noqa: E731
    kernel.want["C"] = exactly(c_type, result(x, y))
    if bits == 16:
        kernel.approximate(rng, {"A": a_type, "B": b_type}, result, c_type)
    kernel.grid, kernel.blocks = "ceildiv(N, %d), ceildiv(M, %d)" % (bn, bm), "(bx, by)"
    a_at, b_at = "by * %d" % bm, "bx * %d" % bn
    columns = next(p for p in (bn, bn // 2, bn // 4, step)
                   if bm * p <= 128 * kernel.threads and p and bn % p == 0 and p % step == 0)
    part = "" if columns == bn else "[:, h * %d:h * %d + %d]" % (columns, columns, columns)
    kernel.body = [
        "A_tile = alloc_shared(%s, %s)" % ((bk, bm) if a_major else (bm, bk), SPELLING[a_type]),
        "B_tile = alloc_shared(%s, %s)" % ((bk, bn) if b_major else (bn, bk), SPELLING[b_type]),
        "acc = alloc_tmem((%d, %d), %s)" % (bm, bn, SPELLING[c_type]),
        "part = alloc_fragment((%d, %d), %s)" % (bm, columns, SPELLING[c_type]),
        "for k in %s(ceildiv(K, %d)):" % (pick(rng, ["serial", "Pipelined"]), bk),
        "    copy(A[%s], A_tile)" % ("k * %d, %s" % (bk, a_at) if a_major else "%s, k * %d" % (a_at, bk)),
        "    copy(B[%s], B_tile)" % ("k * %d, %s" % (bk, b_at) if b_major else "%s, k * %d" % (b_at, bk)),
        "    gemm(A_tile, B_tile, acc, transpose_A=%s, transpose_B=%s, clear_accum=k == 0)" % (a_major, not b_major),
        "for h in serial(%d):" % (bn // columns),
        "    copy(acc%s, part)" % part,
        "    copy(part, C[%s, %s + h * %d])" % (a_at, b_at, columns)]
    return kernel
