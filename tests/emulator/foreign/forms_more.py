"""Further families of forms.py: the rest of what coverage.txt lists for ordinary instructions, mostly one row for each combination
of modifiers."""
import math
from fractions import Fraction
import numpy as np
from cases_scalar import directed, rounded, root, to_small
from forms import (Family, ROUNDINGS, FORMATS, BITS, add, sub, mul, div, fma3, flush, clamp, saturate, minimum, maximum, exactly, half_fma,
                   signed_like, from_int, narrow, narrow2, encode, decode, signed)
from harness import rng, decode as small_decode, e2m1, e4m3, e5m2, from_bf16, to_bf16

FULL = '0xffffffff'
RULES = {'add': add, 'sub': sub, 'mul': mul}


def quiet(t, text, canonical):
    """The text with a result of NaN, whose sign PTX leaves open, made one."""
    return f'{{ .reg .pred q; setp.num.{t} q, a, a; {text}; selp.b{BITS[t]} d, d, {canonical}, q; }}'


def flush_half(v): return math.copysign(0.0, v) if abs(v) < 2.0**-14 else v


# ---- moves and registers

def moves():
    f = Family('moves')
    for t in ('f32', 'f64', 's16', 's32', 's64', 'u16', 'b64'):
        raw = f'b{BITS[t]}'
        f.add(f'mov.{t} d, a', raw, raw, lambda x: x)
    f.add('{ .reg .b128 q; mov.b128 q, {a, b}; mov.b128 {_, d}, q; }', 'b64', 'b64 b64', lambda x, y: y)
    f.add('{ .reg .b128 q, w; mov.b128 q, {a, b}; mov.b128 w, q; mov.b128 {d, _}, w; }', 'b64', 'b64 b64', lambda x, y: x)
    for name, value in (('ntid.x', 32), ('ntid.y', 1), ('ntid.z', 1), ('nctaid.x', 1), ('nctaid.y', 1), ('nctaid.z', 1), ('ctaid.x', 0), ('ctaid.y', 0), ('ctaid.z', 0), ('tid.y', 0), ('tid.z', 0),
                        ('warpid', 0), ('nwarpid', 64), ('cluster_ctaid.x', 0), ('cluster_ctaid.y', 0), ('cluster_ctaid.z', 0), ('cluster_nctaid.x', 1), ('cluster_nctaid.y', 1), ('cluster_nctaid.z', 1),
                        ('clusterid.x', 0), ('clusterid.y', 0), ('clusterid.z', 0), ('nclusterid.x', 1), ('nclusterid.y', 1), ('nclusterid.z', 1), ('cluster_ctarank', 0), ('cluster_nctarank', 1)):
        f.add(f'mov.u32 d, %{name}', 'u32', '', lambda v=value: v)
    f.add('mov.pred d, %is_explicit_cluster', 'pred', '', lambda: False)
    for which, at in (('tid.x', lambda i: i), ('lanemask_eq', lambda i: 1 << i), ('lanemask_le', lambda i: (2 << i) - 1), ('lanemask_gt', lambda i: 0xFFFFFFFF & ~((2 << i) - 1))):
        f.add_whole(f'mov.u32 d, %{which}', 'b32', '', lambda g=at: [g(i) for i in range(32)])
    f.add('{ .reg .b32 x; mov.u32 x, %smid; mov.u32 d, %nsmid; setp.lt.u32 d, x, d; }'.replace('mov.u32 d, %nsmid', '.reg .b32 n; mov.u32 n, %nsmid').replace('x, d;', 'x, n;'), 'pred', '', lambda: True)
    f.add('{ .reg .b64 x, y; mov.u64 x, %gridid; mov.u64 y, %gridid; setp.eq.u64 d, x, y; }', 'pred', '', lambda: True)
    f.add('{ .reg .b32 x, y; mov.u32 x, %clock; mov.u32 y, %clock; sub.u32 y, y, x; setp.ge.s32 d, y, 0; }', 'pred', '', lambda: True)
    for name in ('clock64', 'globaltimer'):
        f.add(f'{{ .reg .b64 x, y; mov.u64 x, %{name}; mov.u64 y, %{name}; setp.ge.u64 d, y, x; }}', 'pred', '', lambda: True)
    return f


# ---- integers

def integers():
    f = Family('integers_more')
    for n in (16, 32, 64):
        f.add(f'shr.b{n} d, a, b', f'b{n}', f'b{n} u32', lambda x, y, k=n: x >> min(y, k))
    f.add('add.s16x2 d, a, b', 's16x2', 's16x2 s16x2', lambda x, y: (x[0] + y[0], x[1] + y[1]))
    low24 = lambda v, sign: signed(v & 0xFFFFFF, 24) if sign else v & 0xFFFFFF
    for t, sign in (('u32', False), ('s32', True)):
        f.add(f'mad24.hi.{t} d, a, b, c', t, f'{t} {t} {t}', lambda x, y, z, k=sign: (low24(x, k) * low24(y, k) >> 16) + z)
    f.add('mad24.hi.sat.s32 d, a, b, c', 's32', 's32 s32 s32', lambda x, y, z: clamp((low24(x, True) * low24(y, True) >> 16) + z, 32, True))
    for n in (32, 64):
        find = lambda x, k=n: k - 1 - (x.bit_length() - 1) if x else 0xFFFFFFFF
        f.add(f'bfind.shiftamt.s{n} d, a', 'u32', f's{n}', lambda x, g=find: g(x if x >= 0 else ~x))
    f.add('szext.clamp.u32 d, a, b', 'u32', 'u32 u32', lambda x, y: x & (1 << min(y, 32)) - 1)
    f.add('szext.wrap.s32 d, a, b', 's32', 's32 u32', lambda x, y: 0 if y % 32 == 0 else signed(x, y % 32))
    for op in ('and', 'or'):
        join = {'and': lambda x, y: x and y, 'or': lambda x, y: x or y}[op]
        f.add(f'{{ .reg .b32 x; .reg .pred q; setp.lt.s32 q, c, 0; lop3.{op}.b32 x|d, a, b, c, 0x96, q; }}', 'pred', 'b32 b32 s32',
              lambda x, y, z, g=join: g((x ^ y ^ z & 0xFFFFFFFF) != 0, z < 0))
    # carries: the second instruction of a chain gives the result
    for t in ('u32', 's32', 'u64', 's64'):
        n, low = BITS[t], lambda v, k=BITS[t]: v % 2**k
        carry = lambda x, y, g=low, k=n: g(x) + g(y) >> k
        borrow = lambda x, y, g=low: int(g(x) < g(y))
        three = f'{t} {t} {t}'
        f.add(f'{{ .reg .b{n} x; add.cc.{t} x, a, b; addc.{t} d, c, 5; }}', t, three, lambda x, y, z, g=carry: z + 5 + g(x, y))
        f.add(f'{{ .reg .b{n} x; add.cc.{t} x, a, b; addc.cc.{t} x, c, b; addc.{t} d, 0, 0; }}', t, three, lambda x, y, z, g=carry, h=low, k=n: h(z) + h(y) + g(x, y) >> k)
        f.add(f'{{ .reg .b{n} x; sub.cc.{t} x, a, b; subc.{t} d, c, 5; }}', t, three, lambda x, y, z, g=borrow: z - 5 - g(x, y))
        f.add(f'{{ .reg .b{n} x; sub.cc.{t} x, a, b; subc.cc.{t} x, c, b; subc.{t} d, 0, 0; }}', t, three, lambda x, y, z, g=borrow, h=low: -int(h(z) - h(y) - g(x, y) < 0))
        product = lambda x, y, part, g=low, k=n: g(x * y) if part == 'lo' else g(x * y >> k)
        for part in ('lo', 'hi'):
            f.add(f'{{ .reg .b{n} x; mad.{part}.cc.{t} x, a, b, c; addc.{t} d, 0, 0; }}', t, three, lambda x, y, z, g=product, p=part, h=low, k=n: g(x, y, p) + h(z) >> k)
            f.add(f'{{ .reg .b{n} x; add.cc.{t} x, a, b; madc.{part}.{t} d, a, b, c; }}', t, three, lambda x, y, z, g=product, p=part, h=carry: g(x, y, p) + z + h(x, y))
            f.add(f'{{ .reg .b{n} x; add.cc.{t} x, a, b; madc.{part}.cc.{t} x, a, b, c; addc.{t} d, 0, 0; }}', t, three,
                  lambda x, y, z, g=product, p=part, h=carry, w=low, k=n: g(x, y, p) + w(z) + h(x, y) >> k)
    return f


# ---- comparisons

TRUTH = {'eq': lambda x, y: x == y, 'ne': lambda x, y: x != y, 'lt': lambda x, y: x < y, 'le': lambda x, y: x <= y, 'gt': lambda x, y: x > y, 'ge': lambda x, y: x >= y}
JOIN = {'and': lambda x, y: x and y, 'or': lambda x, y: x or y, 'xor': lambda x, y: bool(x) != bool(y)}


def ordered(name):
    """A comparison of floats by name."""
    nan = lambda x, y: math.isnan(x) or math.isnan(y)
    if name == 'num': return lambda x, y: not nan(x, y)
    if name == 'nan': return nan
    if name in TRUTH: return lambda x, y: not nan(x, y) and TRUTH[name](x, y)
    return lambda x, y: nan(x, y) or TRUTH[name[:-1]](x, y)


def compares():
    f = Family('compares_more')
    for n in (16, 32, 64):
        for name in ('eq', 'ne'):
            f.add(f'setp.{name}.b{n} d, a, b', 'pred', f'b{n} b{n}', TRUTH[name])
    for t in ('u16', 'u64'):
        for name, ref in (('lo', 'lt'), ('ls', 'le'), ('hi', 'gt'), ('hs', 'ge')):
            f.add(f'setp.{name}.{t} d, a, b', 'pred', f'{t} {t}', TRUTH[ref])
    for name in [*TRUTH, *(k + 'u' for k in TRUTH), 'num', 'nan']:
        f.add(f'setp.{name}.ftz.f32 d, a, b', 'pred', 'f32 f32', lambda x, y, g=ordered(name): g(flush(x), flush(y)))
    for name in ('lt', 'ge'):
        for op, join in JOIN.items():
            for t in ('s32', 'u32', 'f32'):
                f.add(f'setp.{name}.{op}.{t} d, a, b, c', 'pred', f'{t} {t} pred', lambda x, y, z, g=ordered(name), h=join: h(g(x, y), z))
    for name in ('lt', 'gt'):
        for t in ('f16x2', 'bf16x2'):
            f.add(f'{{ .reg .pred q; setp.{name}.{t} d|q, a, b; }}', 'pred', f'{t} {t}', lambda x, y, g=TRUTH[name]: g(x[0], y[0]))
            f.add(f'{{ .reg .pred q; setp.{name}.{t} q|d, a, b; }}', 'pred', f'{t} {t}', lambda x, y, g=TRUTH[name]: g(x[1], y[1]))
    for t in ('s16', 's64'):
        f.add(f'selp.{t} d, a, b, c', t, f'{t} {t} pred', lambda x, y, z: x if z else y)
    for to in ('u32', 's32', 'f32'):
        yes = 1.0 if to == 'f32' else -1
        for t in ('u32', 's32', 'f32'):
            for name in TRUTH:
                f.add(f'set.{name}.{to}.{t} d, a, b', to, f'{t} {t}', lambda x, y, g=ordered(name), v=yes: v if g(x, y) else 0.0 if v == 1.0 else 0)
    pairs = lambda g: lambda x, y: tuple(1.0 if g(x[i], y[i]) else 0.0 for i in range(2))
    f.add('set.geu.f16x2.f16x2 d, a, b', 'f16x2', 'f16x2 f16x2', pairs(ordered('geu')))
    f.add('set.lt.bf16x2.bf16x2 d, a, b', 'bf16x2', 'bf16x2 bf16x2', pairs(ordered('lt')))
    for name in ('ne', 'lt'):
        for op, join in JOIN.items():
            for t in ('u32', 'f32'):
                f.add(f'set.{name}.{op}.u32.{t} d, a, b, c', 'u32', f'{t} {t} pred', lambda x, y, z, g=ordered(name), h=join: -1 if h(g(x, y), z) else 0)
    for t in ('b16', 'b32', 'b64', 'u32', 's32', 'u64', 's64', 'f32', 'f64'):
        raw = f'b{BITS[t]}'
        for by in ('s32', 'f32'):
            f.add(f'slct.{t}.{by} d, a, b, c', raw, f'{raw} {raw} {by}', lambda x, y, z: x if z >= 0 else y)
    return f


# ---- conversions

def to_precision(x, digits):
    """An integer to the nearest value of that many binary digits, ties to even, as a float."""
    size = abs(x).bit_length()
    if size <= digits: return float(x)
    unit = 1 << size - digits
    low, rest = abs(x) // unit, abs(x) % unit
    low += rest * 2 > unit or rest * 2 == unit and low & 1
    return float(low * unit) * (-1 if x < 0 else 1)


def towards_zero_bf16(v):
    """A float32 cut to bf16."""
    if not math.isfinite(v): return v
    return float(from_bf16(np.uint16(int(np.float32(v).view(np.uint32)) >> 16)))


def relu(v): return v if math.isnan(v) else v if v > 0 else 0.0


def conversions():
    f = Family('conversions_more')
    kinds = ('u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64')
    for to in kinds:
        for source in kinds:
            if BITS[source] > BITS[to] or (BITS[source] == BITS[to] and source != to):
                f.add(f'cvt.sat.{to}.{source} d, a', to, source, lambda x, k=to: clamp(x, BITS[k], k[0] == 's'))
    for to in ('f32', 'f64', 'f16'):
        for source in ('u8', 's8', 'u16', 's16'):
            for mode, way in ROUNDINGS.items():
                f.add(f'cvt.{mode}.{to}.{source} d, a', to, source, lambda x, k=to, m=way: from_int(k, x, m))
    for source in kinds[2:]:
        f.add(f'cvt.rn.bf16.{source} d, a', 'bf16', source, lambda x: to_precision(x, 8))
    cut = {('rn', 'f16'): lambda v: narrow('f16', v, 'rn'), ('rz', 'f16'): lambda v: narrow('f16', v, 'rz'), ('rn', 'bf16'): lambda v: v, ('rz', 'bf16'): towards_zero_bf16}
    for (mode, t), g in cut.items():
        f.add(f'cvt.{mode}.{t}.f32 d, a', t, 'f32', lambda x, h=g: h(x))
        f.add(f'cvt.{mode}.relu.{t}.f32 d, a', t, 'f32', lambda x, h=g: h(relu(x)))
        f.add(f'cvt.{mode}.{t}x2.f32 d, a, b', t + 'x2', 'f32 f32', lambda x, y, h=g: (h(y), h(x)))
        f.add(f'cvt.{mode}.relu.{t}x2.f32 d, a, b', t + 'x2', 'f32 f32', lambda x, y, h=g: (h(relu(y)), h(relu(x))))
    f.add('setp.num.f16 c, a, a; cvt.f64.f16 d, a', 'f64', 'f16 f16 pred', lambda x, y, z: x)
    for mode, way in ROUNDINGS.items():
        f.add(f'{{ .reg .pred q; setp.num.f64 q, a, a; cvt.{mode}.f16.f64 d, a; selp.b16 d, d, 0x7FFF, q; }}', 'f16', 'f64', lambda x, m=way: narrow('f16', x, m))
    f.add('cvt.rn.ftz.f16.f32 d, a', 'f16', 'f32', lambda x: narrow('f16', flush(x), 'rn'))
    for mode, way in (('rn', 'rn'), ('rz', 'rz')):
        f.add(f'cvt.{mode}.ftz.sat.f16.f32 d, a', 'f16', 'f32', lambda x, m=way: narrow('f16', saturate(x), m))
    whole = {'rni': round, 'rzi': math.trunc, 'rmi': math.floor, 'rpi': math.ceil}

    def integer(x, to, source, fn):
        if math.isnan(x): return 2 ** (BITS[to] - 1) if source == 'f64' or BITS[to] == 64 else 0
        if math.isinf(x): return clamp(2**70 if x > 0 else -2**70, BITS[to], to[0] == 's')
        return clamp(fn(x), BITS[to], to[0] == 's')
    for mode, fn in whole.items():
        for to in ('u8', 's8', 'u16', 's16'):
            for source in ('f32', 'f64', 'f16'):
                f.add(f'cvt.{mode}.{to}.{source} d, a', to, source, lambda x, k=to, s=source, g=fn: integer(x, k, s, g))
        for to in ('u32', 's32'):
            f.add(f'cvt.{mode}.ftz.{to}.f32 d, a', to, 'f32', lambda x, k=to, g=fn: integer(flush(x), k, 'f32', g))
            f.add(f'cvt.{mode}.{to}.bf16 d, a', to, 'bf16', lambda x, k=to, g=fn: integer(x, k, 'bf16', g))
        keep = lambda x, g=fn: x if not math.isfinite(x) else math.copysign(float(g(x)), x)
        f.add(f'cvt.{mode}.ftz.f32.f32 d, a', 'f32', 'f32', lambda x, g=keep: g(flush(x)))
        f.add(f'cvt.{mode}.sat.f32.f32 d, a', 'f32', 'f32', lambda x, g=keep: saturate(g(x)))
        f.add(f'cvt.{mode}.ftz.sat.f32.f32 d, a', 'f32', 'f32', lambda x, g=keep: saturate(g(flush(x))))
    return f


def tf32(x, mode):
    """A finite float32 rounded to 10 digits behind the point; nearest with ties to even, away, or cut."""
    u = int(np.float32(x).view(np.uint32))
    low, u = u & 0x1FFF, u & ~0x1FFF
    up = {'rn': low > 0x1000 or low == 0x1000 and u & 0x2000, 'rna': low >= 0x1000, 'rz': False}[mode]
    return u + 0x2000 if up else u


def tf32_conversions():
    f = Family('tf32_conversions', 100)
    finite = lambda text: f'{{ .reg .pred q; testp.finite.f32 q, a; {text}; selp.b32 d, d, 0, q; }}'
    for mode in ('rn', 'rna', 'rz'):
        f.add(finite(f'cvt.{mode}.tf32.f32 d, a'), 'b32', 'f32', lambda x, m=mode: tf32(x, m) if math.isfinite(x) else 0)
        most = lambda x, m: 0x7F7FE000 | int(x < 0) << 31 if tf32(x, m) & 0x7FFFFFFF >= 0x7F800000 else tf32(x, m)
        f.add(finite(f'cvt.{mode}.satfinite.tf32.f32 d, a'), 'b32', 'f32', lambda x, m=mode: 0 if not math.isfinite(x) else
              (0x7F7FE000 | int(x < 0) << 31 if (tf32(x, m) & 0x7FFFFFFF) >= 0x7F800000 else tf32(x, m)))
    for mode in ('rn', 'rz'):
        f.add(finite(f'cvt.{mode}.relu.tf32.f32 d, a'), 'b32', 'f32', lambda x, m=mode: tf32(max(x, 0.0), m) if math.isfinite(x) and x > 0 else 0)
    return f


def e2m3(code): return small_decode(code, 2, 3)
def e3m2(code): return small_decode(code, 3, 2)


SMALL = {'e4m3x2': (e4m3, 448, 8, 7), 'e5m2x2': (e5m2, 57344, 8, 7), 'e2m1x2': (e2m1, 6, 4, 3), 'e2m3x2': (e2m3, 7.5, 8, 5), 'e3m2x2': (e3m2, 28, 8, 5)}


def small_code(kind, x):
    """The code of the nearest value, saturating; NaN is 0x7F, and the largest value where the format has none."""
    decoder, most, _, size = SMALL[kind]
    if size == 7: return to_small(x, decoder, most)
    codes = range(1 << size)
    if math.isnan(x): return len(codes) - 1
    value = min(abs(x), most)
    best = min(codes, key=lambda k: (abs(float(decoder(k)) - value), k & 1))
    return best | (1 << size if math.copysign(1, x) < 0 else 0)


def ue8m0_code(x, up, satfinite):
    """Exponent of |x|, cut or rounded up; NaN is 255."""
    x = abs(x)
    if math.isnan(x): return 255
    if math.isinf(x): return 254 if satfinite else 255
    if x == 0: return 0
    m, e = math.frexp(x)  # x = m 2^e, m in [0.5, 1)
    code = e - 1 + 127 + (1 if up and m > 0.5 else 0)
    return max(0, min(code, 254 if satfinite else 255))


def small_conversions():
    f = Family('small_conversions', 100)
    f.preamble = ''
    for t, (decoder, most, width, _) in SMALL.items():
        wide = width == 8
        down = (lambda text: text) if wide else (lambda text: f'{{ .reg .b8 n; {text.replace(" d,", " n,")}; cvt.u16.u8 d, n; }}')
        for name, before in (('', lambda v: v), ('.relu', relu)):
            f.add(down(f'cvt.rn.satfinite{name}.{t}.f32 d, a, b'), 'b16', 'f32 f32', lambda x, y, k=t, g=before, w=width: small_code(k, g(x)) << w | small_code(k, g(y)))
            if t in ('e4m3x2', 'e5m2x2'):
                f.add(f'cvt.rn.satfinite{name}.{t}.f16x2 d, a', 'b16', 'f16x2', lambda x, k=t, g=before: small_code(k, g(x[0])) | small_code(k, g(x[1])) << 8)
            up = lambda text, w=wide: text if w else f'{{ .reg .b8 n; cvt.u8.u16 n, a; {text.replace(", a", ", n")}; }}'
            mask = (1 << (8 if width == 8 else 4)) - 1
            bits = {'e2m3x2': 63, 'e3m2x2': 63}.get(t, mask)

            def value(code, k=t, d=decoder, m=bits):
                code &= m
                if k == 'e4m3x2' and code & 0x7F == 0x7F or k == 'e5m2x2' and (code & 0x7F) > 0x7C: return math.nan
                if k == 'e5m2x2' and code & 0x7F == 0x7C: return -math.inf if code & 0x80 else math.inf
                return float(d(code))
            f.add(up(f'cvt.rn{name}.f16x2.{t} d, a'), 'f16x2', 'u16', lambda x, v=value, g=before, w=width: (g(v(x)), g(v(x >> w))))
    for mode in ('rz', 'rp'):
        for name in ('', '.satfinite'):
            code = lambda v, u=mode == 'rp', s=bool(name): ue8m0_code(v, u, s)
            f.add(f'cvt.{mode}{name}.ue8m0x2.f32 d, a, b', 'b16', 'f32 f32', lambda x, y, g=code: g(x) << 8 | g(y))
            f.add(f'cvt.{mode}{name}.ue8m0x2.bf16x2 d, a', 'b16', 'bf16x2', lambda x, g=code: g(x[0]) | g(x[1]) << 8)
    for t, n, sign in (('u16', 16, False), ('s16', 16, True)):
        f.add(f'cvt.pack.sat.{t}.s32 d, a, b', 'b32', 's32 s32', lambda x, y, k=sign: clamp(x, 16, k) % 65536 << 16 | clamp(y, 16, k) % 65536)
    for t, sign in (('u8', False), ('s8', True)):
        f.add(f'cvt.pack.sat.{t}.s32.b32 d, a, b, c', 'b32', 's32 s32 b32', lambda x, y, z, k=sign: z << 16 & 0xFFFFFFFF | clamp(x, 8, k) % 256 << 8 | clamp(y, 8, k) % 256)
    return f


# ---- floating point

def floats():
    f = Family('float_modes')
    for name, op in RULES.items():
        for suffix, mode in (('', 'rn'), *(('.' + k, v) for k, v in ROUNDINGS.items())):
            plain = lambda x, y, o=op, m=mode: exactly('f32', o, x, y, mode=m)
            flushed = lambda x, y, o=op, m=mode: flush(exactly('f32', o, flush(x), flush(y), mode=m))
            f.add(f'{name}{suffix}.f32 d, a, b', 'f32', 'f32 f32', plain)
            f.add(f'{name}{suffix}.ftz.f32 d, a, b', 'f32', 'f32 f32', flushed)
            f.add(f'{name}{suffix}.sat.f32 d, a, b', 'f32', 'f32 f32', lambda x, y, g=plain: saturate(g(x, y)))
            f.add(f'{name}{suffix}.ftz.sat.f32 d, a, b', 'f32', 'f32 f32', lambda x, y, g=flushed: saturate(g(x, y)))
        f.add(f'{name}.f64 d, a, b', 'f64', 'f64 f64', lambda x, y, o=op: exactly('f64', o, x, y))
    three = 'f32 f32 f32'
    for suffix, mode in ROUNDINGS.items():
        plain = lambda x, y, z, m=mode: exactly('f32', fma3, x, y, z, mode=m)
        flushed = lambda x, y, z, g=plain: flush(g(flush(x), flush(y), flush(z)))
        f.add(f'fma.{suffix}.ftz.f32 d, a, b, c', 'f32', three, flushed)
        f.add(f'fma.{suffix}.sat.f32 d, a, b, c', 'f32', three, lambda x, y, z, g=plain: saturate(g(x, y, z)))
        f.add(f'fma.{suffix}.ftz.sat.f32 d, a, b, c', 'f32', three, lambda x, y, z, g=flushed: saturate(g(x, y, z)))
        f.add(f'div.{suffix}.ftz.f32 d, a, b', 'f32', 'f32 f32', lambda x, y, m=mode: flush(exactly('f32', div, flush(x), flush(y), mode=m)))
        f.add(f'rcp.{suffix}.ftz.f32 d, a', 'f32', 'f32', lambda x, m=mode: flush(exactly('f32', div, 1.0, flush(x), mode=m)))
        f.add(f'sqrt.{suffix}.ftz.f32 d, a', 'f32', 'f32', lambda x, m=mode: (lambda v: math.nan if v < 0 else v if v == 0 else float(root(np.float32, v, m)))(flush(x)))
    f.add('mad.rn.f32 d, a, b, c', 'f32', three, lambda x, y, z: exactly('f32', fma3, x, y, z))
    f.add('mad.rn.f64 d, a, b, c', 'f64', 'f64 f64 f64', lambda x, y, z: exactly('f64', fma3, x, y, z))
    for name, g in (('min', minimum), ('max', maximum)):
        for ftz in ('', '.ftz'):
            for nan in ('', '.NaN'):
                before = flush if ftz else lambda v: v
                f.add(f'{name}{ftz}{nan}.f32 d, a, b', 'f32', 'f32 f32', lambda x, y, h=g, n=bool(nan), b=before: h(b(x), b(y), n))
                f.add(f'{name}{ftz}{nan}.xorsign.abs.f32 d, a, b', 'f32', 'f32 f32', lambda x, y, h=g, n=bool(nan), b=before: signed_like(h(abs(b(x)), abs(b(y)), n), x, y))
    f.add(quiet('f32', 'neg.ftz.f32 d, a', '0f7FFFFFFF'), 'f32', 'f32', lambda x: -flush(x))
    f.add(quiet('f32', 'abs.ftz.f32 d, a', '0f7FFFFFFF'), 'f32', 'f32', lambda x: abs(flush(x)))
    return f


def halves():
    f = Family('half_modes')
    lift2 = lambda g: lambda x, y: (g(x[0], y[0]), g(x[1], y[1]))
    lift3 = lambda g: lambda x, y, w: (g(x[0], y[0], w[0]), g(x[1], y[1], w[1]))
    lift1 = lambda g: lambda x: (g(x[0]), g(x[1]))
    for t in ('f16', 'bf16'):
        modes = [('', lambda v: v, lambda v: v), ('.sat', lambda v: v, saturate)] + [('.ftz', flush_half, flush_half), ('.ftz.sat', flush_half, lambda v: saturate(flush_half(v)))]
        for extra, before, after in modes if t == 'f16' else modes[:1]:
            for name, op in RULES.items():
                for rn in ('', '.rn'):
                    g = lambda x, y, o=op, k=t, b=before, a=after: a(exactly(k, o, b(x), b(y)))
                    f.add(f'{name}{rn}{extra}.{t} d, a, b', t, f'{t} {t}', g)
                    f.add(f'{name}{rn}{extra}.{t}x2 d, a, b', t + 'x2', f'{t}x2 {t}x2', lift2(g))
            fused = lambda x, y, w, k=t, b=before, a=after: a(half_fma(k, b(x), b(y), b(w)))
            f.add(f'fma.rn{extra}.{t} d, a, b, c', t, f'{t} {t} {t}', fused)
            f.add(f'fma.rn{extra}.{t}x2 d, a, b, c', t + 'x2', f'{t}x2 {t}x2 {t}x2', lift3(fused))
            if 'sat' not in extra:
                clipped = lambda x, y, w, g=fused: relu(g(x, y, w))
                f.add(f'fma.rn{extra}.relu.{t} d, a, b, c', t, f'{t} {t} {t}', clipped)
                f.add(f'fma.rn{extra}.relu.{t}x2 d, a, b, c', t + 'x2', f'{t}x2 {t}x2 {t}x2', lift3(clipped))
        for name, g in (('min', minimum), ('max', maximum)):
            for nan in ('', '.NaN'):
                plain = lambda x, y, h=g, n=bool(nan): h(x, y, n)
                sign = lambda x, y, h=g, n=bool(nan): signed_like(h(abs(x), abs(y), n), x, y)
                f.add(f'{name}{nan}.{t}x2 d, a, b', t + 'x2', f'{t}x2 {t}x2', lift2(plain))
                f.add(f'{name}{nan}.xorsign.abs.{t} d, a, b', t, f'{t} {t}', sign)
                f.add(f'{name}{nan}.xorsign.abs.{t}x2 d, a, b', t + 'x2', f'{t}x2 {t}x2', lift2(sign))
                if t == 'f16':
                    flushed = lambda x, y, h=plain: h(flush_half(x), flush_half(y))
                    f.add(f'{name}.ftz{nan}.f16 d, a, b', t, 'f16 f16', flushed)
                    f.add(f'{name}.ftz{nan}.f16x2 d, a, b', 'f16x2', 'f16x2 f16x2', lift2(flushed))
        for name, g in (('neg', lambda v: -v), ('abs', abs)):
            for ftz in ('', '.ftz') if t == 'f16' else ('',):
                h = lambda v, k=g, z=bool(ftz): k(flush_half(v) if z else v)
                f.add(quiet(t, f'{name}{ftz}.{t} d, a', '0x7FFF'), t, t, h)
                clean = f'{{ .reg .b16 x, y; .reg .pred q; mov.b32 {{x, y}}, a; setp.num.{t} q, x, x; selp.b16 x, x, 0, q; setp.num.{t} q, y, y; selp.b16 y, y, 0, q; mov.b32 a, {{x, y}}; }} '
                f.add(clean + f'{name}{ftz}.{t}x2 d, a', t + 'x2', t + 'x2', lift1(lambda v, k=h: k(0.0 if math.isnan(v) else v)))
    return f


def near_floats():
    """Approximations: PTX gives their error, not their bits."""
    f = Family('approximations', tolerance=2.0**-20)
    safe = lambda g: lambda *v: guarded(g, *v)

    def guarded(g, *v):
        with np.errstate(all='ignore'):
            return float(np.float32(g(*(np.float64(x) for x in v))))
    ops = {'ex2': np.exp2, 'rcp': lambda x: 1 / x, 'rsqrt': lambda x: 1 / np.sqrt(x), 'sqrt': np.sqrt, 'lg2': np.log2}
    for name, g in ops.items():
        exact = safe(g)
        # .ftz flushes; without it PTX takes and gives subnormals, except that rcp and the others keep their error bound there
        f.add(f'{name}.approx.ftz.f32 d, a', 'f32', 'f32', lambda x, h=exact: flush(h(flush(x))))
        f.add(f'{name}.approx.f32 d, a', 'f32', 'f32', lambda x, h=exact: h(x))
    f.add('tanh.approx.f32 d, a', 'f32', 'f32', safe(np.tanh))
    small = 'min.f32 a, a, 0f40490FDB; max.f32 a, a, 0fC0490FDB; '  # within pi PTX bounds the absolute error; NaN becomes pi
    bound = lambda x: float(np.float32(math.pi)) if math.isnan(x) else max(-float(np.float32(math.pi)), min(x, float(np.float32(math.pi))))
    for ftz in ('', '.ftz'):
        for name, g in (('sin', np.sin), ('cos', np.cos)):
            # rounded to a multiple of 2^-18: an absolute error of 2^-20 stays within the tolerance of 4
            f.add(small + f'{name}.approx{ftz}.f32 d, a; add.f32 d, d, 0f40800000', 'f32', 'f32', lambda x, h=g: float(np.float32(h(np.float64(bound(x))) + 4)))
        ordinary = 'min.f32 b, b, 0f4E000000; max.f32 b, b, 0f3E000000; '
        within = lambda y: 2.0**29 if math.isnan(y) else max(0.125, min(y, 2.0**29))
        for name in ('approx', 'full'):
            f.add(ordinary + f'div.{name}{ftz}.f32 d, a, b', 'f32', 'f32 f32', lambda x, y, z=bool(ftz): (lambda v: flush(v) if z else v)(guarded(np.divide, flush(x) if z else x, within(y))))
    return f


def near_halves():
    f = Family('half_approximations', tolerance=2.0**-6)
    lift = lambda g: lambda x: (g(x[0]), g(x[1]))

    def value(kind, g, x):
        with np.errstate(all='ignore'):
            return decode(kind, encode(kind, float(g(np.float64(x)))))
    for t, ftz in (('f16', ''), ('bf16', '.ftz')):
        exp2 = lambda x, k=t, z=bool(ftz): (flush if z else lambda v: v)(value(k, np.exp2, x))
        f.add(f'ex2.approx{ftz}.{t} d, a', t, t, exp2)
        f.add(f'ex2.approx{ftz}.{t}x2 d, a', t + 'x2', t + 'x2', lift(exp2))
        f.add(f'tanh.approx.{t} d, a', t, t, lambda x, k=t: value(k, np.tanh, x))
        f.add(f'tanh.approx.{t}x2 d, a', t + 'x2', t + 'x2', lift(lambda x, k=t: value(k, np.tanh, x)))
    return f


def near_doubles():
    f = Family('double_approximations', tolerance=2.0**-19)
    normal = 'abs.f64 a, a; min.f64 a, a, 0d7E37E43C8800759C; max.f64 a, a, 0d0010000000000000; '  # normal numbers; NaN becomes 1e300
    within = lambda x: 1e300 if math.isnan(x) else max(2.0**-1022, min(abs(x), 1e300))
    for ftz in ('', '.ftz'):
        f.add(normal + f'rsqrt.approx{ftz}.f64 d, a', 'f64', 'f64', lambda x: 1 / math.sqrt(within(x)))
    f.add(normal + 'rcp.approx.ftz.f64 d, a', 'f64', 'f64', lambda x: 1 / within(x) if within(x) < 2.0**1021 else 0.0)
    return f


def pairs():
    """f32x2, and what only sm_100 has."""
    f = Family('pairs', 100)
    for suffix, mode in ROUNDINGS.items():
        for name, op in RULES.items():
            g = lambda x, y, o=op, m=mode: flush(exactly('f32', o, flush(x), flush(y), mode=m))
            f.add(f'{name}.{suffix}.ftz.f32x2 d, a, b', 'f32x2', 'f32x2 f32x2', lambda x, y, h=g: (h(x[0], y[0]), h(x[1], y[1])))
        g = lambda x, y, z, m=mode: flush(exactly('f32', fma3, flush(x), flush(y), flush(z), mode=m))
        f.add(f'fma.{suffix}.ftz.f32x2 d, a, b, c', 'f32x2', 'f32x2 f32x2 f32x2', lambda x, y, z, h=g: tuple(h(x[i], y[i], z[i]) for i in range(2)))
    for name, op in RULES.items():
        f.add(f'{name}.f32x2 d, a, b', 'f32x2', 'f32x2 f32x2', lambda x, y, o=op: tuple(exactly('f32', o, x[i], y[i]) for i in range(2)))
    for name, g in (('min', minimum), ('max', maximum)):
        for absolute in ('', '.abs'):
            for nan in ('', '.NaN'):
                def whole(v, h=g, a=bool(absolute), n=bool(nan)):
                    v = [abs(x) if a else x for x in v]
                    result = v[0]
                    for x in v[1:]: result = h(result, x, n)
                    return [result] * 32
                f.add_whole(f'redux.sync.{name}{absolute}{nan}.f32 d, a, {FULL}', 'f32', 'f32', whole)
    return f


def votes():
    f = Family('votes')
    f.add_whole(f'{{ .reg .b32 x; and.b64 a, a, 0; match.all.sync.b64 x|d, a, {FULL}; }}', 'pred', 'b64', lambda v: [True] * 32)
    f.add_whole(f'{{ .reg .pred q; match.all.sync.b64 d|q, a, {FULL}; }}', 'b32', 'b64', lambda v: [0xFFFFFFFF if len(set(v)) == 1 else 0] * 32)
    return f


# ---- memories

def signed_part(kind, bits):
    return decode(kind, bits % 2 ** BITS[kind])


WEIGHTS = (1, 3, 5, 7)


def spaces():
    """`own` in shared, `far` in global, `near` in local memory: 64 bytes a thread. Vectors are summed with weights, so that order counts."""
    setup = '\n'.join(['  .local .align 16 .b8 stack[64];', '  .reg .b64 far, near, generic, wide;', '  mov.u64 far, field;', '  mul.wide.u32 generic, t, 64;', '  add.s64 far, far, generic;',
                       '  mov.u64 near, stack;', '  cvt.u64.u32 generic, own;', '  cvta.shared.u64 generic, generic;', '  cvta.local.u64 wide, near;'])
    f = Family('spaces', shared=2048, preamble='.global .align 16 .b8 field[2048];', setup=setup)
    places = [('.global', 'far'), ('.shared', 'own'), ('.local', 'near'), ('', 'generic'), ('', 'wide')]
    types = ('u8', 's8', 'b8', 'u16', 's16', 'b16', 'u32', 's32', 'b32', 'u64', 's64', 'b64', 'f32', 'f64')
    raw = lambda t: 'b' + t[1:] if t[0] == 'f' else t
    for space, at in places:
        for t in types:
            f.add(f'st{space}.b64 [{at}+8], a; ld{space}.{t} d, [{at}+8]', raw(t), 'u64', lambda x, k=raw(t): signed_part(k, x) if k[0] != 'b' else x % 2 ** BITS[k])
            f.add(f'st{space}.b64 [{at}], 0; st{space}.{t} [{at}], a; ld{space}.b64 d, [{at}]', 'u64', f'u{max(16, BITS[t])}', lambda x, n=BITS[t]: x % 2**n)
        for t in ('u8', 'u16', 'u32', 'u64', 'b8', 'b16', 'b32', 'b64', 'f32', 'f64', 's32'):
            for count in (2, 4):
                if BITS[t] * count > 128 or not space and t not in ('u32', 'b32', 'f32'): continue
                n = BITS[t]
                names = 'xyzw'[:count]
                register = f'.reg .b{max(n, 16)} {", ".join(names)}; .reg .b64 e;'
                widen = (lambda v: f'mov.b64 e, {v}') if n == 64 else (lambda v, k=n: f'cvt.u64.u{max(k, 16)} e, {v}')
                text = f'st{space}.v2.b64 [{at}], {{a, b}}; {{ {register} ld{space}.v{count}.{t} {{{", ".join(names)}}}, [{at}]; mov.b64 d, 0; '
                text += ' '.join(f'{widen(v)}; mad.lo.u64 d, e, {w}, d;' for v, w in zip(names, WEIGHTS)) + ' }'
                f.add(text, 'u64', 'u64 u64', lambda x, y, k=n, c=count: sum(((x | y << 64) >> k * i) % 2**k * WEIGHTS[i] for i in range(c)))
                values = '; '.join(f'cvt.u{max(n, 16)}.u64 {v}, e; mad.lo.u64 e, e, 3, b' if n < 64 else f'mov.b64 {v}, e; mad.lo.u64 e, e, 3, b' for v in names)
                text = f'{{ {register} mov.b64 e, a; {values}; st{space}.v2.b64 [{at}], {{0, 0}}; st{space}.v{count}.{t} [{at}], {{{", ".join(names)}}}; ld{space}.v2.b64 {{d, e}}, [{at}]; mad.lo.u64 d, e, 3, d; }}'

                def stored(x, y, k=n, c=count):
                    image, e = 0, x
                    for i in range(c):
                        image |= e % 2**k << k * i
                        e = e * 3 + y
                    return image % 2**64 + 3 * (image >> 64)
                f.add(text, 'u64', 'u64 u64', stored)
    for order in ('volatile', 'weak'):
        for space, at in places[:2] + places[3:] if order == 'volatile' else places:
            f.add(f'st.{order}{space}.u32 [{at}+4], a; ld.{order}{space}.u32 d, [{at}+4]', 'u32', 'u32', lambda x: x)
    for scope in ('cta', 'cluster', 'gpu', 'sys'):
        for space, at in places[:2]:
            for t in ('b32', 'u64'):
                for down, up in (('relaxed', 'relaxed'), ('release', 'acquire')):
                    f.add(f'st{space}.b64 [{at}], 0; st.{down}.{scope}{space}.{t} [{at}], a; ld.{up}.{scope}{space}.{t} d, [{at}]', t, t, lambda x: x)
    f.add('st.mmio.relaxed.sys.global.u32 [far], a; ld.mmio.relaxed.sys.global.u32 d, [far]', 'u32', 'u32', lambda x: x)
    for cache in ('ca', 'cg', 'cs', 'lu', 'cv'):
        f.add(f'st.global.u32 [far], a; ld.global.{cache}.u32 d, [far]', 'u32', 'u32', lambda x: x)
    for cache in ('wb', 'cg', 'cs', 'wt'):
        f.add(f'st.global.{cache}.u32 [far], a; ld.global.u32 d, [far]', 'u32', 'u32', lambda x: x)
    for space in ('shared::cta', 'shared::cluster'):
        for t in ('u32', 'b32', 'b64', 'u64'):
            f.add(f'st.{space}.{t} [own], a; ld.{space}.{t} d, [own]', t, t, lambda x: x)
    for suffix in ('', '.L1::no_allocate'):
        f.add(f'ld.global.nc{suffix}.u32 d, [in]', 'u32', 'u32', lambda x: x)  # the first operand of the first row
        f.rows.pop()
    return f


def constants():
    """Constant memory, read-only global memory, addresses of every space."""
    table = rng(77).integers(0, 256, 128, dtype=np.uint8).tobytes()
    listed = ', '.join(map(str, table))
    setup = '\n'.join(['  .reg .b64 far, generic, here;', '  .local .align 16 .b8 stack[64];'])
    f = Family('constants', shared=2048, setup=setup, preamble=f'.const .align 16 .b8 table[128] = {{{listed}}};\n.global .align 16 .b8 copy[128] = {{{listed}}};')
    pick = 'and.b64 a, a, 7; shl.b64 a, a, 4; mov.u64 far, {}; add.s64 far, far, a; '
    part = lambda x, t: decode(t, int.from_bytes(table[(x & 7) * 16:(x & 7) * 16 + 8], 'little') % 2 ** BITS[t])
    for t in ('u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 'b32', 'b64'):
        f.add(pick.format('table') + f'ld.const.{t} d, [far]', t, 'u64', lambda x, k=t: part(x, k))
    f.add(pick.format('table') + 'ld.const.f32 d, [far]', 'b32', 'u64', lambda x: part(x, 'b32'))
    for suffix in ('', '.L1::no_allocate'):
        f.add(pick.format('copy') + f'ld.global.nc{suffix}.u32 d, [far]', 'u32', 'u64', lambda x: part(x, 'u32'))
        f.add(pick.format('copy') + f'ld.global.nc{suffix}.b64 d, [far]', 'b64', 'u64', lambda x: part(x, 'b64'))
        f.add(pick.format('copy') + f'{{ .reg .b32 x, y, z; ld.global.nc{suffix}.v4.f32 {{x, y, z, d}}, [far]; }}', 'b32', 'u64', lambda x: int.from_bytes(table[(x & 7) * 16 + 12:(x & 7) * 16 + 16], 'little'))
    f.add(pick.format('copy') + 'ldu.global.u32 d, [far]', 'u32', 'u64', lambda x: part(x, 'u32'))
    where = {'global': 'copy', 'const': 'table', 'local': 'stack', 'shared': 'box', 'shared::cta': 'box'}
    for space, name in where.items():
        f.add(f'mov.u64 here, {name}; cvta.{space}.u64 generic, here; cvta.to.{space}.u64 far, generic; sub.s64 d, far, here', 'b64', '', lambda: 0)
        f.add(f'mov.u64 here, {name}; cvta.{space}.u64 generic, here; ld.u8 d, [generic]' if space in ('global', 'const') else f'st.{space}.u8 [{name}], 9; mov.u64 here, {name}; cvta.{space}.u64 generic, here; ld.u8 d, [generic]',
              'u8', '', lambda s=space: table[0] if s in ('global', 'const') else 9)
        for other in ('global', 'local', 'shared', 'shared::cta', 'shared::cluster'):
            yes = other == space or {other, space} <= {'shared', 'shared::cta'} or other == 'shared::cluster' and space in ('shared', 'shared::cta')
            if space == 'const': continue  # a GPU may have a window for it
            f.add(f'mov.u64 here, {name}; cvta.{space}.u64 generic, here; isspacep.{other} d, generic', 'pred', '', lambda v=yes: v)
    f.add('mov.u64 here, inputs; cvta.param.u64 generic, here; cvta.to.param.u64 far, generic; isspacep.param d, generic', 'pred', '', lambda: True)
    f.add('mov.u64 here, inputs; cvta.param.u64 generic, here; cvta.to.param.u64 far, generic; sub.s64 d, far, here', 'b64', '', lambda: 0)
    f.add('mapa.shared::cluster.u32 d, own, 0; sub.u32 d, d, own', 'b32', '', lambda: 0)
    f.add('cvt.u64.u32 here, own; mapa.shared::cluster.u64 d, here, 0; sub.s64 d, d, here', 'b64', '', lambda: 0)
    f.add('cvt.u64.u32 here, own; cvta.shared.u64 generic, here; mapa.u64 d, generic, 0; sub.s64 d, d, generic', 'b64', '', lambda: 0)
    f.add('getctarank.shared::cluster.u32 d, own', 'u32', '', lambda: 0)
    f.add('cvt.u64.u32 here, own; getctarank.shared::cluster.u64 d, here', 'u32', '', lambda: 0)
    f.add('cvt.u64.u32 here, own; cvta.shared.u64 generic, here; getctarank.u64 d, generic', 'u32', '', lambda: 0)
    for size, at in (('b32', 4), ('b64', 0)):
        f.add(f'ld.param.{size} d, [inputs+{at}]; sub.s{BITS[size]} d, d, d', size, '', lambda: 0)
    return f


# ---- atomics

def global_add(x, y):
    """Global memory's sums of f32 flush subnormals, shared memory's do not."""
    return flush(exactly('f32', add, flush(x), flush(y)))


def atomics():
    setup = '\n'.join(['  .reg .b64 far, generic;', '  mov.u64 far, field;', '  mul.wide.u32 generic, t, 64;', '  add.s64 far, far, generic;', '  cvt.u64.u32 generic, own;', '  cvta.shared.u64 generic, generic;'])
    f = Family('atomics', shared=2048, preamble='.global .align 16 .b8 field[2048];', setup=setup)
    half = ('f16', 'bf16', 'f16x2', 'bf16x2')
    ops = {'add': (('u32', 's32', 'u64', 'f32', 'f64') + half, lambda x, y: x + y), 'min': (('u32', 's32', 'u64', 's64'), min), 'max': (('u32', 's32', 'u64', 's64'), max),
           'and': (('b32', 'b64'), lambda x, y: x & y), 'or': (('b32', 'b64'), lambda x, y: x | y), 'xor': (('b32', 'b64'), lambda x, y: x ^ y), 'exch': (('b32', 'b64'), lambda x, y: y),
           'inc': (('u32',), lambda x, y: 0 if x >= y else x + 1), 'dec': (('u32',), lambda x, y: y if x == 0 or x > y else x - 1)}
    places = (('.global', 'far'), ('.shared', 'own'), ('', 'generic'))
    for op, (types, fn) in ops.items():
        for t in types:
            raw, spelled = f'b{BITS[t]}', 'noftz.' if t in half else ''
            if t in ('f16x2', 'bf16x2'): g = lambda x, y, k=t[:-2]: (exactly(k, add, x[0], y[0]), exactly(k, add, x[1], y[1]))
            elif t in ('f32', 'f64', 'f16', 'bf16'): g = lambda x, y, k=t: exactly(k, add, x, y)
            else: g = fn
            for space, at in places if t in ('u32', 'f32') else places[:2]:
                if t == 'f32': g = global_add if space == '.global' else lambda x, y: exactly('f32', add, x, y)
                if space == '.shared' and t in ('f16x2', 'bf16x2'): continue  # see docs/emulator.md: a GPU differs there
                f.add(f'st{space}.{raw} [{at}], a; {{ .reg .b{BITS[t]} x; atom{space}.{op}.{spelled}{t} x, [{at}], b; }} ld{space}.{raw} d, [{at}]', t, f'{t} {t}', g)
                f.add(f'st{space}.{raw} [{at}], a; atom{space}.{op}.{spelled}{t} d, [{at}], b', raw, f'{raw} {raw}', lambda x, y: x)
                if op != 'exch':
                    f.add(f'st{space}.{raw} [{at}], a; red{space}.{op}.{spelled}{t} [{at}], b; ld{space}.{raw} d, [{at}]', t, f'{t} {t}', g)
    for space, at in places[:2]:
        for n in (16, 32, 64):
            f.add(f'st{space}.b{n} [{at}], a; {{ .reg .b{n} x; atom{space}.cas.b{n} x, [{at}], a, b; atom{space}.cas.b{n} x, [{at}], c, 7; }} ld{space}.b{n} d, [{at}]', f'b{n}', f'b{n} b{n} b{n}', lambda x, y, z: 7 if y == z else y)
        wide = f'.reg .b128 v, w, old; mov.b128 v, {{a, b}}; mov.b128 w, {{b, c}}; st{space}.b128 [{at}], v;'
        f.add(f'{{ {wide} atom{space}.exch.b128 old, [{at}], w; ld{space}.b128 v, [{at}]; .reg .b64 p, q; mov.b128 {{p, _}}, old; mov.b128 {{_, q}}, v; xor.b64 d, p, q; }}', 'b64', 'b64 b64 b64', lambda x, y, z: x ^ z)
        f.add(f'{{ {wide} atom{space}.cas.b128 old, [{at}], v, w; atom{space}.cas.b128 old, [{at}], v, v; ld{space}.b128 v, [{at}]; .reg .b64 p, q; mov.b128 {{p, q}}, v; mad.lo.u64 d, q, 3, p; }}',
              'b64', 'b64 b64 b64', lambda x, y, z: x + 3 * y if (x, y) == (y, z) else y + 3 * z)
    for order in ('relaxed', 'acquire', 'release', 'acq_rel'):
        for scope in ('cta', 'cluster', 'gpu', 'sys'):
            f.add(f'st.global.u32 [far], a; {{ .reg .b32 x; atom.{order}.{scope}.global.add.u32 x, [far], b; }} ld.global.u32 d, [far]', 'u32', 'u32 u32', add)
        for scope in ('cta', 'gpu'):
            f.add(f'st.shared.u32 [own], a; {{ .reg .b32 x; atom.{order}.{scope}.shared.cas.b32 x, [own], a, b; }} ld.shared.u32 d, [own]', 'u32', 'u32 u32', lambda x, y: y)
    for order in ('relaxed', 'release'):
        for scope in ('cta', 'gpu', 'sys'):
            f.add(f'st.global.u32 [far], a; red.{order}.{scope}.global.add.u32 [far], b; ld.global.u32 d, [far]', 'u32', 'u32 u32', add)
    # vectors: element i of the result, by turns
    shapes = [('f32', 2), ('f32', 4)] + [(t, n) for t in ('f16', 'bf16') for n in (2, 4, 8)] + [(t, n) for t in ('f16x2', 'bf16x2') for n in (2, 4)]
    for t, count in shapes:
        n, spelled = BITS[t], '' if t == 'f32' else '.noftz'
        g = (lambda x, y, k=t[:-2]: (exactly(k, add, x[0], y[0]), exactly(k, add, x[1], y[1]))) if t.endswith('x2') else global_add if t == 'f32' else (lambda x, y, k=t: exactly(k, add, x, y))
        for at in (0, count - 1):
            init = '; '.join(f'st.global.b{n} [far+{n // 8 * i}], {"a" if i == at else "b"}' for i in range(count))
            values = '{' + ', '.join('c' if i == at else 'b' for i in range(count)) + '}'
            f.add(f'{init}; red.global.v{count}.{t}.add{spelled} [far], {values}; ld.global.b{n} d, [far+{n // 8 * at}]', t, f'{t} {t} {t}', lambda x, y, z, h=g: h(x, z))
            olds = ', '.join(f'o{i}' for i in range(count))
            f.add(f'{init}; {{ .reg .b{n} {olds}; atom.global.v{count}.{t}.add{spelled} {{{olds}}}, [far], {values}; mov.b{n} d, o{at}; }}', f'b{n}', f'b{n} b{n} b{n}', lambda x, y, z: x)
    return f


def hints():
    """Fences and hints, which change nothing; the answer is what memory held."""
    setup = '\n'.join(['  .reg .b64 far, policy;', '  .local .align 16 .b8 stack[64];', '  mov.u64 far, field;', '  mul.wide.u32 policy, t, 128;', '  add.s64 far, far, policy;'])
    f = Family('hints', 100, preamble='.global .align 128 .b8 field[4096];\n.const .align 64 .b8 fixed[128];', setup=setup)
    keep = lambda text: f.add(f'st.global.u32 [far], a; {text}; ld.global.u32 d, [far]', 'u32', 'u32', lambda x: x)
    for kind in ('sc', 'acq_rel', 'acquire', 'release'):
        for scope in ('cta', 'cluster', 'gpu', 'sys'):
            if kind in ('acquire', 'release'): continue
            keep(f'fence.{kind}.{scope}')
    for kind in ('acquire.sync_restrict::shared::cluster.cluster', 'release.sync_restrict::shared::cta.cluster'):
        keep(f'fence.{kind}')
    for where in ('', '.shared::cta', '.shared::cluster', '.global'):
        keep(f'fence.proxy.async{where}')
    for text in ('fence.proxy.alias', 'fence.mbarrier_init.release.cluster', 'membar.cta', 'membar.gl', 'membar.sys', 'griddepcontrol.wait', 'griddepcontrol.launch_dependents', 'nanosleep.u32 20', 'pmevent 3',
                 'prefetch.global.L1 [far]', 'prefetch.global.L2 [far]', 'prefetch.global.L2::evict_last [far]', 'prefetch.global.L2::evict_normal [far]', 'prefetch.local.L1 [stack]', 'prefetch.local.L2 [stack]', 'prefetchu.L1 [far]',
                 'applypriority.global.L2::evict_normal [far], 128', 'prefetch.tensormap [far]', 'prefetch.const.tensormap [fixed]'):
        keep(text)
    for scope in ('cta', 'cluster', 'gpu', 'sys'):
        keep(f'fence.proxy.tensormap::generic.release.{scope}')
        keep(f'fence.proxy.tensormap::generic.acquire.{scope} [far], 128')
    for kind in ('evict_first', 'evict_last', 'evict_normal', 'evict_unchanged'):
        keep(f'createpolicy.fractional.L2::{kind}.b64 policy, 0f3F800000; st.global.L2::cache_hint.u32 [far], a, policy')
    keep('createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 policy, 0f3F000000; st.global.L2::cache_hint.u32 [far], a, policy')
    keep('createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 policy, [far], 64, 128; st.global.L2::cache_hint.u32 [far], a, policy')
    keep('createpolicy.cvt.L2.b64 policy, 0; st.global.L2::cache_hint.u32 [far], a, policy')
    f.add('st.global.u32 [far], a; discard.global.L2 [far], 128; st.global.u32 [far], b; ld.global.u32 d, [far]', 'u32', 'u32 u32', lambda x, y: y)
    return f


FAMILIES = [moves(), integers(), compares(), conversions(), tf32_conversions(), small_conversions(), floats(), halves(), near_floats(), near_halves(), near_doubles(), pairs(), votes(), spaces(), constants(),
            atomics(), hints()]
