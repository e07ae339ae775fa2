"""Expectations for mma.cu: products in double precision, operands and results placed by the published layout formulas."""
import numpy as np
from harness import case, rng, to_bf16, from_bf16, decode, e4m3, e5m2, e2m1

PATTERN = 0x00C0DE00
SWIZZLE = {0: 0, 128: 2, 64: 4, 32: 6}


def image(codes, size, major, span, lbo, sbo, total):
    """Shared-memory bytes of a matrix of rows (M or N) x K: codes[r, k] of `size` bytes each, at a start of 1024's multiple."""
    out = np.zeros(total, np.uint8)
    per_unit, width = 16 // size, span // size if span else 0
    r, k = np.meshgrid(np.arange(codes.shape[0]), np.arange(codes.shape[1]), indexing='ij')
    if major == 'K':
        at = r % 8 * span + r // 8 * sbo + k * size if span else r % 8 * 16 + r // 8 * sbo + k // per_unit * lbo + k % per_unit * size
    elif span:
        at = r % width * size + r // width * lbo + k % 8 * span + k // 8 * sbo
    else:
        at = r % per_unit * size + r // per_unit * sbo + k % 8 * 16 + k // 8 * lbo
    at = at ^ (at >> 7 & {0: 0, 32: 1, 64: 3, 128: 7}[span]) << 4
    raw = np.ascontiguousarray(codes).view(np.uint8).reshape(*codes.shape, size)
    for b in range(size):
        out[at + b] = raw[:, :, b]
    return out


def descriptor(span, lbo, sbo):
    return SWIZZLE[span] << 61 | 1 << 46 | sbo >> 4 << 32 | lbo >> 4 << 16


def operands(c, a_desc, b_desc, a, b, a_step, b_step, steps, idesc, columns):
    head = np.zeros(6, np.uint64)
    head[0], head[1] = a_desc, b_desc
    head.view(np.uint32)[4:] = [len(a), len(b), a_step, b_step, steps, idesc, columns, 0]
    c.input('o', head)
    c.options = {'shared': len(a) + len(b) + 8192}


def idesc(m, n, a=0, b=0, d=1, **bits):
    word = d << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24
    return word | bits.get('negate_a', 0) << 13 | bits.get('negate_b', 0) << 14 | bits.get('transpose_a', 0) << 15 | bits.get('transpose_b', 0) << 16


def place(result, layout, lanes=128):
    """D of one CTA as lanes x columns over the pattern; `result` holds words."""
    m, n = result.shape
    columns = {'E': n // 2, 'G': n // 4, 'B': n // 2}.get(layout, n)
    out = np.full((lanes, columns), PATTERN, np.uint32)
    r, j = np.meshgrid(np.arange(m), np.arange(n), indexing='ij')
    lane = {'D': r, 'A': r, 'F': 32 * (r // 16) + r % 16, 'E': r + 64 * (j >= n // 2), 'B': r % 64 + 64 * (j >= n // 2), 'G': r + 32 * (j // max(n // 4, 1))}[layout]
    out[lane, j % columns] = result
    return out


def words(x, d=1):
    """Accumulator words: f32, f16 in the low half, or s32."""
    if d == 0:
        return np.asarray(x, np.float16).view(np.uint16).astype(np.uint32)
    return np.asarray(x, np.int32 if d == 2 else np.float32).view(np.uint32)


# ---- element types: code arrays, their values, bytes in shared memory

def make(kind, shape, seed):
    r = rng(seed)
    if kind == 'f16':
        v = r.integers(-4, 5, shape).astype(np.float16)
        return v.view(np.uint16), v.astype(np.float64)
    if kind == 'bf16':
        v = to_bf16(r.integers(-4, 5, shape))
        return v, from_bf16(v).astype(np.float64)
    if kind == 'tf32':
        v = (r.integers(-8, 9, shape) / 4).astype(np.float32)
        return v.view(np.uint32) | r.integers(0, 2, shape).astype(np.uint32), v.astype(np.float64)  # low bits must not count
    if kind in ('s8', 'u8'):
        v = r.integers(-128 if kind == 's8' else 0, 128 if kind == 's8' else 256, shape)
        return v.astype(np.uint8), v.astype(np.float64)
    e, m = {'e4m3': (4, 3), 'e5m2': (5, 2), 'e2m3': (2, 3), 'e3m2': (3, 2), 'e2m1': (2, 1)}[kind]
    width = 1 + e + m
    code = r.integers(0, 1 << width, shape)
    if kind in ('e4m3', 'e5m2'):  # exponents near one, so that every sum is exact
        code = (code & 0x80) | (5 << m) + (code & (4 << m) - 1) if kind == 'e4m3' else (code & 0x80) | (13 << m) + (code & (4 << m) - 1)
    value = decode(code, e, m)
    if width < 8:  # sixteen elements of 4 or 6 bits in the first bytes of a unit of 16
        packed = np.zeros((shape[0], shape[1] // 16, 16), np.uint8)
        groups = code.reshape(shape[0], -1, 16).astype(object)
        for at in np.ndindex(shape[0], shape[1] // 16):
            bits = sum(int(x) << width * i for i, x in enumerate(groups[at]))
            packed[at] = np.frombuffer(bits.to_bytes(16, 'little'), np.uint8)
        return packed.reshape(shape), value
    return code.astype(np.uint8), value


TYPE = {'f16': 0, 'bf16': 1, 'tf32': 2, 'e4m3': 0, 'e5m2': 1, 'e2m3': 3, 'e3m2': 4, 'e2m1': 5, 'u8': 0, 's8': 1}


def layout(codes, major, span):
    """Image, descriptor and step of a dense tile."""
    rows, k = codes.shape
    size = codes.itemsize
    k_step = 32 // size
    if major == 'K' and span:
        assert k * size == span or k * size <= span
        return image(codes, size, 'K', span, 0, 8 * span, (rows + 7) // 8 * 8 * span), descriptor(span, 16, 8 * span), 2
    if major == 'K':
        lbo, sbo = 128, k * size // 16 * 128
        return image(codes, size, 'K', 0, lbo, sbo, rows * k * size), descriptor(0, lbo, sbo), 2 * lbo // 16
    if span:
        lbo, sbo = k * span, 8 * span
        return image(codes, size, 'MN', span, lbo, sbo, rows * k * size), descriptor(span, lbo, sbo), k_step * span // 16
    sbo, lbo = 128, rows * size // 16 * 128
    return image(codes, size, 'MN', 0, lbo, sbo, rows * k * size), descriptor(0, lbo, sbo), k_step // 8 * lbo // 16


def dense(c, m, n, k, type_a, type_b, d=1, major=('K', 'K'), span=(128, 128), negate=(0, 0), where='D'):
    (ca, va), (cb, vb) = make(type_a, (m, k), 1), make(type_b, (n, k), 2)
    a, a_desc, a_step = layout(ca, major[0], span[0])
    b, b_desc, b_step = layout(cb, major[1], span[1])
    product = va @ vb.T * (-1 if negate[0] ^ negate[1] else 1) + 0.0
    descr = idesc(m, n, TYPE[type_a], TYPE[type_b], d, negate_a=negate[0], negate_b=negate[1], transpose_a=major[0] == 'MN', transpose_b=major[1] == 'MN')
    want = place(words(product, d), where)
    operands(c, a_desc, b_desc, a, b, a_step, b_step, k * ca.itemsize // 32, descr, want.shape[1])
    c.input('a', a)
    c.input('b', b)
    c.out('out', want)


def add(entry, name, *args, **kw):
    def run(c):
        dense(c, *args, **kw)
    run.__name__ = name
    case('mma_sm100.ptx', entry, block=128)(run)


add('mma_f16', 'bf16_swizzle_128', 128, 64, 64, 'bf16', 'bf16')
add('mma_f16', 'f16_m64_swizzle_64', 64, 72, 32, 'f16', 'f16', span=(64, 64), where='F')
add('mma_f16', 'f16_result_f16_swizzle_32', 128, 16, 16, 'f16', 'f16', d=0, span=(32, 32))
add('mma_f16', 'bf16_plain_n256', 128, 256, 64, 'bf16', 'bf16', span=(0, 0))
add('mma_f16', 'f16_b_transposed', 128, 64, 32, 'f16', 'f16', major=('K', 'MN'), span=(64, 128))
add('mma_f16', 'bf16_both_transposed', 128, 128, 48, 'bf16', 'bf16', major=('MN', 'MN'), span=(64, 32))
add('mma_f16', 'bf16_a_transposed_plain', 128, 32, 32, 'bf16', 'bf16', major=('MN', 'K'), span=(0, 64))
add('mma_f16', 'f16_negated_a', 128, 32, 64, 'f16', 'f16', negate=(1, 0))
add('mma_tf32', 'tf32', 128, 48, 32, 'tf32', 'tf32')
add('mma_tf32', 'tf32_m64_negated_b', 64, 24, 16, 'tf32', 'tf32', span=(64, 64), negate=(0, 1), where='F')
add('mma_f8f6f4', 'e4m3_e5m2', 128, 64, 128, 'e4m3', 'e5m2')
add('mma_f8f6f4', 'e2m1_e4m3_padded', 128, 32, 64, 'e2m1', 'e4m3', span=(64, 64))
add('mma_f8f6f4', 'e3m2_e2m3', 128, 32, 32, 'e3m2', 'e2m3', span=(32, 32))
add('mma_f8f6f4', 'e4m3_transposed', 128, 128, 32, 'e4m3', 'e4m3', major=('K', 'MN'), span=(32, 128))
add('mma_i8', 's8_u8', 128, 32, 128, 's8', 'u8', d=2)
add('mma_i8', 'u8_m64', 64, 8, 64, 'u8', 'u8', d=2, span=(64, 64), where='F')
add('mma_ws_f16', 'ws_m32', 32, 64, 64, 'bf16', 'bf16', where='G')
add('mma_ws_f16', 'ws_m64', 64, 128, 64, 'f16', 'f16', where='E')
add('mma_ws_f16', 'ws_m128', 128, 64, 64, 'f16', 'f16', where='D')
add('mma_ws_i8', 'ws_i8_m32', 32, 256, 64, 's8', 's8', d=2, span=(64, 64), where='G')


def from_tmem(c, type_a, n, k, m=128):
    (ca, va), (cb, vb) = make(type_a, (m, k), 3), make(type_a, (n, k), 4)
    b, b_desc, b_step = layout(cb, 'K', 128)
    a = np.ascontiguousarray(ca).view(np.uint32)  # lanes x columns, lower k in the low bits
    want = place(words(va @ vb.T), 'D')
    operands(c, 0, b_desc, a.reshape(-1).view(np.uint8), b, 8, b_step, k * ca.itemsize // 32, idesc(m, n, TYPE[type_a], TYPE[type_a]), n)
    c.input('a', a)
    c.input('b', b)
    c.out('out', want)


@case('mma_sm100.ptx', 'mma_ts_f16', block=128)
def bf16_a_in_tmem(c):
    from_tmem(c, 'bf16', 96, 64)


@case('mma_sm100.ptx', 'mma_ts_f8f6f4', block=128)
def e5m2_a_in_tmem(c):
    from_tmem(c, 'e5m2', 32, 128)


@case('mma_sm100.ptx', block=128)
def mma_masked(c):
    (ca, va), (cb, vb) = make('f16', (128, 16), 5), make('f16', (32, 16), 6)
    a, a_desc, a_step = layout(ca, 'K', 32)
    b, b_desc, b_step = layout(cb, 'K', 32)
    operands(c, a_desc, b_desc, a, b, a_step, b_step, 1, idesc(128, 32), 32)
    c.input('a', a)
    c.input('b', b)
    masks = [0x0000FFFF, 0, 0x80000001, 0xF0F0F0F0]
    skip = np.array([masks[i // 32] >> i % 32 & 1 for i in range(128)], bool)
    want = words(va @ vb.T + 1)
    want[skip] = words(np.float32(8))
    c.out('out', want)
    for mask in masks:
        c.scalar('i32', mask)


def scaled(c, entry, types, k_step, per_step, ids, scale_kind, steps=4, n=64):
    """types: of A and B; per_step: scales a row and step; ids: of a word's steps."""
    m, k = 128, k_step * steps
    if types[0] == 'fp4':
        def pack(seed, rows):
            code = rng(seed).integers(0, 16, (rows, k))
            return (code[:, ::2] | code[:, 1::2] << 4).astype(np.uint8), e2m1(code)
        (ca, va), (cb, vb) = pack(1, m), pack(2, n)
        codes = (1, 1)
    else:
        (ca, va), (cb, vb) = make(types[0], (m, k), 1), make(types[1], (n, k), 2)
        codes = TYPE[types[0]], TYPE[types[1]]
    a, a_desc, a_step = layout(ca, 'K', 128)
    b, b_desc, b_step = layout(cb, 'K', 128)
    count, block = per_step * steps, k_step // per_step
    if scale_kind == 'ue8m0':
        sa, sb = rng(3).integers(125, 130, (128, count)).astype(np.uint8), rng(4).integers(125, 130, (128, count)).astype(np.uint8)
        fa, fb = 2.0 ** (sa.astype(int) - 127), 2.0 ** (sb.astype(int) - 127)
    else:
        sa, sb = rng(3).integers(0x30, 0x44, (128, count)).astype(np.uint8), rng(4).integers(0x30, 0x44, (128, count)).astype(np.uint8)
        fa, fb = e4m3(sa), e4m3(sb)
    want = (va * np.repeat(fa, block, 1)) @ (vb * np.repeat(fb[:n], block, 1)).T

    def blocks(s):
        out = np.zeros(128 * count, np.uint8)
        row, j = np.meshgrid(np.arange(128), np.arange(count), indexing='ij')
        out[j // 4 * 512 + row % 32 * 16 + row // 32 * 4 + j % 4] = s
        return out
    descr = codes[0] << 7 | codes[1] << 10 | n >> 3 << 17 | (scale_kind == 'ue8m0') << 23 | m >> 7 << 27
    operands(c, a_desc, b_desc, a, b, a_step, b_step, steps, descr, n)
    c.input('a', a)
    c.input('b', b)
    c.input('sa', blocks(sa))
    c.input('sb', blocks(sb))
    c.out('out', want.astype(np.float32), tol=2e-6, atol=1e-3)
    for v in (128 * count, 4 // per_step, ids):
        c.scalar('i32', v)


@case('mma_sm100.ptx', 'mma_mxf8f6f4', block=128)
def mxf8(c):
    scaled(c, 'mxf8f6f4', ('e4m3', 'e5m2'), 32, 1, 1, 'ue8m0')


@case('mma_sm100.ptx', 'mma_mxf8f6f4', block=128)
def mxf8_e2m1(c):
    scaled(c, 'mxf8f6f4', ('e2m1', 'e4m3'), 32, 1, 1, 'ue8m0')


@case('mma_sm100.ptx', 'mma_mxf4', block=128)
def mxf4(c):
    scaled(c, 'mxf4', ('fp4', 'fp4'), 64, 2, 2, 'ue8m0')


@case('mma_sm100.ptx', 'mma_mxf4nvf4', block=128)
def nvf4(c):
    scaled(c, 'mxf4nvf4', ('fp4', 'fp4'), 64, 4, 0, 'ue4m3')


@case('mma_sm100.ptx', 'mma_mxf4nvf4_2x', block=128)
def nvf4_block32(c):
    scaled(c, 'mxf4nvf4_2x', ('fp4', 'fp4'), 64, 2, 2, 'ue8m0')


def pair(c, m, n, k, kind, where):
    (ca, va), (cb, vb) = make(kind, (m, k), 7), make(kind, (n, k), 8)
    half_m, half_n = m // 2, n // 2
    parts_a = [layout(ca[i * half_m:(i + 1) * half_m], 'K', 128) for i in range(2)]
    parts_b = [layout(cb[i * half_n:(i + 1) * half_n], 'K', 128) for i in range(2)]
    (a0, a_desc, a_step), (b0, b_desc, b_step) = parts_a[0], parts_b[0]
    product = words(va @ vb.T)
    want = np.stack([place(product[i * half_m:(i + 1) * half_m], where) for i in range(2)])
    operands(c, a_desc, b_desc, a0, b0, a_step, b_step, k * ca.itemsize // 32, idesc(m, n, TYPE[kind], TYPE[kind]), want.shape[2])
    c.input('a', np.concatenate([p[0] for p in parts_a]))
    c.input('b', np.concatenate([p[0] for p in parts_b]))
    c.out('out', want)


@case('mma_sm100.ptx', 'mma_pair_f16', block=128, grid=2)
def pair_m256(c):
    pair(c, 256, 128, 64, 'bf16', 'A')


@case('mma_sm100.ptx', 'mma_pair_f16', block=128, grid=2)
def pair_m128(c):
    pair(c, 128, 64, 64, 'f16', 'B')


@case('mma_sm100.ptx', 'mma_pair_f8f6f4', block=128, grid=2)
def pair_e4m3(c):
    pair(c, 256, 64, 128, 'e4m3', 'A')


@case('mma_sm100.ptx', 'mma_pair_mxf8f6f4', block=128, grid=2)
def pair_mxf8(c):
    m, n, k = 256, 64, 128
    (ca, va), (cb, vb) = make('e4m3', (m, k), 1), make('e4m3', (n, k), 2)
    parts_a = [layout(ca[i * 128:(i + 1) * 128], 'K', 128) for i in range(2)]
    parts_b = [layout(cb[i * 32:(i + 1) * 32], 'K', 128) for i in range(2)]
    sa, sb = rng(3).integers(125, 130, (m, 4)).astype(np.uint8), rng(4).integers(125, 130, (128, 4)).astype(np.uint8)
    scaled_by = lambda v, s: v * np.repeat(2.0 ** (s.astype(int) - 127), 32, 1)
    want = scaled_by(va, sa) @ scaled_by(vb, sb[:n]).T
    row, j = np.meshgrid(np.arange(128), np.arange(4), indexing='ij')
    blocks = []
    for s in (sa[:128], sa[128:], sb):
        block = np.zeros(512, np.uint8)
        block[row % 32 * 16 + row // 32 * 4 + j] = s
        blocks.append(block)
    operands(c, parts_a[0][1], parts_b[0][1], parts_a[0][0], parts_b[0][0], parts_a[0][2], parts_b[0][2], 4, n >> 3 << 17 | 1 << 23 | m >> 7 << 27, n)
    c.input('a', np.concatenate([p[0] for p in parts_a]))
    c.input('b', np.concatenate([p[0] for p in parts_b]))
    c.input('sa', np.concatenate(blocks[:2]))
    c.input('sb', blocks[2])
    c.out('out', want.astype(np.float32).reshape(2, 128, n), tol=2e-6, atol=1e-3)
    c.scalar('i32', 512)
