"""Expectations for warp_mma.cu and wgmma.cu. Operands are small integers or halves of them, so that every sum is exact."""
import numpy as np
from harness import case, rng, to_bf16, from_bf16
from cases_mma import make, image

FILES = ['warp_mma_sm90.ptx', 'warp_mma_sm100.ptx']
T = np.arange(32)


@case(FILES, block=128)
def mma_gemm(c):
    (a, va), (b, vb) = make('bf16', (32, 64), 1), make('bf16', (64, 32), 2)
    c.input('a', a), c.input('b', b)
    c.out('c', to_bf16(va @ vb))


def words_of(codes):
    return np.ascontiguousarray(codes).view(np.uint32)


def fragments(entry, type_a, type_b, k, d=np.float32, limit=None, start=None):
    def run(c):
        (a, va), (b, vb) = make(type_a, (16, k), 1), make(type_b, (8, k), 2)
        acc = (start or (lambda r: r.integers(-20, 20, (16, 8))))(rng(3)).astype(d)
        wa, wb, per = words_of(a), words_of(b), 4 // a.itemsize  # columns of words; thread t holds words t % 4 and t % 4 + 4
        steps = k // (4 * per)
        ra = np.stack([wa[T // 4 + 8 * (i % 2), T % 4 + 4 * (i // 2)] for i in range(2 * steps)], 1)
        rb = np.stack([wb[T // 4, T % 4 + 4 * i] for i in range(steps)], 1)
        if d == np.float16:
            pairs = lambda m: np.stack([np.ascontiguousarray(m[T // 4 + 8 * i][:, :]).view(np.uint32)[T, T % 4] for i in range(2)], 1)
        else:
            pairs = lambda m: np.stack([m[T // 4 + 8 * (i // 2), 2 * (T % 4) + i % 2] for i in range(4)], 1)
        result = va @ vb.T + acc.astype(np.float64)
        if limit:
            result = np.clip(result, -2**31, 2**31 - 1)
        c.input('a', ra), c.input('b', rb), c.input('c', pairs(acc))
        c.out('d', pairs(result.astype(d)))
    run.__name__ = entry
    case(FILES, entry)(run)


fragments('mma_f16_f32', 'f16', 'f16', 16)
fragments('mma_f16_f16', 'f16', 'f16', 16, np.float16)
fragments('mma_f16_k8', 'f16', 'f16', 8)
fragments('mma_bf16', 'bf16', 'bf16', 16)
fragments('mma_tf32', 'tf32', 'tf32', 8)
fragments('mma_tf32_k4', 'tf32', 'tf32', 4)
fragments('mma_e4m3', 'e4m3', 'e5m2', 32)
fragments('mma_s8', 's8', 'u8', 32, np.int32)
fragments('mma_s8_sat', 's8', 's8', 32, np.int32, True, lambda r: r.choice([2**31 - 5, -2**31 + 9, 0], (16, 8)))
fragments('mma_u8_k16', 'u8', 'u8', 16, np.int32)


@case(FILES)
def matrices(c):
    m = c.input('m', rng(4).integers(0, 2**16, (8, 8), dtype=np.uint16))
    plain, turned = words_of(m)[T // 4, T % 4], words_of(m.T)[T // 4, T % 4]
    c.out('out', np.stack([plain, turned, turned], 1))


@case(FILES, block=128)
def mma_attention(c):
    n = 96
    q, k, v = (to_bf16(rng(s).standard_normal((r, 32))) for s, r in ((1, 64), (2, n), (3, n)))
    c.input('q', q), c.input('k', k), c.input('v', v)
    fq, fk, fv = (from_bf16(x).astype(np.float64) for x in (q, k, v))
    p = np.exp2(fq @ fk.T * 0.25)
    c.out('out', (p / p.sum(1, keepdims=True) @ fv).astype(np.float32), tol=1e-2, atol=5e-3)
    c.scalar('i32', n)
    c.scalar('f32', 0.25)


# ---- wgmma: 64 x 32

CODE = {0: 0, 128: 1, 64: 2, 32: 3}


def descriptor(span, lbo, sbo):
    return CODE[span] << 62 | sbo >> 4 << 32 | lbo >> 4 << 16


def place(product, kind):
    """Registers of 128 threads: thread t of warp w has rows 16w + t/4 and 8 below, columns 2(t%4) + 8j."""
    t = np.arange(128)
    row, column = t // 32 * 16 + t % 32 // 4, t % 4 * 2
    if kind == 'f16':
        both = [np.stack([product[row + 8 * (i % 2), column + 8 * (i // 2) + h] for h in range(2)], 1).astype(np.float16) for i in range(8)]
        return np.stack([np.ascontiguousarray(x).view(np.uint32)[:, 0] for x in both], 1)
    x = np.stack([product[row + 8 * (i // 2 % 2), column + 8 * (i // 4) + i % 2] for i in range(16)], 1)
    return (x.astype(np.int32) if kind == 's32' else x.astype(np.float32)).view(np.uint32)


def wgmma(entry, types, k, d='f32', span=(128, 128), major='K', sign=1, name=None):
    def run(c):
        (a, va), (b, vb) = make(types[0], (64, k), 1), make(types[1], (32, k), 2)
        tiles = []
        for codes, s in ((a, span[0]), (b, span[1])):
            rows, size = codes.shape[0], codes.itemsize
            if major == 'MN':
                w = s // size  # blocks of w rows, k deep
                tiles.append((image(codes, size, 'MN', s, k * s, 8 * s, rows * k * size), descriptor(s, k * s, 8 * s), 16 * s // 16))
            elif s:
                tiles.append((image(codes, size, 'K', s, 0, 8 * s, rows * s), descriptor(s, 16, 8 * s), 2))
            else:
                tiles.append((image(codes, size, 'K', 0, 128, k * size // 16 * 128, rows * k * size), descriptor(0, 128, k * size // 16 * 128), 16))
        c.input('a', tiles[0][0]), c.input('b', tiles[1][0])
        fp8 = types[0] in ('e4m3', 'e5m2')  # Hopper sums these with 13 fractional bits
        halves = (lambda w: w.view(np.float16)) if d == 'f16' else (lambda w: w.view(np.float32))
        c.out('out', place(va @ vb.T * sign + 0.0, d), *((2e-3, 0.05, None, halves) if fp8 else ()))
        for v in (len(tiles[0][0]), len(tiles[1][0])): c.scalar('i32', v)
        for v in (tiles[0][1], tiles[1][1]): c.scalar('i64', v)
        for v in (tiles[0][2], tiles[1][2], k * a.itemsize // 32): c.scalar('i32', v)
        c.options = {'shared': len(tiles[0][0]) + len(tiles[1][0]) + 1024}
    run.__name__ = name or entry
    case('wgmma_sm90.ptx', entry, block=128)(run)


wgmma('wgmma_bf16', ('bf16', 'bf16'), 64)
wgmma('wgmma_bf16', ('bf16', 'bf16'), 32, span=(64, 0), name='wgmma_bf16_swizzle_64_plain')
wgmma('wgmma_bf16', ('bf16', 'bf16'), 16, span=(32, 32), name='wgmma_bf16_swizzle_32')
wgmma('wgmma_f16_negated', ('f16', 'f16'), 64, sign=-1)
wgmma('wgmma_f16_f16', ('f16', 'f16'), 64, d='f16')
wgmma('wgmma_bf16_transposed', ('bf16', 'bf16'), 48, span=(128, 64), major='MN')
wgmma('wgmma_tf32', ('tf32', 'tf32'), 32)
wgmma('wgmma_e4m3', ('e4m3', 'e5m2'), 128)
wgmma('wgmma_e5m2_f16', ('e5m2', 'e5m2'), 64, d='f16', span=(64, 64))
wgmma('wgmma_s8', ('s8', 'u8'), 128, d='s32')
wgmma('wgmma_u8_sat', ('u8', 'u8'), 64, d='s32', span=(64, 64))


@case('wgmma_sm90.ptx', block=128, shared=8192)
def wgmma_registers(c):
    (a, va), (b, vb) = make('bf16', (64, 64), 5), make('bf16', (32, 64), 6)
    tile = image(b, 2, 'K', 128, 0, 1024, 32 * 128)
    c.input('a', a), c.input('b', tile)
    c.out('out', place(va @ vb.T, 'f32'))
    c.scalar('i32', len(tile))
    c.scalar('i64', descriptor(128, 16, 1024))
    c.scalar('i32', 2)


@case('wgmma_sm90.ptx', grid=3, block=384, shared=3 * 160 * 128 + 1024)
def pipelined(c):
    (a, va), (b, vb) = make('bf16', (256, 320), 7), make('bf16', (96, 320), 8)
    c.tma('a', a, (128, 64), 'bf16', 128)
    c.tma('b', b, (32, 64), 'bf16', 128)
    c.out('c', (va @ vb.T).astype(np.float32))
    for v in (256, 96, 320): c.scalar('i32', v)
