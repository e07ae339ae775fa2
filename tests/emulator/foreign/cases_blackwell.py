"""Expectations for blackwell.cu."""
import numpy as np
from harness import case, rng, to_bf16, from_bf16, e2m1, decode
from cases_mma import make
from cases_scalar import float_values, directed, fused, add, sub, mul, fma, NAN

FILE = 'blackwell_sm100.ptx'


def stolen(grid, **options):
    @case(FILE, 'stolen_tiles', grid=grid, **options)
    def stolen_tiles(c):
        shape = [int(x) for x in grid.split(',')][::-1]
        want = np.ones(shape, np.uint32)
        c.inout('out', np.zeros(shape, np.uint32), want)
        # who did a tile is free: the high half only says that somebody else's cluster did
        c.wants[-1] = ('out', want, None, 0, lambda x: x & 0xFFFF)


stolen('8,3,2', name='stolen_by_one')
stolen('8,3,2', name='stolen_by_four', sms=8)


def product(m, n, k):
    (a, va), (b, vb) = make('bf16', (m, k), 1), make('bf16', (n, k), 2)
    return a, b, va @ vb.T


@case(FILE, block=256, grid=4, shared=3 * 192 * 128 + 1024)
def pair_gemm(c):
    a, b, want = product(512, 384, 256)
    c.tma('a', a, (128, 64), 'bf16', 128)
    c.tma('b', b, (64, 64), 'bf16', 128)
    c.out('c', want.astype(np.float32))
    for v in (512, 384, 256): c.scalar('i32', v)


def by_clusters(name, **options):
    @case(FILE, 'cluster_gemm', name=name, block=192, grid='4,4', shared=3 * 192 * 128 + 128 * 128 + 1024, **options)
    def cluster_gemm(c):
        a, b, want = product(512, 256, 192)
        c.tma('a', a, (64, 64), 'bf16', 128)
        c.tma('b', b, (32, 64), 'bf16', 128)
        c.out('c', to_bf16(want), tma=dict(box=(128, 64), dtype='bf16', swizzle=128))
        c.scalar('i32', 192)


by_clusters('cluster_gemm_one_resident')
by_clusters('cluster_gemm_two_resident', sms=8)


@case(FILE, block=128, grid=2, shared=(128 + 64 + 64) * 128 + 1024)
def attention(c):
    n, d = 256, 64
    q, k, v = (to_bf16(rng(s).standard_normal((n, d))) for s in (1, 2, 3))
    for name, x, rows in (('q', q, 128), ('k', k, 64), ('v', v, 64)):
        c.tma(name, x, (rows, 64), 'bf16', 128)
    fq, fk, fv = (from_bf16(x).astype(np.float64) for x in (q, k, v))
    p = np.exp2(fq @ fk.T * 0.18)
    c.out('out', (p / p.sum(1, keepdims=True) @ fv).astype(np.float32), tol=1e-2, atol=4e-3)
    c.scalar('i32', n)
    c.scalar('f32', 0.18)


@case(FILE, shared=4096 + 1024)
def gather_scatter(c):
    x = rng(1).integers(0, 2**16, (40, 128), dtype=np.uint16)
    start = rng(2).integers(0, 2**16, (30, 128), dtype=np.uint16)
    take, put = rng(3).integers(0, 40, 16), rng(4).permutation(30)[:16]
    take[5] = 40  # outside: zeros
    want = start.copy()
    want[put, 64:] = np.where((take < 40)[:, None], x[np.minimum(take, 39), 64:], 0)
    c.tma('x', x, (1, 64), 'u16')
    c.inout('y', start, want, tma=dict(box=(1, 64), dtype='u16'))
    c.input('rows', np.concatenate([take, put]).astype(np.int32))
    c.scalar('i32', 16)
    c.scalar('i32', 64)


@case(FILE)
def bulk_zero(c):
    want = np.array([7] * 32 + [9] * 32, np.uint32)
    want[4:22] = 0
    c.out('out', want)


@case(FILE)
def packed_floats(c):
    a, b = (c.input(n, float_values(s, 64)) for n, s in (('a', 1), ('b', 2)))
    F = np.float32
    flush = lambda v: F(np.copysign(0, v)) if abs(v) < 2.0**-126 else F(v)
    rows = np.zeros((32, 5, 2), F)
    for t, (x, y) in enumerate(zip(a.tolist(), b.tolist())):
        fx, fy = float(flush(x)), float(flush(y))
        row = [directed(F, add, 'rn', x, y), directed(F, mul, 'rn', x, y), fused(F, x, y, x), directed(F, sub, 'rz', x, y), flush(directed(F, fma, 'rd', fy, fy, fx))]
        for i, v in enumerate(row):
            rows[t // 2, i, t % 2] = NAN if np.isnan(v) else v
    c.out('out', rows, tol=0.0, atol=0.0)


def code(x, e, m):
    """Nearest code of a small float without infinities; NaN is the largest."""
    width = e + m
    values = decode(np.arange(1 << width), e, m)
    if np.isnan(x): return (1 << width) - 1
    mag = min(abs(x), values[-1])
    best = min(range(1 << width), key=lambda k: (abs(values[k] - mag), k & 1))
    return best | (1 << width if np.copysign(1, x) < 0 else 0)


def exponent(x, up):
    if np.isnan(x): return 255
    x = abs(x)
    if np.isinf(x): return 254
    if x == 0: return 0
    m, e = np.frexp(np.float64(x))  # x = m * 2^e, m in [0.5, 1)
    e = int(e) - 1 + (1 if up and m != 0.5 else 0)
    return max(0, min(254, e + 127))


@case(FILE)
def tiny_floats(c):
    a = (rng(5).standard_normal(64) * 4).astype(np.float32)
    a[::7] = [0, -0.0, 0.25, 0.75, 1e9, -1e9, np.nan, 5, 2.5, -0.0625][: len(a[::7])]
    c.input('a', a)
    bf = lambda e: 0x7FFF if e == 255 else (e << 7 if e else 0x0040)
    half = lambda v: int(np.float16(v).view(np.uint16))
    rows = []
    for t in range(32):
        x, y = float(a[2 * t]), float(a[2 * t + 1])
        q, p6, p6h = t * 37 & 255, t * 7 & 63, t * 11 & 63
        rows.append([code(x, 2, 1) << 4 | code(y, 2, 1), code(x, 2, 3) << 8 | code(y, 2, 3), code(x, 3, 2) << 8 | code(y, 3, 2),
                     exponent(x, 0) << 8 | exponent(y, 0), exponent(x, 1) << 8 | exponent(y, 1),
                     half(e2m1(np.int64(q >> 4))) << 16 | half(e2m1(np.int64(q & 15))), half(decode(p6h, 3, 2)) << 16 | half(decode(p6, 3, 2)),
                     bf(t * 5 + 1) << 16 | bf(t * 8)])
    c.out('out', np.array(rows, np.uint32))
