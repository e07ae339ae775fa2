"""Random kernels that are legal, against numpy: element-wise work, chains of copies, matrix products, programs of several statements.

    random_kernels.py TILEC TILE_RUN [--count N] [--first I] [--seed S] [--kind elements|moves|products|forms|programs]
Kernel number i of a kind depends on the seed and i alone; a wrong one is printed with its text. Whole numbers keep every result
exact, so each comparison is for equality.
"""
import argparse
import os
import subprocess
import sys

import numpy as np

import elementwise as types
from elementwise import hold, number
from run_case import CHECKS, ORDERS, SMALL, exactly, untouched

SPELLING = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "u32": "uint32", "i8": "int8", "u8": "uint8"}
DTYPES = list(SPELLING)
SPELLING.update(e4m3="float8_e4m3", e5m2="float8_e5m2")
BITS = {"f32": 32, "f16": 16, "bf16": 16, "i32": 32, "u32": 32, "i8": 8, "u8": 8, "bool": 8}
EXTENTS = [1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 65, 127, 129]


class Kernel:
    """The text of a kernel, its inputs and what it must give."""
    def __init__(self):
        self.parameters, self.grid, self.threads, self.body = [], "1", 128, []
        self.inputs, self.want, self.blocks = {}, {}, "bx"
        self.dims, self.options = {}, []  # names of sizes by tensor; options of tile-run

    def text(self):
        lines = ["@kernel", "def chance(%s):" % ", ".join(self.parameters),
                 "    with Kernel(%s, threads=%d) as %s:" % (self.grid, self.threads, self.blocks)]
        return "\n".join(lines + ["        " + line for line in self.body]) + "\n"

    def fix_sizes(self, rng):
        """Some kernels are compiled for sizes that are known."""
        sizes = {d: n for name, array in {**self.inputs, **self.want}.items() for d, n in zip(self.dims[name], array.shape)}
        level = int(rng.integers(3))
        chosen = [d for d in sizes if level == 2 or (level == 1 and rng.integers(2))]
        self.options = ["-D%s=%d" % (d, sizes[d]) for d in chosen]

    def tensor(self, name, dims, dtype):
        self.dims[name] = dims
        self.parameters.append("%s: Tensor[(%s,), %s]" % (name, ", ".join(map(str, dims)), SPELLING[dtype]))


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def whole_numbers(rng, dtype, shape, reach=9):
    return exactly(dtype, rng.integers(0 if dtype in ("u8", "u32") else -reach, reach + 1, shape))


# ---- element types: the language's rules (docs/language.md), restated

def promote(a, b):
    floats = [d for d in (a, b) if d in types.FLOATS]
    if a == b:
        return a
    if len(floats) == 1:
        return floats[0]
    if BITS[a] != BITS[b] and not (len(floats) == 0 and "bool" in (a, b)):
        return a if BITS[a] > BITS[b] else b
    if len(floats) == 2:
        return "f32"
    if "bool" in (a, b):
        return b if a == "bool" else a
    return a if a[0] == "u" else b


def as_type(value, target):
    source, array = value
    return (target, array if source == target else types.convert(source, target)(array.reshape(-1)).reshape(array.shape))


class Elements:
    """Expressions over the elements of arrays: text, and the value that numpy gives."""
    def __init__(self, rng, leaves):
        self.rng, self.leaves = rng, leaves  # leaves: (text, (dtype, array))

    def leaf(self):
        return pick(self.rng, self.leaves)

    def arithmetic(self, depth):
        (x, a), (y, b) = self.expression(depth - 1), self.expression(depth - 1)
        dtype = promote(a[0], b[0])
        dtype = "i32" if dtype == "bool" else dtype
        op = pick(self.rng, ["+", "-", "*", "min", "max"])
        p, q = as_type(a, dtype)[1], as_type(b, dtype)[1]
        name = {"+": "add", "-": "sub", "*": "mul"}.get(op, op)
        rule = types.float_binary(name, dtype) if dtype in types.FLOATS else types.int_binary(name, dtype)
        value = rule(p.reshape(-1), q.reshape(-1)).reshape(p.shape)
        return ("%s(%s, %s)" % (op, x, y) if op in ("min", "max") else "(%s %s %s)" % (x, op, y)), (dtype, value)

    def constant(self, depth):
        x, (dtype, array) = self.expression(depth - 1)
        if dtype == "bool":
            return x, (dtype, array)
        op, k = pick(self.rng, ["+", "-", "*", "//", "%"]), int(self.rng.integers(1, 8))
        if dtype in types.FLOATS:
            op = pick(self.rng, ["+", "-", "*"])
            value = types.float_binary({"+": "add", "-": "sub", "*": "mul"}[op], dtype)(array, exactly(dtype, np.full(array.shape, k)))
        else:
            name = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "floormod"}[op]
            value = types.int_binary(name, dtype)(array.reshape(-1), np.full(array.size, k)).reshape(array.shape)
        return "(%s %s %d)" % (x, op, k), (dtype, value)

    def cast(self, depth):
        x, value = self.expression(depth - 1)
        dtype = pick(self.rng, DTYPES)
        form = pick(self.rng, ["cast(%s, %s)", "(%s).astype(%s)"])
        return form % (x, SPELLING[dtype]), as_type(value, dtype)

    def compare(self, depth):
        (x, a), (y, b) = self.expression(depth - 1), self.expression(depth - 1)
        dtype = promote(a[0], b[0])
        dtype = "i32" if dtype == "bool" else dtype
        p, q = (number(dtype, as_type(v, dtype)[1]) for v in (a, b))
        op = pick(self.rng, ["<", "<=", ">", ">=", "==", "!="])
        rule = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}[op]
        return "(%s %s %s)" % (x, op, y), ("bool", rule(p, q).astype(np.uint8))

    def choose(self, depth):
        (c, flag), (x, a), (y, b) = self.compare(depth - 1), self.expression(depth - 1), self.expression(depth - 1)
        dtype = promote(a[0], b[0])
        value = np.where(flag[1] != 0, as_type(a, dtype)[1], as_type(b, dtype)[1])
        form = pick(self.rng, ["if_then_else(%s, %s, %s)" % (c, x, y), "(%s if %s else %s)" % (x, c, y)])
        return form, (dtype, value)

    def negated(self, depth):
        x, (dtype, array) = self.expression(depth - 1)
        if dtype == "bool":
            return x, (dtype, array)
        if dtype in types.FLOATS:
            return "(-%s)" % x, (dtype, hold(dtype, -number(dtype, array)))
        return "(-%s)" % x, (dtype, types.wrap(dtype, [-int(v) for v in array.reshape(-1)]).reshape(array.shape))

    def expression(self, depth):
        if depth <= 0:
            return self.leaf()
        rules = [self.arithmetic, self.arithmetic, self.constant, self.cast, self.compare, self.choose, self.negated]
        return pick(self.rng, rules)(depth)


def shifted(array, at):
    """What a read of array[index + at] gives at every index: zeros outside."""
    out = np.zeros_like(array)
    source = tuple(slice(max(s, 0), max(min(n, n + s), 0)) for s, n in zip(at, array.shape))
    target = tuple(slice(max(-s, 0), max(min(n, n - s), 0)) for s, n in zip(at, array.shape))
    if all(s.start < s.stop for s in source):
        out[target] = array[source]
    return out


def tiling(rng, kernel, shape):
    """Tile sizes, and the grid that covers `shape`; the first dimension of four is a loop's. Gives (tile, starts, loop)."""
    rank = len(shape)
    dims = ["MNKL"[i] for i in range(rank)]
    tile = [int(pick(rng, [1, 2, 3, 4, 8, 16, 20, 32, 33, 64])) for _ in shape]
    while np.prod(tile) > 4096:
        tile[int(np.argmax(tile))] //= 2
    gridded = list(range(rank))[-3:]
    names = {d: "b" + "xyz"[rank - 1 - d] for d in gridded}
    kernel.grid = ", ".join("ceildiv(%s, %d)" % (dims[d], tile[d]) for d in reversed(gridded))
    kernel.blocks = names[rank - 1] if rank == 1 else "(%s)" % ", ".join(names[d] for d in reversed(gridded))
    starts = ["%s * %d" % (names[d], tile[d]) if d in names else "o * %d" % tile[d] for d in range(rank)]
    loop = "for o in %s(ceildiv(M, %d)):" % (pick(rng, ["serial", "range"]), tile[0]) if rank == 4 else None
    return dims, tile, starts, loop


def random_shape(rng, limit=30000):
    rank = pick(rng, [1, 2, 2, 2, 3, 3, 4])
    shape = [int(pick(rng, EXTENTS if rank < 4 else EXTENTS[:9])) for _ in range(rank)]
    while np.prod(shape) > limit:
        shape[int(np.argmax(shape))] //= 2
    return shape


def elements(rng):
    """C = an expression over A and B, read from global memory, a shared tile or a fragment; perhaps through a variable."""
    kernel = Kernel()
    kernel.threads = int(pick(rng, [32, 64, 96, 128, 128, 256, 512, 1024]))
    shape = random_shape(rng, 6000)
    dims, tile, starts, loop = tiling(rng, kernel, shape)
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
    want = number(ab, a).astype(np.float64) @ np.swapaxes(number(ab, b).astype(np.float64), -1, -2)
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
        want = 2 * want
    first = "k == 0" if not guard else "(p == 0) & (k == 0)"
    lines.append("gemm(A_tile, B_tile, acc, transpose_B=True%s%s)" % ("" if clears else ", clear_accum=" + first, mbar))
    lines += ["gemm(A_tile, B_tile, acc, transpose_B=True%s)" % mbar] * (times - 1)
    if guard:
        body += ["for p in serial(2):", "    " + loop, "        if k % 2 == p:"] + ["            " + line for line in lines]
    else:
        body += [loop] + ["    " + line for line in lines]
    want = want * times
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
            want = want * 2 + 1
        body.append("copy(acc, %s)" % there)
    kernel.body = body
    kernel.want["C"] = hold(c, want.astype(np.float32))
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
    kernel.want["C"] = exactly(c_type, (x.T if a_major else x) @ (y if b_major else y.T))
    kernel.grid, kernel.blocks = "ceildiv(N, %d), ceildiv(M, %d)" % (bn, bm), "(bx, by)"
    a_at, b_at = "by * %d" % bm, "bx * %d" % bn
    columns = next(p for p in (bn, bn // 2, bn // 4, step) if bm * p <= 128 * kernel.threads and p and bn % p == 0 and p % step == 0)
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


class Buffer:
    def __init__(self, name, space, dtype):
        self.name, self.space, self.dtype = name, space, dtype


class Program:
    """Statements over tiles of one shape, and what they leave in each tile of every block."""
    def __init__(self, rng, kernel, blocks):
        self.rng, self.blocks = rng, blocks
        kernel.threads = int(pick(rng, [32, 64, 128, 128, 128, 256, 512]))
        self.m, self.n = pick(rng, [(128, 64), (128, 64), (128, 32), (64, 64), (16, 16), (33, 7), (1, 64)])
        small_block = self.m * self.n // kernel.threads > 64
        spaces = ["shared", "shared", "fragment"] if not small_block else ["shared"]
        if kernel.threads % 128 == 0 and self.m == 128:
            spaces += ["tmem", "fragment"]
        self.buffers, fragments = [], 0
        if (self.m, self.n) == (128, 64) and "tmem" in spaces:
            self.buffers = [Buffer("x", "shared", pick(rng, ["bf16", "f16"])), Buffer("y", "tmem", "f32")]
        for i in range(len(self.buffers), len(self.buffers) + int(rng.integers(2, 5))):
            space = pick(rng, spaces)
            fragments += space == "fragment"
            space = "shared" if space == "fragment" and fragments * self.m * self.n > 100 * kernel.threads else space
            dtype = "f32" if space == "tmem" else pick(rng, ["f32", "bf16", "bf16", "f16", "i32", "i8"])
            self.buffers.append(Buffer("xyzuvw"[i], space, dtype))

    def start(self, kernel):
        """Each tile holds its part of an input; gives the lines and the state."""
        lines, state = [], []
        for b in self.buffers:
            lines.append("%s = alloc_%s((%d, %d), %s)" % (b.name, b.space, self.m, self.n, SPELLING[b.dtype]))
            name = b.name.upper()
            kernel.tensor(name, ["M", "N"], b.dtype)
            kernel.inputs[name] = whole_numbers(self.rng, b.dtype, [self.m * self.blocks, self.n], 4)
            state.append(kernel.inputs[name].reshape(self.blocks, self.m, self.n))
        place = "%s[bx * %d, 0]"
        lines += ["copy(%s, %s)" % (place % (b.name.upper(), self.m), b.name) for b in self.buffers]
        return lines, state

    def element(self, state, avoid):
        """An element of some tile at the loop's place or, in shared memory, at another one."""
        which = [i for i, b in enumerate(self.buffers) if b.space != "tmem"]
        if not which:
            return "3", ("i32", np.full(state[0].shape, 3, np.int32))
        i = pick(self.rng, which)
        b, value = self.buffers[i], state[i]
        kind = self.rng.integers(4) if b.space == "shared" and i != avoid else 3
        if kind == 0:
            by = int(self.rng.integers(1, self.m + 1))
            return "%s[(i + %d) %% %d, j]" % (b.name, by, self.m), (b.dtype, np.roll(value, -by, axis=1))
        if kind == 1:
            return "%s[%d - i, j]" % (b.name, self.m - 1), (b.dtype, value[:, ::-1])
        if kind == 2 and self.m == self.n:
            return "%s[j, i]" % b.name, (b.dtype, value.swapaxes(1, 2))
        return "%s[i, j]" % b.name, (b.dtype, value)

    def statement(self, state, depth):
        """Lines, and a function that takes the state (and the rounds of the loops around) to the next."""
        kinds = ["copy", "copy", "fill", "elements", "elements", "elements", "part"]
        kinds += ["loop", "branch"] if depth < 2 else []
        kinds += ["gemm"] * 4 if (self.m, self.n) == (128, 64) else []
        return getattr(self, pick(self.rng, kinds))(state, depth)

    def copy(self, state, depth):
        x, y = (int(self.rng.integers(len(self.buffers))) for _ in range(2))
        if x == y:
            return self.fill(state, depth)
        source, target = self.buffers[x], self.buffers[y]
        step = lambda s, r: replaced(s, y, as_type((source.dtype, s[x]), target.dtype)[1])
        return ["copy(%s, %s)" % (source.name, target.name)], step

    def fill(self, state, depth):
        y, value = int(self.rng.integers(len(self.buffers))), int(self.rng.integers(-3, 4))
        target = self.buffers[y]
        step = lambda s, r: replaced(s, y, exactly(target.dtype, np.full(s[y].shape, value)))
        return ["fill(%s, %d)" % (target.name, value)], step

    def part(self, state, depth):
        """A copy of some rows, between shared tiles."""
        which = [i for i, b in enumerate(self.buffers) if b.space == "shared"]
        if len(which) < 2 or self.m < 4:
            return self.copy(state, depth)
        x, y = (int(i) for i in self.rng.permutation(which)[:2])
        rows = int(self.rng.integers(1, self.m // 2 + 1))
        a, b = (int(self.rng.integers(0, self.m - rows + 1)) for _ in range(2))
        source, target = self.buffers[x], self.buffers[y]

        def step(s, r):
            value = s[y].copy()
            value[:, b:b + rows] = as_type((source.dtype, s[x]), target.dtype)[1][:, a:a + rows]
            return replaced(s, y, value)
        return ["copy(%s[%d:%d, :], %s[%d:%d, :])" % (source.name, a, a + rows, target.name, b, b + rows)], step

    def elements(self, state, depth):
        which = [i for i, b in enumerate(self.buffers) if b.space != "tmem"]
        if not which:
            return self.copy(state, depth)
        y = pick(self.rng, which)
        target, seed = self.buffers[y], int(self.rng.integers(1 << 30))

        def make(s):  # the same choices for every state
            outer, self.rng = self.rng, np.random.default_rng(seed)
            leaves = [self.element(s, y) for _ in range(2)]
            text, value = Elements(self.rng, leaves).expression(int(self.rng.integers(0, 3)))
            self.rng = outer
            value = as_type(value, target.dtype)[1]
            low, high = (0, 8) if target.dtype[0] == "u" else (-8, 8)
            bound = number(target.dtype, value)
            return "max(min(cast(%s, %s), %d), %d)" % (text, SPELLING[target.dtype], high, low), exactly(
                target.dtype, np.clip(np.where(np.isnan(bound), 8, bound), low, high))
        text, _ = make(state)
        lines = ["for i, j in Parallel(%d, %d):" % (self.m, self.n), "    %s[i, j] = %s" % (target.name, text)]
        return lines, lambda s, r: replaced(s, y, make(s)[1])

    def gemm(self, state, depth):
        operands = [i for i, b in enumerate(self.buffers) if b.space == "shared" and b.dtype in ("bf16", "f16")]
        sums = [i for i, b in enumerate(self.buffers) if b.space == "tmem"]
        if not operands or not sums:
            return self.elements(state, depth)
        x, c = pick(self.rng, operands), pick(self.rng, sums)
        y = pick(self.rng, [i for i in operands if self.buffers[i].dtype == self.buffers[x].dtype])
        a, b, acc = self.buffers[x], self.buffers[y], self.buffers[c]
        clear, start = bool(self.rng.integers(2)), int(pick(self.rng, [0, 8, 64]))
        limit = ["for i, j in Parallel(128, 64):", "    %s[i, j] = max(min(%s[i, j], 4), -4)"]
        lines = [line.replace("%s", o.name) for o in ([a, b] if x != y else [a]) for line in limit]
        lines.append("gemm(%s, %s[%d:%d, :], %s, transpose_B=True%s)" % (
            a.name, b.name, start, start + 64, acc.name, ", clear_accum=True" if clear else ""))

        def step(s, r):
            s = list(s)
            for i in {x, y}:
                values = number(self.buffers[i].dtype, s[i])
                s[i] = exactly(self.buffers[i].dtype, np.clip(values, -4, 4))
            p, q = (number(self.buffers[i].dtype, s[i]).astype(np.float64) for i in (x, y))
            total = p @ q[:, start:start + 64].swapaxes(1, 2) + (0 if clear else s[c].astype(np.float64))
            s[c] = total.astype(np.float32)
            return s
        return lines, step

    def block(self, state, depth):
        steps, lines = [], []
        for _ in range(int(self.rng.integers(1, 4))):
            more, step = self.statement(state, depth)
            lines += ["    " + line for line in more]
            steps.append(step)

        def run(s, r):
            for step in steps:
                s = step(s, r)
            return s
        return lines, run

    def loop(self, state, depth):
        rounds, name = int(self.rng.integers(0, 4)), "kq"[depth]
        lines, run = self.block(state, depth + 1)
        head = pick(self.rng, ["serial(%d)", "range(%d)", "serial(M // %d * %%d)" % (self.m * self.blocks), "Pipelined(%d, num_stages=2)"])

        def step(s, r):
            for k in range(rounds):
                s = run(s, r + [k])
            return s
        return ["for %s in %s:" % (name, head % rounds)] + lines, step

    def branch(self, state, depth):
        first, run = self.block(state, depth + 1)
        second, otherwise = self.block(state, depth + 1)
        two = self.rng.integers(2) == 0
        value = int(self.rng.integers(2))

        def step(s, r):
            yes, no = run(s, r), otherwise(s, r) if two else s
            taken = (np.arange(self.blocks) == value)[:, None, None]
            return [np.where(taken, a, b) for a, b in zip(yes, no)]
        return ["if bx == %d:" % value] + first + (["else:"] + second if two else []), step


def replaced(state, i, value):
    return state[:i] + [value] + state[i + 1:]


def programs(rng):
    """Statements, loops and branches over a few tiles in all spaces; every tile is written out at the end."""
    kernel, blocks = Kernel(), 2
    program = Program(rng, kernel, blocks)
    body, state = program.start(kernel)
    for _ in range(int(rng.integers(2, 7))):
        lines, step = program.statement(state, 0)
        body += lines
        state = step(state, [])
    for b, value in zip(program.buffers, state):
        out = "OUT_" + b.name.upper()
        kernel.tensor(out, ["M", "N"], b.dtype)
        kernel.want[out] = value.reshape(program.m * blocks, program.n)
        body.append("copy(%s, %s[bx * %d, 0])" % (b.name, out, program.m))
    kernel.grid, kernel.body = str(blocks), body
    return kernel


KINDS = {"elements": elements, "moves": moves, "products": products, "forms": forms, "programs": programs}


def run(tilec, tile_run, kernel, order):
    with open("chance.tile", "w") as file:
        file.write(kernel.text())
    command = [tile_run, "chance.tile", "--device", "emu", "--check", CHECKS, "--order", order] + kernel.options
    for name, array in kernel.inputs.items():
        np.save("in_%s.npy" % name, array)
        command += ["--in", "%s=in_%s.npy" % (name, name)]
    for name, array in kernel.want.items():
        start = untouched(next(d for d in DTYPES if types.NUMPY[d] == array.dtype), array.shape)
        np.save("in_%s.npy" % name, start)
        command += ["--in", "%s=in_%s.npy" % (name, name), "--out", "%s=out_%s.npy" % (name, name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return "tile-run ends with %d: %s" % (done.returncode, done.stderr.strip()[-2000:])
    return "; ".join(filter(None, (different(name, array) for name, array in kernel.want.items())))


def different(name, want):
    dtype = next(d for d in DTYPES if types.NUMPY[d] == want.dtype)
    got = np.load("out_%s.npy" % name).view(want.dtype)
    x, y = number(dtype, got), number(dtype, want)
    bad = np.argwhere(~((x == y) | (np.isnan(x) & np.isnan(y)) if dtype in types.FLOATS else x == y))
    if len(bad) == 0:
        return None
    at = tuple(int(i) for i in bad[0])
    return "%d of %d of %s wrong; first at %s: %s, want %s" % (len(bad), x.size, name, at, x[at], y[at])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilec")
    parser.add_argument("tile_run")
    parser.add_argument("--count", type=int, default=3 if SMALL else 8, help="kernels of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS))
    options = parser.parse_args()
    wrong = 0
    kinds = [options.kind] if options.kind else list(KINDS)
    for kind in kinds:
        for i in range(options.first, options.first + options.count):
            with np.errstate(all="ignore"):
                kernel = KINDS[kind](np.random.default_rng([options.seed, i]))
                kernel.fix_sizes(np.random.default_rng([options.seed, i, 1]))
            problem = run(options.tilec, options.tile_run, kernel, ORDERS[i % len(ORDERS)])
            if problem:
                wrong += 1
                shapes = ", ".join("%s%s" % (n, list(a.shape)) for n, a in kernel.inputs.items())
                print("%s %d (--seed %d; %s; %s): %s\n%s" % (kind, i, options.seed, shapes, " ".join(kernel.options), problem, kernel.text()),
                      flush=True)
    print("%d kernels, %d wrong" % (options.count * len(kinds), wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
