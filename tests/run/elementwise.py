"""Element-wise kernels in every type, against numpy: arithmetic, comparisons, conversions, functions.

Writes one tile-IR module with a kernel a case, compiles it with tilec and runs each kernel with tile-emu.
    elementwise.py TILEC TILE_EMU [NAME-PREFIX…]
Integers are compared exactly, floats exactly for + - * / and conversions, and within stated errors for functions.
"""
import os
import subprocess
import sys

import numpy as np

FACTS = "typed, selected, laid_out, fragments, tmem_placed, synced, smem_placed"
BLOCK = 256
FLOATS = ["f32", "f16", "bf16"]
FP8 = ["e4m3", "e5m2"]  # moved and converted only
INTS = ["i32", "u32", "i8", "u8"]
NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i32": np.int32, "u32": np.uint32, "i8": np.int8,
         "u8": np.uint8, "bool": np.uint8, "e4m3": np.uint8, "e5m2": np.uint8}


# ---- fp8 and bf16 are held as their bits

def fp8_values(dtype):
    """The number of each of the 256 codes (OCP 8-bit floating point): e4m3 has no infinities, e5m2 is the top of f16."""
    code = np.arange(256)
    if dtype == "e5m2":
        return (code.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    exponent, fraction = code >> 3 & 15, code & 7
    value = np.where(exponent == 0, fraction / 8 * 2.0 ** -6, (1 + fraction / 8) * 2.0 ** (exponent - 7))
    value[(code & 127) == 127] = np.nan
    return np.where(code & 128, -value, value).astype(np.float32)


def to_fp8(dtype, values):
    """Rounds to the nearest, ties to even; beyond the largest number it is the largest number."""
    table = fp8_values(dtype)[:128]
    finite = table[np.isfinite(table)].astype(np.float64)
    size = np.abs(np.asarray(values, np.float64))
    above = np.clip(np.searchsorted(finite, size), 1, len(finite) - 1)
    down, up = size - finite[above - 1], finite[above] - size
    even = np.where((above - 1) % 2 == 0, above - 1, above)
    code = np.where(down < up, above - 1, np.where(up < down, above, even))
    code = np.where(np.isnan(size), 127, code) | np.where(np.signbit(values) & ~np.isnan(size), 128, 0)
    return code.astype(np.uint8)


def to_bf16(values):
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), rounded)


def number(dtype, array):
    """The numbers an array holds, as f32 (floats) or the array itself."""
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    if dtype in ("e4m3", "e5m2"):
        return fp8_values(dtype)[array]
    return array.astype(np.float32) if dtype == "f16" else array


def hold(dtype, values):
    """f32 results rounded to a float type."""
    if dtype == "bf16":
        return to_bf16(values)
    if dtype in ("e4m3", "e5m2"):
        return to_fp8(dtype, values)
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float32).astype(NUMPY[dtype])


# ---- inputs

def float_inputs(dtype, seed):
    rng = np.random.default_rng(seed)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 7.0, 100.25, -100.75, 65504.0, -65504.0, 1e-3, 6e-8, 1e-40,
               np.inf, -np.inf, np.nan, 127.5, 128.0, -128.5, 255.9, 256.0, 2147483520.0, 2147483648.0, -2147483648.0, 4e9, 5e9,
               3e38]
    values = np.concatenate([special, rng.normal(0, 10, 400), rng.normal(0, 1000, 100)]).astype(np.float32)
    rng.shuffle(values)
    return hold(dtype, values)


def int_inputs(dtype, seed):
    rng = np.random.default_rng(seed)
    info = np.iinfo(NUMPY[dtype])
    special = [v for v in (info.min, info.min + 1, -7, -6, -3, -2, -1, 0, 1, 2, 3, 6, 7, 64, 100, info.max - 1, info.max)
               if info.min <= v <= info.max]
    pairs = np.array(special * len(special)) if seed % 2 else np.repeat(special, len(special))
    return np.concatenate([pairs, rng.integers(info.min, info.max, 300, endpoint=True)]).astype(NUMPY[dtype])


def inputs(dtype, seed):
    if dtype == "bool":
        return np.random.default_rng(seed).integers(0, 2, 700).astype(np.uint8)
    if dtype in FP8:
        return np.resize(np.random.default_rng(seed).permutation(256), 700).astype(np.uint8)
    return float_inputs(dtype, seed) if dtype in FLOATS else int_inputs(dtype, seed)


# ---- cases

class Case:
    def __init__(self, name, dtypes, result, body, reference, tolerance=None, arrays=None):
        self.name, self.dtypes, self.result, self.body = name, dtypes, result, body
        self.reference, self.tolerance = reference, tolerance
        arrays = arrays or [inputs(d, 2 * i + 1 + (i > 0)) for i, d in enumerate(dtypes)]
        count = min(len(a) for a in arrays)
        self.arrays = [a[:count] for a in arrays]
        self.count = count

    def text(self):
        names = "ab"[:len(self.dtypes)]
        lines = ["kernel @%s threads(128) facts(%s) {" % (self.name, FACTS), "launch:", '  %n = size "n" : i32']
        for name, dtype in zip(names, self.dtypes):
            lines.append('  %%%s = tensor "%s" %%n : %s[?] global' % (name, name, dtype))
        lines.append('  %%c = tensor "c" %%n : %s[?] global' % self.result)
        lines += ["  %%block = const {bits = %d} : i32" % BLOCK, "  %g = ceildiv %n, %block : i32", "  grid %g", "body:",
                  "  %bx = block_idx : i32", "  %base = mul %bx, %block : i32", "  %i = parallel %block : i32 {",
                  "    %p = add %base, %i : i32"]
        for name, dtype in zip(names, self.dtypes):
            lines.append("    %%x%s = load %%%s, %%p : %s" % (name, name, dtype))
        lines += ["    " + line for line in self.body]
        lines += ["    store %c, %r, %p", "  }", "}"]
        return "\n".join(lines) + "\n"

    def check(self, got):
        with np.errstate(all="ignore"):
            want = self.reference(*self.arrays)
        a, b = number(self.result, got), number(self.result, want)
        if self.result in FLOATS + FP8:
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            if self.tolerance:
                relative, absolute = self.tolerance
                with np.errstate(invalid="ignore"):
                    error = np.abs(a.astype(np.float64) - b)
                same |= error <= absolute + relative * np.abs(b.astype(np.float64))
        else:
            same = a == b
        bad = np.flatnonzero(~same)
        if len(bad) == 0:
            return None
        i = bad[0]
        of = ", ".join(str(number(d, x)[i]) for d, x in zip(self.dtypes, self.arrays))
        return "%d of %d wrong; first at %d: (%s) gives %s, want %s" % (len(bad), self.count, i, of, a[i], b[i])


def binary(op, dtype):
    return ["%%r = %s %%xa, %%xb : %s" % (op, dtype)]


def float_binary(op, dtype):
    functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.fmin, "max": np.fmax}
    # f16 and bf16 round the result only
    return lambda a, b: hold(dtype, functions[op](number(dtype, a), number(dtype, b)))


def wrap(dtype, values):
    bits = 8 * np.dtype(NUMPY[dtype]).itemsize
    low = [int(v) & (1 << bits) - 1 for v in values]
    return np.array(low, np.uint64).astype("u%d" % (bits // 8)).view(NUMPY[dtype])


def truncated(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def shifted(op, dtype, x, y):
    bits = 8 * np.dtype(NUMPY[dtype]).itemsize
    amount = y & (1 << bits) - 1
    if op == "shl":
        return x << amount if amount < bits else 0
    return x >> min(amount, bits)  # floors to -1 or 0


def int_binary(op, dtype):
    functions = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "floordiv": lambda x, y: x // y,
                 "floormod": lambda x, y: x % y, "truncdiv": truncated, "truncmod": lambda x, y: x - truncated(x, y) * y,
                 "ceildiv": lambda x, y: -(-x // y), "min": min, "max": max, "and": lambda x, y: x & y,
                 "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y, "shl": lambda x, y: shifted(op, dtype, x, y),
                 "shr": lambda x, y: shifted(op, dtype, x, y)}
    return lambda a, b: wrap(dtype, [functions[op](int(x), int(y)) for x, y in zip(a, b)])


def nonzero(arrays):
    a, b = arrays
    keep = b != 0
    return [a[keep], b[keep]]


def arithmetic():
    for dtype in FLOATS:
        for op in ("add", "sub", "mul", "div", "min", "max"):
            yield Case("%s_%s" % (op, dtype), [dtype] * 2, dtype, binary(op, dtype), float_binary(op, dtype))
    for dtype in INTS:
        for op in ("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "ceildiv", "min", "max", "and", "or",
                   "xor", "shl", "shr"):
            arrays = [int_inputs(dtype, 1), int_inputs(dtype, 2)]
            if "div" in op or "mod" in op:
                arrays = nonzero(arrays)
            yield Case("%s_%s" % (op, dtype), [dtype] * 2, dtype, binary(op, dtype), int_binary(op, dtype), arrays=arrays)
    for op in ("floordiv", "floormod", "ceildiv", "truncdiv", "truncmod"):
        for constant in (1, 3, 8, 128, -1, -3, -8):
            body = ["%%k = const {bits = %d} : i32" % constant, "%%r = %s %%xa, %%k : i32" % op]
            reference = lambda a, op=op, k=constant: int_binary(op, "i32")(a, np.full(len(a), k))
            yield Case("%s_by_%s" % (op, str(constant).replace("-", "m")), ["i32"], "i32", body, reference)


def comparisons():
    functions = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
    for dtype in FLOATS + INTS:
        for op, function in functions.items():
            reference = lambda a, b, d=dtype, f=function: f(number(d, a), number(d, b)).astype(np.uint8)
            yield Case("%s_%s" % (op, dtype), [dtype] * 2, "bool", ["%%r = %s %%xa, %%xb : bool" % op], reference)
    for op, function in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        yield Case(op + "_bool", ["bool"] * 2, "bool", ["%%r = %s %%xa, %%xb : bool" % op], function)
    yield Case("not_bool", ["bool"], "bool", ["%r = not %xa : bool"], lambda a: 1 - a)
    yield Case("select_f32", ["bool", "f32"], "f32", ["%y = neg %xb : f32", "%r = select %xa, %xb, %y : f32"],
               lambda a, b: np.where(a, b, -b))


def convert(source, target):
    def reference(a):
        values = number(source, a)
        if target == "bool":
            return (values != 0).astype(np.uint8)
        if source in FLOATS + FP8 and target in FLOATS + FP8:
            return hold(target, values)
        if target in FP8:
            return hold(target, values.astype(np.float32))
        if source in FLOATS + FP8:
            info = np.iinfo(NUMPY[target])
            clean = np.where(np.isnan(values), 0, values).astype(np.float64)
            return np.clip(np.trunc(clean), info.min, info.max).astype(NUMPY[target])
        if target in FLOATS:
            return round_integers(target, values)
        return wrap(target, values)
    return reference


def round_integers(target, values):
    """One rounding, to nearest even, from the exact integer."""
    if target == "f16":
        with np.errstate(over="ignore"):
            return values.astype(np.float64).astype(np.float16)
    if target == "f32":
        return values.astype(np.float64).astype(np.float32)
    result = []
    for v in values:
        v = int(v)
        size, sign = abs(v), -1 if v < 0 else 1
        shift = max(size.bit_length() - 8, 0)
        kept, rest = size >> shift, size & (1 << shift) - 1
        half = 1 << shift >> 1
        kept += shift > 0 and (rest > half or (rest == half and kept & 1))
        result.append(sign * float(kept << shift))
    return to_bf16(np.array(result, np.float32))


def conversions():
    types = FLOATS + INTS + ["bool"] + FP8
    for source in types:
        for target in types:
            if source == target:
                continue
            arrays = None
            if source == "i32":
                arrays = [np.concatenate([int_inputs("i32", 1), [259, 33000, -259, 2**24 + 1, 2**25 + 3]]).astype(np.int32)]
            yield Case("cast_%s_%s" % (source, target), [source], target, ["%%r = cast %%xa : %s" % target],
                       convert(source, target), arrays=arrays)


def functions():
    ulp = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
    # function: (reference in double, relative error, absolute error, inputs)
    wide, positive, small = (-80, 80), (1e-6, 1e6), (-8, 8)
    table = {"exp": (np.exp, 2**-20.5, 0, wide), "exp2": (np.exp2, 2**-21.5, 0, wide), "log": (np.log, 2**-21.5, 2**-21.5, positive),
             "log2": (np.log2, 2**-21.5, 2**-21.5, positive), "sqrt": (np.sqrt, 0, 0, positive),
             "rsqrt": (lambda x: 1 / np.sqrt(x), 2**-22, 0, positive), "tanh": (np.tanh, 2**-19, 0, small),
             "sin": (np.sin, 0, 2**-20, (-100, 100)), "cos": (np.cos, 0, 2**-20, (-100, 100)),
             "floor": (np.floor, 0, 0, wide), "ceil": (np.ceil, 0, 0, wide), "abs": (np.abs, 0, 0, wide),
             "neg": (np.negative, 0, 0, wide)}
    for dtype in FLOATS:
        for name, (function, relative, absolute, (lo, hi)) in table.items():
            values = np.random.default_rng(5).uniform(lo, hi, 700)
            if name == "tanh":
                values[:200] *= 2.0 ** -np.arange(200.0).clip(0, 20)
            if lo > 0:
                values = np.exp(np.random.default_rng(6).uniform(np.log(lo), np.log(hi), 700))
            array = hold(dtype, values.astype(np.float32))
            # half an ulp more where the result is rounded; a small error may also move it across a tie
            slack = 0 if relative == absolute == 0 else ulp[dtype] * (2 if dtype == "f32" else 2.01)
            tolerance = (relative + slack, absolute + (2.0**-24 if dtype == "f16" else 1e-37)) if slack else None
            reference = lambda a, d=dtype, f=function: hold(d, f(number(d, a).astype(np.float64)).astype(np.float32))
            yield Case("%s_%s" % (name, dtype), [dtype], dtype, ["%%r = %s %%xa : %s" % (name, dtype)], reference, tolerance, [array])
    for dtype in INTS:
        yield Case("neg_" + dtype, [dtype], dtype, ["%%r = neg %%xa : %s" % dtype], lambda a, d=dtype: wrap(d, [-int(v) for v in a]))
        yield Case("not_" + dtype, [dtype], dtype, ["%%r = not %%xa : %s" % dtype], lambda a: ~a)
        yield Case("abs_" + dtype, [dtype], dtype, ["%%r = abs %%xa : %s" % dtype], lambda a, d=dtype: wrap(d, [abs(int(v)) for v in a]))


def all_cases(prefixes):
    for group in (arithmetic, comparisons, conversions, functions):
        for case in group():
            if not prefixes or any(case.name.startswith(p) for p in prefixes):
                yield case


SPELLING = {"bf16": "bf16", "bool": "u8"}


def run(tile_emu, case):
    grid = (case.count + BLOCK - 1) // BLOCK
    command = [tile_emu, "elementwise.ptx", "--entry", case.name, "--grid", str(grid), "--block", "128"]
    for name, array in zip("ab", case.arrays):
        np.save(name + ".npy", array)
        command += ["--arg", "in:%s=%s.npy" % (name, name)]
    dtype = SPELLING.get(case.result, case.result)
    command += ["--arg", "out:c=c.npy:%s:%d" % (dtype, case.count), "--arg", "i32:%d" % case.count]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return "tile-emu ends with %d: %s" % (done.returncode, done.stderr.strip()[:500])
    return case.check(np.load("c.npy").view(NUMPY[case.result]))


def main():
    tilec, tile_emu = sys.argv[1:3]
    cases = list(all_cases(sys.argv[3:]))
    if os.environ.get("TILE_TEST_SMALL") == "1":
        cases = cases[::5]
    with open("elementwise.tir", "w") as file:
        file.write("\n".join(case.text() for case in cases))
    subprocess.run([tilec, "elementwise.tir", "-o", "elementwise.ptx"], check=True)
    wrong = 0
    for case in cases:
        problem = run(tile_emu, case)
        if problem:
            wrong += 1
            print("%s: %s" % (case.name, problem))
    print("%d kernels, %d wrong" % (len(cases), wrong))
    sys.exit(1 if wrong or not cases else 0)


if __name__ == "__main__":
    main()
