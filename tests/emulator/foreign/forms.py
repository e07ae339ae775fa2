"""One kernel a family of instructions, written by this file: each line of a table is one form with its operands and what it must give.

A form is (PTX text, result type, operand types, function). The text names d, a, b, c; the function gets each lane's operands as Python
numbers (floats for float types, pairs for x2 types, True or False for predicates) and returns the result likewise. Every form sees
32 lanes of operands: edges and random values.
"""
import math
import numpy as np
from cases_scalar import directed, rounded, root, fused, to_small, s as signed, u as unsigned
from harness import rng, to_bf16, from_bf16, e4m3, e5m2

BITS = {'pred': 1, 'u8': 8, 's8': 8, 'b8': 8, 'u16': 16, 's16': 16, 'b16': 16, 'f16': 16, 'bf16': 16, 'u32': 32, 's32': 32, 'b32': 32, 'f32': 32, 'f16x2': 32, 'bf16x2': 32, 'u16x2': 32,
        's16x2': 32, 'u64': 64, 's64': 64, 'b64': 64, 'f64': 64, 'f32x2': 64}
INT_EDGES = [0, 1, -1, 2, 7, -7, 31, 32, 33, 255, 128, -128]
FLOAT_EDGES = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -1.5, 2.5]
FORMATS = {'f32': np.float32, 'f16': np.float16, 'f64': np.float64}


def encode(kind, v):
    if kind == 'pred': return int(bool(v))
    if kind.endswith('x2'): return encode(kind[:-2], v[0]) | encode(kind[:-2], v[1]) << BITS[kind] // 2
    if kind == 'bf16': return 0x7FFF if math.isnan(v) else int(to_bf16(np.float32(v)))
    if kind in FORMATS:
        if math.isnan(v): return {'f32': 0x7FFFFFFF, 'f16': 0x7FFF, 'f64': 0x7FF8000000000000}[kind]
        with np.errstate(all='ignore'):
            return int(FORMATS[kind](v).view(f'u{BITS[kind] // 8}'))
    return int(v) % 2 ** BITS[kind]


def decode(kind, code):
    if kind == 'pred': return bool(code & 1)
    if kind.endswith('x2'): return decode(kind[:-2], code & (1 << BITS[kind] // 2) - 1), decode(kind[:-2], code >> BITS[kind] // 2)
    if kind == 'bf16': return float(from_bf16(np.uint16(code)))
    if kind in FORMATS: return float(np.array([code], f'u{BITS[kind] // 8}').view(FORMATS[kind])[0])
    return signed(code, BITS[kind]) if kind[0] == 's' else code


def operand(kind, r, lane):
    if kind == 'pred': return int(r.integers(2))
    if kind.endswith('x2'): return operand(kind[:-2], r, lane) | operand(kind[:-2], r, lane + 1) << BITS[kind] // 2
    if kind in FORMATS or kind == 'bf16':
        tiny = {'f16': 6e-8, 'bf16': 1e-39, 'f32': 1e-40, 'f64': 5e-310}[kind]
        huge = {'f16': 65504.0, 'bf16': 3.38e38, 'f32': 3.4e38, 'f64': 1.7e308}[kind]
        edges = FLOAT_EDGES + [tiny, -tiny * 3, huge, -huge]
        v = edges[int(r.integers(len(edges)))] if r.integers(3) == 0 else float(r.standard_normal() * 2.0 ** r.integers(-6, 8))
        return encode(kind, v)
    bits = BITS[kind]
    edges = INT_EDGES + [2 ** (bits - 1) - 1, -2 ** (bits - 1), 2 ** (bits - 1) + 1]
    v = edges[int(r.integers(len(edges)))] if r.integers(2) == 0 else int.from_bytes(r.bytes(8), 'little') >> int(r.integers(0, bits))
    return v % 2 ** bits


def register(bits): return {1: 'p', 8: 'h', 16: 'h', 32: 'r', 64: 'l'}[bits]


class Family:
    def __init__(self, name, arch=90, shared=0, preamble='', setup='', tolerance=None):
        """shared: bytes of shared memory, 64 a thread at `own`; preamble: text before the entry; setup: statements before the rows;
        tolerance: relative error that results may have."""
        self.name, self.arch, self.rows, self.shared = name, arch, [], shared
        self.preamble, self.setup, self.tolerance = preamble, setup, tolerance

    def add(self, text, result, operands, fn):
        self.rows.append((text, result, operands.split() if isinstance(operands, str) else operands, fn))

    def add_whole(self, text, result, operands, fn):
        """fn gets lists of all 32 lanes' operands and returns the list of results."""
        fn.whole = True
        self.add(text, result, operands, fn)

    def inputs(self):
        r = rng(abs(hash_name(self.name)))
        out = np.zeros((len(self.rows), 3, 32), np.uint64)
        for i, (_, _, kinds, _) in enumerate(self.rows):
            for j, kind in enumerate(kinds):
                for lane in range(32):
                    out[i, j, lane] = operand(kind, r, lane)
        return out

    def expected(self, inputs):
        want = np.zeros((len(self.rows), 32), np.uint64)
        for i, (_, result, kinds, fn) in enumerate(self.rows):
            if getattr(fn, 'whole', False):
                lists = [[decode(kind, int(v)) for v in inputs[i, j]] for j, kind in enumerate(kinds)]
                want[i] = [encode(result, v) for v in fn(*lists)]
                continue
            for lane in range(32):
                with np.errstate(all='ignore'):
                    v = fn(*(decode(kind, int(inputs[i, j, lane])) for j, kind in enumerate(kinds)))
                want[i, lane] = encode(result, v)
        return want

    def ptx(self):
        lines = [f'.version 9.0', f'.target sm_{self.arch}a', '.address_size 64', self.preamble, f'.visible .entry {self.name}(.param .u64 inputs, .param .u64 results)', '{'] + ([f'  .shared .align 16 .b8 box[{self.shared}];', '  .reg .b32 own;'] if self.shared else []) + [
                 '  .reg .b64 in, out, raw, lane;', '  .reg .b32 t, low;', '  ld.param.u64 in, [inputs];', '  ld.param.u64 out, [results];', '  mov.u32 t, %tid.x;',
                 '  mul.wide.u32 lane, t, 8;', '  add.s64 in, in, lane;', '  add.s64 out, out, lane;'] + (['  mov.u32 own, box;', '  mad.lo.u32 own, t, 64, own;'] if self.shared else []) + [self.setup]
        for i, (text, result, kinds, _) in enumerate(self.rows):
            lines.append('  {')
            kinds_of = {'a': 0, 'b': 1, 'c': 2}
            for name, j in kinds_of.items():
                if j >= len(kinds):
                    continue
                bits = BITS[kinds[j]]
                lines.append(f'    .reg .{"pred" if bits == 1 else f"b{max(16, bits)}"} {name};')
                lines.append(f'    ld.global.u64 raw, [in+{i * 768 + j * 256}];')
                lines.append({1: f'    setp.ne.u64 {name}, raw, 0;', 8: f'    cvt.u16.u64 {name}, raw;', 16: f'    cvt.u16.u64 {name}, raw;', 32: f'    cvt.u32.u64 {name}, raw;',
                              64: f'    mov.b64 {name}, raw;'}[bits])
            bits = BITS[result]
            lines.append(f'    .reg .{"pred" if bits == 1 else f"b{max(16, bits)}"} d;')
            lines += ['    ' + part.strip() + ('' if part.strip() == '}' else ';') for part in text.split(';') if part.strip()]
            lines.append({1: '    selp.u64 raw, 1, 0, d;', 8: '    cvt.u64.u16 raw, d;\n    and.b64 raw, raw, 255;', 16: '    cvt.u64.u16 raw, d;', 32: '    cvt.u64.u32 raw, d;',
                          64: '    mov.b64 raw, d;'}[bits])
            lines.append(f'    st.global.u64 [out+{i * 256}], raw;')
            lines.append('  }')
        return '\n'.join(lines + ['  ret;', '}', ''])

    def nan_free(self, words):
        """Results with the NaNs of f64, whose bits PTX leaves open, made one; with a tolerance, their values."""
        words = words.reshape(len(self.rows), 32).copy()
        if self.tolerance is not None:
            values = [[decode(row[1], int(w)) for w in line] for row, line in zip(self.rows, words)]
            return np.concatenate([np.ravel(line) for line in values]).astype(np.float64)
        for i, (_, result, _, _) in enumerate(self.rows):
            if result == 'f64':
                words[i][np.isnan(words[i].view(np.float64))] = 0x7FF8000000000000
        return words


def hash_name(name):
    h = 7
    for c in name:
        h = (h * 31 + ord(c)) % 2**31
    return h


# ---- small helpers for the tables

def quotient(a, b): return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
def add(x, y): return x + y
def sub(x, y): return x - y
def mul(x, y): return x * y
def div(x, y): return x / y
def fma3(x, y, z): return x * y + z
def flush(v): return math.copysign(0.0, v) if abs(v) < 2.0**-126 else v
def clamp(v, bits, sign): return max(-2 ** (bits - 1) if sign else 0, min(2 ** (bits - 1) - 1 if sign else 2 ** bits - 1, v))
def saturate(v): return 0.0 if math.isnan(v) or v <= 0 else min(v, 1.0)


def minimum(x, y, nan=False):
    if math.isnan(x) or math.isnan(y): return math.nan if nan else (y if math.isnan(x) else x)
    if x == y: return x if math.copysign(1, x) < 0 else y
    return min(x, y)


def maximum(x, y, nan=False):
    if math.isnan(x) or math.isnan(y): return math.nan if nan else (y if math.isnan(x) else x)
    if x == y: return y if math.copysign(1, x) < 0 else x
    return max(x, y)


def exactly(kind, op, *args, mode='rn'):
    """op in a float kind with one rounding."""
    if kind == 'bf16':
        with np.errstate(all='ignore'):
            wide = directed(np.float64, op, 'rz', *args)  # odd rounding: enough bits that a second rounding is right
            if math.isfinite(wide) and all(map(math.isfinite, args)):
                from fractions import Fraction
                exact = op(*map(Fraction, args))
                if exact and Fraction(float(wide)) != exact:
                    wide = np.array([wide]).view(np.uint64)[0] | np.uint64(1)
                    wide = np.array([wide]).view(np.float64)[0]
                f = np.float32(wide)
                if float(f) != float(wide):
                    f = np.nextafter(f, np.float32(0)) if abs(float(f)) > abs(float(wide)) else f
                    f = (f.reshape(1).view(np.uint32) | 1).view(np.float32)[0]
                return float(from_bf16(to_bf16(f)))
            return float(np.float32(wide))
    if len(args) == 3 and mode == 'rd' and all(map(math.isfinite, args)):
        from fractions import Fraction
        x, y, z = args
        if Fraction(x) * Fraction(y) + Fraction(z) == 0:  # -0 unless both parts are +0
            return 0.0 if math.copysign(1, x) == math.copysign(1, y) and math.copysign(1, z) > 0 else -0.0
    if len(args) == 3:
        return float(fused(FORMATS[kind], *args)) if mode == 'rn' else float(directed(FORMATS[kind], op, mode, *args))
    if kind == 'f16':
        with np.errstate(all='ignore'):
            return float(np.float16(op(np.float64(args[0]), np.float64(args[1]))))
    return float(directed(FORMATS[kind], op, mode, *args))


ROUNDINGS = {'rn': 'rn', 'rz': 'rz', 'rm': 'rd', 'rp': 'ru'}


# ---- families

def integers():
    f = Family('integer_arithmetic')
    for t in ('u16', 's16', 'u32', 's32', 'u64', 's64'):
        bits, pair = BITS[t], f'{t} {t}'
        f.add(f'add.{t} d, a, b', t, pair, lambda x, y: x + y)
        f.add(f'sub.{t} d, a, b', t, pair, lambda x, y: x - y)
        f.add(f'mul.lo.{t} d, a, b', t, pair, lambda x, y: x * y)
        f.add(f'mul.hi.{t} d, a, b', t, pair, lambda x, y, n=bits: x * y >> n)
        f.add(f'mad.lo.{t} d, a, b, c', t, pair + ' ' + t, lambda x, y, z: x * y + z)
        if bits < 64:
            wide = t[0] + str(bits * 2)
            f.add(f'mul.wide.{t} d, a, b', wide, pair, lambda x, y: x * y)
            f.add(f'mad.wide.{t} d, a, b, c', wide, pair + ' ' + wide, lambda x, y, z: x * y + z)
        f.add(f'mad.hi.{t} d, a, b, c', t, pair + ' ' + t, lambda x, y, z, n=bits: (x * y >> n) + z)
        f.add(f'or.b{bits} b, b, 1; div.{t} d, a, b', t, pair, lambda x, y, k=t: quotient(x, decode(k, encode(k, y) | 1)))
        f.add(f'or.b{bits} b, b, 1; rem.{t} d, a, b', t, pair, lambda x, y, k=t: x - decode(k, encode(k, y) | 1) * quotient(x, decode(k, encode(k, y) | 1)))
        f.add(f'min.{t} d, a, b', t, pair, min)
        f.add(f'max.{t} d, a, b', t, pair, max)
        f.add(f'sad.{t} d, a, b, c', t, pair + ' ' + t, lambda x, y, z: abs(x - y) + z)
        if t[0] == 's':
            f.add(f'neg.{t} d, a', t, t, lambda x: -x)
            f.add(f'abs.{t} d, a', t, t, abs)
    f.add('add.sat.s32 d, a, b', 's32', 's32 s32', lambda x, y: clamp(x + y, 32, True))
    f.add('sub.sat.s32 d, a, b', 's32', 's32 s32', lambda x, y: clamp(x - y, 32, True))
    f.add('mad.hi.sat.s32 d, a, b, c', 's32', 's32 s32 s32', lambda x, y, z: clamp((x * y >> 32) + z, 32, True))
    low24 = lambda v, sign: signed(v & 0xFFFFFF, 24) if sign else v & 0xFFFFFF
    for t, sign in (('u32', False), ('s32', True)):
        f.add(f'mul24.lo.{t} d, a, b', t, f'{t} {t}', lambda x, y, k=sign: low24(x, k) * low24(y, k))
        f.add(f'mul24.hi.{t} d, a, b', t, f'{t} {t}', lambda x, y, k=sign: low24(x, k) * low24(y, k) >> 16)
        f.add(f'mad24.lo.{t} d, a, b, c', t, f'{t} {t} {t}', lambda x, y, z, k=sign: low24(x, k) * low24(y, k) + z)
    f.add('add.u16x2 d, a, b', 'u16x2', 'u16x2 u16x2', lambda x, y: (x[0] + y[0], x[1] + y[1]))
    for op, fn in (('min', min), ('max', max)):
        f.add(f'{op}.s16x2 d, a, b', 's16x2', 's16x2 s16x2', lambda x, y, k=fn: (k(x[0], y[0]), k(x[1], y[1])))
        f.add(f'{op}.u16x2 d, a, b', 'u16x2', 'u16x2 u16x2', lambda x, y, k=fn: (k(x[0], y[0]), k(x[1], y[1])))
        f.add(f'{op}.relu.s32 d, a, b', 's32', 's32 s32', lambda x, y, k=fn: max(0, k(x, y)))
        f.add(f'{op}.relu.s16x2 d, a, b', 's16x2', 's16x2 s16x2', lambda x, y, k=fn: (max(0, k(x[0], y[0])), max(0, k(x[1], y[1]))))
    byte = lambda v, i, sign: signed(v >> 8 * i & 255, 8) if sign else v >> 8 * i & 255
    half = lambda v, i, sign: signed(v >> 16 * i & 0xFFFF, 16) if sign else v >> 16 * i & 0xFFFF
    for ta, sa in (('u32', 0), ('s32', 1)):
        for tb, sb in (('u32', 0), ('s32', 1)):
            t = 's32' if sa or sb else 'u32'
            f.add(f'dp4a.{ta}.{tb} d, a, b, c', t, f'u32 u32 {t}', lambda x, y, z, i=sa, j=sb: sum(byte(x, n, i) * byte(y, n, j) for n in range(4)) + z)
            for part, at in (('lo', 0), ('hi', 2)):
                f.add(f'dp2a.{part}.{ta}.{tb} d, a, b, c', t, f'u32 u32 {t}', lambda x, y, z, i=sa, j=sb, k=at: sum(half(x, n, i) * byte(y, n + k, j) for n in range(2)) + z)
    return f


def bits_family():
    f = Family('bits')
    for n in (16, 32, 64):
        t, top = f'b{n}', 2**n - 1
        for op, fn in (('and', lambda x, y: x & y), ('or', lambda x, y: x | y), ('xor', lambda x, y: x ^ y)):
            f.add(f'{op}.{t} d, a, b', t, f'{t} {t}', fn)
        f.add(f'not.{t} d, a', t, t, lambda x, m=top: x ^ m)
        f.add(f'cnot.{t} d, a', t, t, lambda x: int(x == 0))
        f.add(f'shl.{t} d, a, b', t, f'{t} u32', lambda x, y, k=n: x << min(y, k))
        f.add(f'shr.u{n} d, a, b', f'u{n}', f'u{n} u32', lambda x, y, k=n: x >> min(y, k))
        f.add(f'shr.s{n} d, a, b', f's{n}', f's{n} u32', lambda x, y, k=n: x >> min(y, k))
        if n == 16: continue
        f.add(f'popc.{t} d, a', 'u32', t, lambda x: bin(x).count('1'))
        f.add(f'clz.{t} d, a', 'u32', t, lambda x, k=n: k - x.bit_length())
        f.add(f'brev.{t} d, a', t, t, lambda x, k=n: int(f'{x:0{k}b}'[::-1], 2))
        find = lambda x: x.bit_length() - 1 if x else 0xFFFFFFFF
        f.add(f'bfind.u{n} d, a', 'u32', f'u{n}', find)
        f.add(f'bfind.s{n} d, a', 'u32', f's{n}', lambda x, g=find: g(x if x >= 0 else ~x))
        f.add(f'bfind.shiftamt.u{n} d, a', 'u32', f'u{n}', lambda x, k=n: k - x.bit_length() if x else 0xFFFFFFFF)
        f.add(f'and.b32 b, b, {n - 1}; and.b32 c, c, {n - 1}; bfe.u{n} d, a, b, c', f'u{n}', f'u{n} u32 u32', lambda x, y, z, k=n: x >> y % k & (1 << z % k) - 1)
        f.add(f'and.b32 b, b, {n - 1}; and.b32 c, c, {n - 1}; bfe.s{n} d, a, b, c', f's{n}', f's{n} u32 u32', lambda x, y, z, k=n: field(x, y % k, z % k))
        insert = lambda x, y, at, length, k: y & ~((1 << length) - 1 << at) | (x & (1 << length) - 1) << at
        f.add(f'and.b32 c, c, 255; bfi.{t} d, a, b, c, 7', t, f'{t} {t} u32', lambda x, y, z, k=n: insert(x, y, z & 255, 7, k) if (z & 255) < k else y)
        f.add(f'and.b32 c, c, 255; bfi.{t} d, a, b, 5, c', t, f'{t} {t} u32', lambda x, y, z, k=n: insert(x, y, 5, z & 255, k))
    for lut in (0x96, 0xE8, 0xCA, 0x01, 0x80):
        f.add(f'lop3.b32 d, a, b, c, {lut}', 'b32', 'b32 b32 b32', lambda x, y, z, k=lut: sum((k >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1) & 1) << i for i in range(32)))
    f.add('shf.l.wrap.b32 d, a, b, c', 'b32', 'b32 b32 u32', lambda x, y, z: (y << 32 | x) << z % 32 >> 32)
    f.add('shf.r.wrap.b32 d, a, b, c', 'b32', 'b32 b32 u32', lambda x, y, z: (y << 32 | x) >> z % 32)
    f.add('shf.l.clamp.b32 d, a, b, c', 'b32', 'b32 b32 u32', lambda x, y, z: (y << 32 | x) << min(z, 32) >> 32)
    f.add('shf.r.clamp.b32 d, a, b, c', 'b32', 'b32 b32 u32', lambda x, y, z: (y << 32 | x) >> min(z, 32))
    f.add('bmsk.clamp.b32 d, a, b', 'b32', 'u32 u32', lambda x, y: (1 << min(y, 32)) - 1 << min(x, 32))
    f.add('bmsk.wrap.b32 d, a, b', 'b32', 'u32 u32', lambda x, y: (1 << y % 32) - 1 << x % 32)
    f.add('szext.wrap.u32 d, a, b', 'u32', 'u32 u32', lambda x, y: x & (1 << y % 32) - 1)
    f.add('szext.clamp.s32 d, a, b', 's32', 's32 u32', lambda x, y: 0 if y == 0 else signed(x, min(y, 32)))
    pick = lambda x, y, i: (y << 32 | x) >> 8 * i & 255
    f.add('prmt.b32 d, a, b, c', 'b32', 'b32 b32 b32', lambda x, y, z: sum((255 * (pick(x, y, z >> 4 * i & 7) >> 7) if z >> 4 * i & 8 else pick(x, y, z >> 4 * i & 7)) << 8 * i for i in range(4)))
    modes = {'f4e': lambda n: [n, n + 1, n + 2, n + 3], 'b4e': lambda n: [n, n + 7, n + 6, n + 5], 'rc8': lambda n: [n] * 4, 'ecl': lambda n: [max(n, i) for i in range(4)],
             'ecr': lambda n: [min(n, i) for i in range(4)], 'rc16': lambda n: [n % 2 * 2, n % 2 * 2 + 1] * 2}
    for mode, order in modes.items():
        f.add(f'prmt.b32.{mode} d, a, b, c', 'b32', 'b32 b32 b32', lambda x, y, z, g=order: sum(pick(x, y, j % 8) << 8 * i for i, j in enumerate(g(z & 3))))
    for op, fn in (('and', lambda x, y: x and y), ('or', lambda x, y: x or y), ('xor', lambda x, y: x != y)):
        f.add(f'{op}.pred d, a, b', 'pred', 'pred pred', fn)
    f.add('not.pred d, a', 'pred', 'pred', lambda x: not x)
    f.add('mov.b64 {low, t}, a; mov.u32 t, %tid.x; mov.b32 d, low', 'b32', 'b64', lambda x: x & 0xFFFFFFFF)
    f.add('mov.b32 b, a+5; add.u32 d, b, a+-7', 'u32', 'u32 u32', lambda x, y: 2 * x - 2)
    f.add('mov.b64 d, {a, b}', 'b64', 'b32 b32', lambda x, y: y << 32 | x)
    f.add('{ .reg .b16 x, y; mov.b32 {x, y}, a; mov.b32 d, {y, x}; }', 'b32', 'b32', lambda x: x >> 16 | x << 16)
    f.add('{ .reg .b16 x; mov.b64 {_, x, _, _}, a; mov.b16 d, x; }', 'b16', 'b64', lambda x: x >> 16)
    return f


def field(x, at, length):
    if length == 0: return 0
    v = x >> at
    v &= (1 << length) - 1
    return v - (1 << length) if v >> length - 1 & 1 else v


def compares():
    f = Family('compares')
    truth = {'eq': lambda x, y: x == y, 'ne': lambda x, y: x != y, 'lt': lambda x, y: x < y, 'le': lambda x, y: x <= y, 'gt': lambda x, y: x > y, 'ge': lambda x, y: x >= y}
    for t in ('u16', 's16', 'u32', 's32', 'u64', 's64'):
        for name, fn in truth.items():
            f.add(f'setp.{name}.{t} d, a, b', 'pred', f'{t} {t}', fn)
    for name, ref in (('lo', 'lt'), ('ls', 'le'), ('hi', 'gt'), ('hs', 'ge')):
        f.add(f'setp.{name}.u32 d, a, b', 'pred', 'u32 u32', truth[ref])
    for t in ('f32', 'f64', 'f16', 'bf16'):
        for name, fn in truth.items():
            f.add(f'setp.{name}.{t} d, a, b', 'pred', f'{t} {t}', lambda x, y, g=fn: not (math.isnan(x) or math.isnan(y)) and g(x, y))
            f.add(f'setp.{name}u.{t} d, a, b', 'pred', f'{t} {t}', lambda x, y, g=fn: math.isnan(x) or math.isnan(y) or g(x, y))
        f.add(f'setp.num.{t} d, a, b', 'pred', f'{t} {t}', lambda x, y: not (math.isnan(x) or math.isnan(y)))
        f.add(f'setp.nan.{t} d, a, b', 'pred', f'{t} {t}', lambda x, y: math.isnan(x) or math.isnan(y))
    f.add('setp.lt.ftz.f32 d, a, b', 'pred', 'f32 f32', lambda x, y: flush(x) < flush(y))
    for op, fn in (('and', lambda x, y: x and y), ('or', lambda x, y: x or y), ('xor', lambda x, y: x != y)):
        f.add(f'setp.lt.{op}.s32 d, a, b, c', 'pred', 's32 s32 pred', lambda x, y, z, g=fn: g(x < y, z))
        f.add(f'setp.ge.{op}.f32 d, a, b, !c', 'pred', 'f32 f32 pred', lambda x, y, z, g=fn: g(x >= y, not z))
    f.add('{ .reg .pred q; setp.gt.u32 q|d, a, b; }', 'pred', 'u32 u32', lambda x, y: not x > y)
    f.add('{ .reg .pred q, w; setp.gt.and.u32 q|d, a, b, c; }', 'pred', 'u32 u32 pred', lambda x, y, z: not x > y and z)
    for t in ('u16', 's32', 'u64', 'f32', 'f64', 'b16', 'b32', 'b64'):
        f.add(f'selp.{t} d, a, b, c', t if t[0] != 'f' else 'b' + t[1:], ' '.join([t if t[0] != 'f' else 'b' + t[1:]] * 2 + ['pred']), lambda x, y, z: x if z else y)
    f.add('slct.b32.s32 d, a, b, c', 'b32', 'b32 b32 s32', lambda x, y, z: x if z >= 0 else y)
    f.add('slct.u64.f32 d, a, b, c', 'u64', 'u64 u64 f32', lambda x, y, z: x if z >= 0 else y)
    f.add('set.lt.u32.s32 d, a, b', 'u32', 's32 s32', lambda x, y: 0xFFFFFFFF if x < y else 0)
    f.add('set.ge.f32.f32 d, a, b', 'f32', 'f32 f32', lambda x, y: 1.0 if x >= y else 0.0)
    f.add('set.ne.xor.u32.u32 d, a, b, c', 'u32', 'u32 u32 pred', lambda x, y, z: 0xFFFFFFFF if (x != y) != z else 0)
    for test, fn in (('finite', math.isfinite), ('infinite', math.isinf), ('number', lambda x: not math.isnan(x)), ('notanumber', math.isnan),
                     ('normal', lambda x: math.isfinite(x) and (abs(x) >= 2.0**-126 or x == 0)), ('subnormal', lambda x: math.isfinite(x) and abs(x) < 2.0**-126 and x != 0)):
        f.add(f'testp.{test}.f32 d, a', 'pred', 'f32', fn)
        wide = {'normal': lambda x: math.isfinite(x) and (abs(x) >= 2.0**-1022 or x == 0), 'subnormal': lambda x: math.isfinite(x) and abs(x) < 2.0**-1022 and x != 0}
        f.add(f'testp.{test}.f64 d, a', 'pred', 'f64', wide.get(test, fn))
    pairwise = lambda g: lambda x, y: (1.0 if g(x[0], y[0]) else 0.0, 1.0 if g(x[1], y[1]) else 0.0)
    f.add('set.lt.f16x2.f16x2 d, a, b', 'f16x2', 'f16x2 f16x2', pairwise(lambda x, y: x < y))
    f.add('set.geu.bf16x2.bf16x2 d, a, b', 'bf16x2', 'bf16x2 bf16x2', pairwise(lambda x, y: x >= y or math.isnan(x) or math.isnan(y)))
    f.add('{ .reg .pred q; setp.gt.f16x2 q|d, a, b; }', 'pred', 'f16x2 f16x2', lambda x, y: x[1] > y[1])
    return f


def floats():
    f = Family('float_arithmetic')
    for t in ('f32', 'f64'):
        K = FORMATS[t]
        for suffix, mode in ROUNDINGS.items():
            for name, op in (('add', add), ('sub', sub), ('mul', mul), ('div', div)):
                f.add(f'{name}.{suffix}.{t} d, a, b', t, f'{t} {t}', lambda x, y, o=op, m=mode, k=t: exactly(k, o, x, y, mode=m))
            f.add(f'fma.{suffix}.{t} d, a, b, c', t, f'{t} {t} {t}', lambda x, y, z, m=mode, k=t: exactly(k, fma3, x, y, z, mode=m))
            f.add(f'sqrt.{suffix}.{t} d, a', t, t, lambda x, m=mode, k=K: math.nan if x < 0 else x if x == 0 else float(root(k, x, m)))
            f.add(f'rcp.{suffix}.{t} d, a', t, t, lambda x, m=mode, k=t: exactly(k, div, 1.0, x, mode=m))
        f.add(f'min.{t} d, a, b', t, f'{t} {t}', minimum)
        f.add(f'max.{t} d, a, b', t, f'{t} {t}', maximum)
        f.add(f'mov.b{BITS[t]} b, a; setp.num.{t} c, a, a; neg.{t} d, a; selp.{t} d, d, 0{t[0]}{"7FFFFFFF" if t == "f32" else "7FF8000000000000"}, c'.replace('0f7FF8', '0d7FF8'), t, f'{t} {t} pred', lambda x, y, z: -x)
        f.add(f'setp.num.{t} c, a, a; abs.{t} d, a; selp.{t} d, d, 0{"f7FFFFFFF" if t == "f32" else "d7FF8000000000000"}, c', t, f'{t} {t} pred', lambda x, y, z: abs(x))
    f.add('copysign.f32 d, a, b', 'b32', 'b32 b32', lambda x, y: y & 0x7FFFFFFF | x & 0x80000000)
    f.add('copysign.f64 d, a, b', 'b64', 'b64 b64', lambda x, y: y & 2**63 - 1 | x & 2**63)
    z = lambda g: lambda *v: flush(g(*(flush(x) for x in v)))
    one = lambda op: lambda x, y: exactly('f32', op, x, y)
    for name, op in (('add', add), ('sub', sub), ('mul', mul)):
        f.add(f'{name}.rn.ftz.f32 d, a, b', 'f32', 'f32 f32', z(one(op)))
        f.add(f'{name}.rn.sat.f32 d, a, b', 'f32', 'f32 f32', lambda x, y, g=one(op): saturate(g(x, y)))
        f.add(f'{name}.rz.ftz.sat.f32 d, a, b', 'f32', 'f32 f32', lambda x, y, o=op: saturate(flush(exactly('f32', o, flush(x), flush(y), mode='rz'))))
    f.add('fma.rn.ftz.f32 d, a, b, c', 'f32', 'f32 f32 f32', z(lambda x, y, w: exactly('f32', fma3, x, y, w)))
    f.add('fma.rn.sat.f32 d, a, b, c', 'f32', 'f32 f32 f32', lambda x, y, w: saturate(exactly('f32', fma3, x, y, w)))
    f.add('min.NaN.f32 d, a, b', 'f32', 'f32 f32', lambda x, y: minimum(x, y, True))
    f.add('max.NaN.f32 d, a, b', 'f32', 'f32 f32', lambda x, y: maximum(x, y, True))
    f.add('max.ftz.f32 d, a, b', 'f32', 'f32 f32', lambda x, y: maximum(flush(x), flush(y)))
    f.add('min.ftz.NaN.f32 d, a, b', 'f32', 'f32 f32', lambda x, y: minimum(flush(x), flush(y), True))
    xor_sign = lambda m, x, y: math.copysign(m, math.copysign(1, x) * math.copysign(1, y)) if not math.isnan(m) else m
    f.add('min.xorsign.abs.f32 d, a, b', 'f32', 'f32 f32', lambda x, y: xor_sign(minimum(abs(x), abs(y)), x, y))
    f.add('max.NaN.xorsign.abs.f32 d, a, b', 'f32', 'f32 f32', lambda x, y: xor_sign(maximum(abs(x), abs(y), True), x, y))
    f.add('add.f32 d, a, 0f3F800000', 'f32', 'f32', lambda x: exactly('f32', add, x, 1.0))
    f.add('mul.f64 d, a, 0d4008000000000000', 'f64', 'f64', lambda x: exactly('f64', mul, x, 3.0))
    return f


def halves():
    f = Family('half_arithmetic')
    for t in ('f16', 'bf16'):
        do = lambda op, *v, k=t: exactly(k, op, *v)
        two, three = f'{t} {t}', f'{t} {t} {t}'
        lift2 = lambda g: lambda x, y: (g(x[0], y[0]), g(x[1], y[1]))
        lift3 = lambda g: lambda x, y, w: (g(x[0], y[0], w[0]), g(x[1], y[1], w[1]))
        for name, op in (('add', add), ('sub', sub), ('mul', mul)):
            g = lambda x, y, o=op, k=t: exactly(k, o, x, y)
            f.add(f'{name}.{t} d, a, b', t, two, g)
            f.add(f'{name}.rn.{t}x2 d, a, b', t + 'x2', f'{t}x2 {t}x2', lift2(g))
            if t == 'f16':
                f.add(f'{name}.sat.f16 d, a, b', t, two, lambda x, y, h=g: saturate(h(x, y)))
        m = lambda x, y, w, k=t: half_fma(k, x, y, w)
        f.add(f'fma.rn.{t} d, a, b, c', t, three, m)
        f.add(f'fma.rn.{t}x2 d, a, b, c', t + 'x2', f'{t}x2 {t}x2 {t}x2', lift3(m))
        relu = lambda v: v if math.isnan(v) else max(v, 0.0) if v > 0 else 0.0
        f.add(f'fma.rn.relu.{t} d, a, b, c', t, three, lambda x, y, w, h=m: relu(h(x, y, w)))
        for name, g in (('min', minimum), ('max', maximum)):
            f.add(f'{name}.{t} d, a, b', t, two, g)
            f.add(f'{name}.NaN.{t} d, a, b', t, two, lambda x, y, h=g: h(x, y, True))
            f.add(f'{name}.{t}x2 d, a, b', t + 'x2', f'{t}x2 {t}x2', lift2(g))
            f.add(f'{name}.xorsign.abs.{t} d, a, b', t, two, lambda x, y, h=g: signed_like(h(abs(x), abs(y)), x, y))
            f.add(f'{name}.NaN.xorsign.abs.{t}x2 d, a, b', t + 'x2', f'{t}x2 {t}x2', lift2(lambda x, y, h=g: signed_like(h(abs(x), abs(y), True), x, y)))
        f.add(f'{{ .reg .pred q; setp.num.{t} q, a, a; neg.{t} d, a; selp.b16 d, d, 0x7FFF, q; }}', t, t, lambda x: -x)
        f.add(f'{{ .reg .pred q; setp.num.{t} q, a, a; abs.{t} d, a; selp.b16 d, d, 0x7FFF, q; }}', t, t, abs)
    return f


def signed_like(m, x, y):
    return m if math.isnan(m) else math.copysign(m, math.copysign(1, x) * math.copysign(1, y))


def half_fma(kind, x, y, z):
    if kind == 'bf16':
        if all(map(math.isfinite, (x, y, z))):
            return exactly('bf16', fma3, x, y, z)
        return x * y + z if not (math.isinf(z) and math.isfinite(x) and math.isfinite(y)) else z
    with np.errstate(all='ignore'):
        if not all(map(math.isfinite, (x, y, z))):
            return float(np.float64(x) * np.float64(y) + np.float64(z))
        return float(np.float16(x * y + z))  # 22 + 40 bits: exact in f64 but for ties far below


def conversions():
    f = Family('conversions')
    kinds = ('u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64')
    for to in kinds:
        for source in kinds:
            f.add(f'cvt.{to}.{source} d, a' if BITS[to] > 8 else f'cvt.{to}.{source} d, a; and.b16 d, d, 255', to, source, lambda x: x)
    for to in ('s32', 'u32', 'u16', 's64'):
        for source in ('s64', 'u64', 's32', 'u32'):
            if BITS[source] < BITS[to] or source == to: continue
            f.add(f'cvt.sat.{to}.{source} d, a', to, source, lambda x, k=to: clamp(x, BITS[k], k[0] == 's'))
    whole = {'rni': lambda v: round(v), 'rzi': math.trunc, 'rmi': math.floor, 'rpi': math.ceil}
    for to in ('s32', 'u32', 's64', 'u64', 's16', 'u16'):
        for source in ('f32', 'f64', 'f16'):
            for mode, fn in whole.items():
                def g(x, k=to, h=fn, src=source):
                    if math.isnan(x): return (0 if BITS[k] < 64 and src != 'f64' else 2 ** (BITS[k] - 1))
                    if math.isinf(x): return clamp(2**70 if x > 0 else -2**70, BITS[k], k[0] == 's')
                    return clamp(h(x), BITS[k], k[0] == 's')
                if to in ('s16', 'u16') and source != 'f32': continue
                f.add(f'setp.num.{source} c, a, a; cvt.{mode}.{to}.{source} d, a; selp.b{BITS[to]} d, d, 5, c', to, f'{source} {source} pred', lambda x, y, z, h=g: 5 if math.isnan(x) else h(x))
    for to in ('f32', 'f64', 'f16'):
        for source in ('s32', 'u32', 's64', 'u64', 's16', 'u8'):
            for mode, way in ROUNDINGS.items():
                if mode != 'rn' and source in ('s16', 'u8'): continue
                f.add(f'cvt.{mode}.{to}.{source} d, a', to, source, lambda x, k=to, m=way: from_int(k, x, m))
    for mode, way in ROUNDINGS.items():
        f.add(f'setp.num.f64 c, a, a; cvt.{mode}.f32.f64 d, a; selp.b32 d, d, 0x7FFFFFFF, c', 'f32', 'f64 f64 pred', lambda x, y, z, m=way: narrow('f32', x, m))
        f.add(f'cvt.{mode}.f16.f32 d, a', 'f16', 'f32', lambda x, m=way: narrow('f16', x, m))
    f.add('cvt.rn.f16.f64 d, a', 'f16', 'f64', lambda x: narrow('f16', x, 'rn'))
    f.add('cvt.rn.bf16.f32 d, a', 'bf16', 'f32', lambda x: x)
    f.add('cvt.rn.relu.bf16.f32 d, a', 'bf16', 'f32', lambda x: x if math.isnan(x) or x > 0 else 0.0)
    f.add('cvt.f32.f16 d, a', 'f32', 'f16', lambda x: x)
    f.add('cvt.f32.bf16 d, a', 'b32', 'b16', lambda x: x << 16)
    f.add('setp.num.f32 c, a, a; cvt.f64.f32 d, a', 'f64', 'f32 f32 pred', lambda x, y, z: x)
    f.add('cvt.sat.f32.f32 d, a', 'f32', 'f32', saturate)
    f.add('cvt.ftz.f32.f16 d, a', 'f32', 'f16', flush)
    for mode, fn in whole.items():
        for t in ('f32', 'f64', 'f16'):
            f.add(f'cvt.{mode}.{t}.{t} d, a', t, t, lambda x, h=fn: x if not math.isfinite(x) else math.copysign(float(h(x)), x))
    for t in ('f16x2', 'bf16x2'):
        f.add(f'cvt.rn.{t}.f32 d, a, b', t, 'f32 f32', lambda x, y, k=t: (narrow2(k, y), narrow2(k, x)))
        f.add(f'cvt.rn.relu.{t}.f32 d, a, b', t, 'f32 f32', lambda x, y, k=t: tuple(0.0 if v <= 0 else narrow2(k, v) for v in (y, x)))
    f.add('cvt.rz.f16x2.f32 d, a, b', 'f16x2', 'f32 f32', lambda x, y: (narrow('f16', y, 'rz'), narrow('f16', x, 'rz')))
    f.add('cvt.rn.satfinite.e4m3x2.f32 d, a, b', 'b16', 'f32 f32', lambda x, y: to_small(x, e4m3, 448) << 8 | to_small(y, e4m3, 448))
    f.add('cvt.rn.satfinite.e5m2x2.f32 d, a, b', 'b16', 'f32 f32', lambda x, y: to_small(x, e5m2, 57344) << 8 | to_small(y, e5m2, 57344))
    f.add('cvt.rn.satfinite.relu.e4m3x2.f32 d, a, b', 'b16', 'f32 f32', lambda x, y: sum((to_small(v, e4m3, 448) if not v <= 0 else 0) << k for v, k in ((x, 8), (y, 0))))
    f.add('cvt.rn.satfinite.e4m3x2.f16x2 d, a', 'b16', 'f16x2', lambda x: to_small(x[0], e4m3, 448) | to_small(x[1], e4m3, 448) << 8)
    f.add('cvt.rn.satfinite.e5m2x2.f16x2 d, a', 'b16', 'f16x2', lambda x: to_small(x[0], e5m2, 57344) | to_small(x[1], e5m2, 57344) << 8)
    f.add('cvt.pack.sat.s16.s32 d, a, b', 'b32', 's32 s32', lambda x, y: clamp(x, 16, True) % 65536 << 16 | clamp(y, 16, True) % 65536)
    f.add('cvt.pack.sat.u8.s32.b32 d, a, b, c', 'b32', 's32 s32 b32', lambda x, y, z: z << 16 & 0xFFFFFFFF | clamp(x, 8, False) << 8 | clamp(y, 8, False))
    f.add('cvt.rna.tf32.f32 d, a', 'b32', 'b32', lambda x: x & ~0x1FFF if (x & 0x7FFFFFFF) >= 0x7F800000 else x + 0x1000 & ~0x1FFF)  # a NaN keeps its upper bits
    f.add('neg.f64 d, a', 'b64', 'b64', lambda x: x | 1 << 51 if (x & 2**63 - 1) > 0x7FF << 52 else x ^ 1 << 63)
    f.add('abs.f64 d, a', 'b64', 'b64', lambda x: x | 1 << 51 if (x & 2**63 - 1) > 0x7FF << 52 else x & 2**63 - 1)
    return f


def from_int(kind, x, mode):
    if x == 0: return 0.0
    if kind == 'f16': return narrow('f16', x, mode)
    from fractions import Fraction
    return float(rounded(Fraction(x), mode, FORMATS[kind]))


def narrow(kind, x, mode):
    """A float (or an integer) rounded to a narrower kind."""
    K = FORMATS[kind]
    if isinstance(x, float) and not math.isfinite(x) or x == 0: return x
    with np.errstate(all='ignore'):
        near = K(np.float64(x) if isinstance(x, float) else (float(x) if abs(x) < 2**53 else math.copysign(2.0**60, x)))
    v = float(near)
    above = v > x
    if mode == 'rn' or v == x: return v
    down = mode == 'rd' or mode == 'rz' and x > 0
    if above and down: return float(np.nextafter(near, K(-np.inf)))
    if not above and not down: return float(np.nextafter(near, K(np.inf)))
    return v


def narrow2(kind, x):
    return x if kind == 'bf16x2' or math.isnan(x) else narrow('f16', x, 'rn')


def shuffles():
    f = Family('warp_wide')
    full = '0xffffffff'

    def shuffle(mode, fn):
        """b: lane or delta; c: clamp and segment mask, as the ISA's pseudocode reads them."""
        def whole(values, bs, cs):
            out = []
            for lane in range(32):
                b, clamp_value, mask = bs[lane] & 31, cs[lane] & 31, cs[lane] >> 8 & 31
                most = lane & mask | clamp_value & ~mask & 31
                least = lane & mask
                j, valid = {'up': (lane - b, lane - b >= most), 'down': (lane + b, lane + b <= most), 'bfly': (lane ^ b, (lane ^ b) <= most),
                            'idx': (least | b & ~mask & 31, (least | b & ~mask & 31) <= most)}[mode]
                out.append(fn(values, lane, j, valid))
            return out
        return whole
    for mode in ('up', 'down', 'bfly', 'idx'):
        value = lambda v, lane, j, ok: v[j] if ok else v[lane]
        f.add_whole(f'shfl.sync.{mode}.b32 d, a, 3, {0 if mode == "up" else 31}, {full}', 'b32', 'b32', lambda v, m=mode, g=value: shuffle(m, g)(v, [3] * 32, [0 if m == 'up' else 31] * 32))
        f.add_whole(f'shfl.sync.{mode}.b32 d, a, b, c, {full}', 'b32', 'b32 u32 u32', shuffle(mode, value))
        f.add_whole(f'{{ .reg .b32 x; shfl.sync.{mode}.b32 x|d, a, b, c, {full}; }}', 'pred', 'b32 u32 u32', shuffle(mode, lambda v, lane, j, ok: ok))
    f.add_whole(f'vote.sync.all.pred d, a, {full}', 'pred', 'pred', lambda v: [all(v)] * 32)
    f.add_whole(f'vote.sync.any.pred d, !a, {full}', 'pred', 'pred', lambda v: [not all(v)] * 32)
    f.add_whole(f'vote.sync.uni.pred d, a, {full}', 'pred', 'pred', lambda v: [len(set(v)) == 1] * 32)
    f.add_whole(f'vote.sync.ballot.b32 d, a, {full}', 'b32', 'pred', lambda v: [sum(int(x) << i for i, x in enumerate(v))] * 32)
    f.add_whole(f'and.b32 a, a, 3; match.any.sync.b32 d, a, {full}', 'b32', 'b32', lambda v: [sum(int(x & 3 == y & 3) << i for i, y in enumerate(v)) for x in v])
    f.add_whole(f'and.b64 a, a, 1; match.any.sync.b64 d, a, {full}', 'b32', 'b64', lambda v: [sum(int(x & 1 == y & 1) << i for i, y in enumerate(v)) for x in v])
    f.add_whole(f'and.b32 a, a, 0; match.all.sync.b32 d|c, a, {full}', 'b32', 'b32 b32 pred', lambda v, w, p: [0xFFFFFFFF] * 32)
    f.add_whole(f'{{ .reg .b32 x; match.all.sync.b32 x|d, a, {full}; }}', 'pred', 'b32', lambda v: [len(set(v)) == 1] * 32)
    for op, fn in (('add', sum), ('min', min), ('max', max)):
        for t in ('u32', 's32'):
            f.add_whole(f'redux.sync.{op}.{t} d, a, {full}', t, t, lambda v, g=fn: [g(v)] * 32)
    from functools import reduce
    for op, fn in (('and', lambda x, y: x & y), ('or', lambda x, y: x | y), ('xor', lambda x, y: x ^ y)):
        f.add_whole(f'redux.sync.{op}.b32 d, a, {full}', 'b32', 'b32', lambda v, g=fn: [reduce(g, v)] * 32)
    f.add_whole(f'activemask.b32 d', 'b32', '', lambda: [0xFFFFFFFF] * 32)
    f.add_whole(f'elect.sync _|d, {full}', 'pred', '', lambda: [i == 0 for i in range(32)])
    f.add_whole('mov.u32 d, %lanemask_lt', 'b32', '', lambda: [(1 << i) - 1 for i in range(32)])
    f.add_whole('mov.u32 d, %lanemask_ge', 'b32', '', lambda: [0xFFFFFFFF << i & 0xFFFFFFFF for i in range(32)])
    f.add_whole('mov.u32 d, %laneid', 'b32', '', lambda: list(range(32)))
    f.add_whole('mov.u32 d, WARP_SZ', 'b32', '', lambda: [32] * 32)
    f.add('{ .reg .b32 x, y; add.cc.u32 x, a, b; addc.u32 d, c, 0; }', 'u32', 'u32 u32 u32', lambda x, y, z: z + (x + y >> 32))
    f.add('{ .reg .b32 x; sub.cc.u32 x, a, b; subc.u32 d, c, 0; }', 'u32', 'u32 u32 u32', lambda x, y, z: z - (x < y))
    f.add('{ .reg .b32 x; mad.lo.cc.u32 x, a, b, c; madc.hi.u32 d, a, b, 0; }', 'u32', 'u32 u32 u32', lambda x, y, z: x * y + z >> 32)
    f.add('{ .reg .b64 x; add.cc.u64 x, a, b; addc.u64 d, c, 1; }', 'u64', 'u64 u64 u64', lambda x, y, z: z + (x + y >> 64) + 1)
    return f


def memories():
    """Own 64 bytes of shared memory a thread, at register `own`."""
    f = Family('memory', shared=2048)
    for t in ('u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64'):
        f.add(f'st.shared.b64 [own], a; ld.shared.{t} d, [own]' + ('; and.b16 d, d, 255' if BITS[t] == 8 else ''), t, 'u64', lambda x, k=t: x)
        f.add(f'st.shared.b64 [own+8], 0; st.shared.{t} [own+9+-1], a; ld.shared.u64 d, [own+8]', 'u64', f'u{max(16, BITS[t])}', lambda x, n=BITS[t]: x % 2**n)
    for t in ('s8', 's16', 'u16'):  # loads into a wider register extend
        f.add(f'st.shared.b32 [own], a; ld.shared.{t} d, [own]', 's32', 'u32', lambda x, k=t: decode(k, x % 2 ** BITS[k]))
    f.add('st.shared.v2.b32 [own+16], {a, b}; ld.shared.b64 d, [own+16]', 'b64', 'b32 b32', lambda x, y: y << 32 | x)
    f.add('st.shared.v4.b32 [own+16], {a, b, c, 7}; { .reg .b32 x, y; ld.shared.v4.b32 {x, _, y, _}, [own+16]; mov.b64 d, {y, x}; }', 'b64', 'b32 b32 b32', lambda x, y, z: x << 32 | z)
    f.add('{ .reg .b16 x; cvt.u16.u32 x, a; st.shared.v4.u16 [own], {x, x, 1, 2}; ld.shared.u64 d, [own]; }', 'b64', 'b32', lambda x: (x & 0xFFFF) * 0x10001 | 1 << 32 | 2 << 48)
    f.add('st.shared.v2.b64 [own], {a, b}; { .reg .b64 x; ld.shared.v2.u64 {x, d}, [own]; }', 'b64', 'b64 b64', lambda x, y: y)
    f.add('{ .reg .b64 g; cvt.u64.u32 g, own; cvta.shared.u64 g, g; st.u32 [g+4], a; ld.volatile.u32 d, [g+4]; }', 'b32', 'b32', lambda x: x)
    f.add('{ .reg .b64 g, h; cvt.u64.u32 g, own; cvta.shared.u64 g, g; cvta.to.shared.u64 h, g; sub.s64 h, h, 0; cvt.u32.u64 d, h; sub.u32 d, d, own; }', 'b32', 'b32', lambda x: 0)
    f.add('{ .local .b8 l[32]; .reg .b64 g; mov.b64 g, l; st.local.u64 [l+8], a; ld.local.u32 d, [g+12]; }', 'b32', 'b64', lambda x: x >> 32)
    for order in ('relaxed.cta', 'relaxed.gpu', 'acquire.sys'):
        f.add(f'st.shared.b32 [own], a; ld.{order}.shared.b32 d, [own]', 'b32', 'b32', lambda x: x)
    f.add('st.release.gpu.shared.b32 [own], a; fence.acq_rel.gpu; membar.cta; ld.weak.shared.b32 d, [own]', 'b32', 'b32', lambda x: x)
    ops = {'add': (('u32', 's32', 'u64', 'f32', 'f64', 'f16x2', 'bf16x2', 'f16', 'bf16'), lambda x, y: x + y), 'min': (('u32', 's32', 'u64', 's64'), min), 'max': (('u32', 's32', 'u64', 's64'), max),
           'and': (('b32', 'b64'), lambda x, y: x & y), 'or': (('b32', 'b64'), lambda x, y: x | y), 'xor': (('b32', 'b64'), lambda x, y: x ^ y), 'exch': (('b32', 'b64'), lambda x, y: y),
           'inc': (('u32',), lambda x, y: 0 if x >= y else x + 1), 'dec': (('u32',), lambda x, y: y if x == 0 or x > y else x - 1)}
    for op, (types, fn) in ops.items():
        for t in types:
            n, spelled = BITS[t], 'noftz.' if t in ('f16', 'bf16', 'f16x2', 'bf16x2') else ''
            raw = f'b{n}'
            if t in ('f16x2', 'bf16x2'):
                g = lambda x, y, k=t[:-2]: (exactly(k, add, x[0], y[0]), exactly(k, add, x[1], y[1]))
            elif t in ('f32', 'f64', 'f16', 'bf16'):
                g = lambda x, y, k=t: exactly(k, add, x, y)
            else:
                g = fn
            f.add(f'st.shared.{raw} [own], a; {{ .reg .b{n} x; atom.relaxed.gpu.shared.{op}.{spelled}{t} x, [own], b; }} ld.shared.{raw} d, [own]', t, f'{t} {t}', g)
            f.add(f'st.shared.{raw} [own], a; atom.shared.{op}.{spelled}{t} d, [own], b', raw, f'{raw} {raw}', lambda x, y: x)
            if op != 'exch':
                f.add(f'st.shared.{raw} [own], a; red.shared.{op}.{spelled}{t} [own], b; ld.shared.{raw} d, [own]', t, f'{t} {t}', g)
    for n in (16, 32, 64):
        f.add(f'st.shared.b{n} [own], a; {{ .reg .b{n} x; atom.acq_rel.cta.shared.cas.b{n} x, [own], a, b; atom.shared.cas.b{n} x, [own], c, 7; }} ld.shared.b{n} d, [own]', f'b{n}', f'b{n} b{n} b{n}',
              lambda x, y, z: 7 if y == z else y)
    return f


def newer():
    f = Family('newer_forms', 100)
    f.add('max.f32 d, a, b, c', 'f32', 'f32 f32 f32', lambda x, y, z: maximum(maximum(x, y), z))
    f.add('min.NaN.f32 d, a, b, c', 'f32', 'f32 f32 f32', lambda x, y, z: minimum(minimum(x, y, True), z, True))
    lift2 = lambda g: lambda x, y: (g(x[0], y[0]), g(x[1], y[1]))
    for suffix, mode in ROUNDINGS.items():
        for name, op in (('add', add), ('sub', sub), ('mul', mul)):
            f.add(f'{name}.{suffix}.f32x2 d, a, b', 'f32x2', 'f32x2 f32x2', lift2(lambda x, y, o=op, m=mode: exactly('f32', o, x, y, mode=m)))
        f.add(f'fma.{suffix}.f32x2 d, a, b, c', 'f32x2', 'f32x2 f32x2 f32x2',
              lambda x, y, z, m=mode: tuple(exactly('f32', fma3, x[i], y[i], z[i], mode=m) for i in range(2)))
    return f


FAMILIES = [integers(), bits_family(), compares(), floats(), halves(), conversions(), shuffles(), memories(), newer()]
