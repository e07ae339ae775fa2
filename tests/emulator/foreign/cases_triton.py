"""Expectations for Triton's kernels. The first line of each file says how much shared memory and scratch its launch needs."""
import os, re
import numpy as np
from harness import case, rng, to_bf16, from_bf16, small_ints, e4m3, e5m2, e2m1

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'ptx')


def triton(entry, names, grid=1, **options):
    """names: files without prefix and suffix, with the targets: 'add 90 100'."""
    def wrap(function):
        for line in [names] if isinstance(names, str) else names:
            name, *targets = line.split()
            for target in targets:
                file = f'triton_{name}_sm{target}.ptx'
                head = open(os.path.join(FOLDER, file)).read()
                shared, scratch = map(int, re.match(r'// shared (\d+) scratch (\d+)', head).groups())
                block = int(re.search(r'\.reqntid (\d+)', head).group(1))
                count = int(np.prod([int(x) for x in str(grid).split(',')]))

                def run(c, name=name, scratch=scratch, count=count):
                    function(c, name)
                    if scratch:
                        c.input('scratch', np.zeros(scratch * count, np.uint8))
                    else:
                        c.null()
                    c.null()
                case(file, entry, grid=grid, block=block, shared=shared, name=name, **options)(run)
        return function
    return wrap


def i32(c, *values):
    for v in values:
        c.scalar('i32', v)


@triton('add', 'add 90 100', grid=4)
def add(c, name):
    x, y = c.input('x', rng(1).standard_normal(1000).astype(np.float32)), c.input('y', rng(2).standard_normal(1000).astype(np.float32))
    c.out('out', x + y)
    i32(c, 1000)


@triton('softmax', 'softmax 90 100', grid=5)
def softmax(c, name):
    x = c.input('x', rng().standard_normal((5, 300)).astype(np.float32))
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    c.out('out', (e / e.sum(1, keepdims=True)).astype(np.float32), tol=1e-5)
    i32(c, 300, 300)


@triton('layer_norm', 'layer_norm 90 100', grid=4)
def layer_norm(c, name):
    x = c.input('x', to_bf16(rng().standard_normal((4, 200)) * 3 + 1))
    w, b = c.input('w', rng(2).standard_normal(200).astype(np.float32)), c.input('b', rng(3).standard_normal(200).astype(np.float32))
    v = from_bf16(x).astype(np.float64)
    y = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * w + b
    c.out('out', to_bf16(y), tol=5e-3, decode=from_bf16)
    i32(c, 200)
    c.scalar('f32', 1e-5)


@triton('gelu_f16', 'gelu_f16 90 100', grid=3)
def gelu(c, name):
    x = c.input('x', (rng().standard_normal(700) * 2).astype(np.float16))
    f = x.astype(np.float64)
    c.out('out', (0.5 * f * (1 + np.tanh(0.7978845608 * (f + 0.044715 * f**3)))).astype(np.float16), tol=2e-3, atol=2e-3)
    i32(c, 700)


@triton('histogram', 'histogram 90 100', grid=4)
def histogram(c, name):
    x = c.input('x', rng().integers(0, 64, 900).astype(np.int32))
    c.inout('out', np.full(64, 7, np.int32), (np.bincount(x, minlength=64) + 7).astype(np.int32))
    i32(c, 900)


@triton('sort_rows', 'sort_rows 90', grid=3)
def sort_rows(c, name):
    x = c.input('x', rng().integers(-2**31, 2**31, (3, 128)).astype(np.int32))
    c.out('out', np.sort(x, 1))


@triton('scan_argmax', 'scan_argmax 90', grid=2)
def scan_argmax(c, name):
    x = c.input('x', small_ints((2, 256)))
    c.out('cumulative', np.cumsum(x, 1).astype(np.float32))
    c.out('best', x.argmax(1).astype(np.int32))


def philox(seed, counters):
    """Philox 4x32, ten rounds, counters in the first word: the first output word."""
    c = [counters.astype(np.uint64)] + [np.zeros_like(counters, np.uint64)] * 3
    k0, k1, mask = seed, 0, 0xFFFFFFFF
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [q >> np.uint64(32) ^ c[1] ^ np.uint64(k0), q & np.uint64(mask), p >> np.uint64(32) ^ c[3] ^ np.uint64(k1), p & np.uint64(mask)]
        k0, k1 = k0 + 0x9E3779B9 & mask, k1 + 0xBB67AE85 & mask
    return c[0]


@triton('dropout', 'dropout 90', grid=2)
def dropout(c, name):
    x = c.input('x', rng().standard_normal(250).astype(np.float32))
    word = philox(1234, np.arange(250)).astype(np.uint32).view(np.int32).astype(np.int64)
    uniform = np.where(word < 0, -word - 1, word).astype(np.float32) * np.float32(4.6566127342e-10)
    c.out('out', np.where(uniform > np.float32(0.25), x / np.float32(0.75), 0).astype(np.float32), tol=1e-6)
    i32(c, 250, 1234)
    c.scalar('f32', 0.25)


@triton('transpose', 'transpose 90 100', grid='3,2')
def transpose(c, name):
    x = c.input('x', rng().standard_normal((80, 48)).astype(np.float16))
    c.out('out', np.ascontiguousarray(x.T))
    i32(c, 80, 48)


def operand(kind, shape, seed):
    v = small_ints(shape, seed=seed)
    return {'bf16': lambda: (to_bf16(v), v), 'f16': lambda: (v.astype(np.float16), v), 'tf32': lambda: (v, v)}[kind]()


def product(c, kind, m, n, k):
    a, va = operand(kind, (m, k), 1)
    b, vb = operand(kind, (k, n), 2)
    c.input('a', a), c.input('b', b)
    c.out('c', (va @ vb).astype(np.float32))
    i32(c, m, n, k)


@triton('matmul', 'matmul_bf16 90 100', grid='2,2')
def matmul_bf16(c, name):
    product(c, 'bf16', 100, 56, 80)


@triton('matmul', 'matmul_f16_128 100', grid='2,1')
def matmul_f16(c, name):
    product(c, 'f16', 200, 64, 72)


@triton('matmul', 'matmul_tf32 90 100', grid='1,2')
def matmul_tf32(c, name):
    product(c, 'tf32', 60, 64, 96)


@triton('matmul', 'matmul_mma 90', grid='2,2')
def matmul_mma(c, name):
    product(c, 'f16', 32, 32, 64)


@triton('matmul_f8', ['matmul_e4m3 90 100', 'matmul_e5m2 100'])
def matmul_f8(c, name):
    m, e4 = 64 if 'e4m3' in name else 128, 'e4m3' in name
    a, b = (rng(s).integers(0x30, 0x40, (r, 128)) | rng(s + 5).integers(0, 2, (r, 128)) << 7 for s, r in ((1, m), (2, 32)))
    decode = e4m3 if e4 else e5m2
    c.input('a', a.astype(np.uint8)), c.input('b', b.astype(np.uint8))
    c.out('c', (decode(a) @ decode(b).T).astype(np.float32), tol=1e-3, atol=0.05)
    i32(c, 128)


@triton('matmul_s8', 'matmul_s8 90 100')
def matmul_s8(c, name):
    a, b = (rng(s).integers(-128, 128, (r, 128)).astype(np.int8) for s, r in ((1, 64), (2, 32)))
    c.input('a', a), c.input('b', b)
    c.out('c', a.astype(np.int32) @ b.astype(np.int32).T)
    i32(c, 128)


@triton('matmul_tma', ['matmul_tma 90 100', 'matmul_ws 100'], grid=2)
def matmul_tma(c, name):
    (a, va), (b, vb) = operand('bf16', (200, 128), 1), operand('bf16', (136, 128), 2)
    c.input('a', a), c.input('b', b)
    c.out('c', to_bf16(va @ vb.T))
    i32(c, 200, 136, 128)


@triton('matmul_scaled', 'matmul_mxfp8 100')
def matmul_mxfp8(c, name):
    scaled(c, lambda r, rows: (lambda x: (x, e4m3(x)))(r.integers(0x30, 0x40, (rows, 256)).astype(np.uint8)), 32, 'ue8m0')


def packed(r, rows):
    code = r.integers(0, 16, (rows, 256))
    return (code[:, ::2] | code[:, 1::2] << 4).astype(np.uint8), e2m1(code)


@triton('matmul_scaled', 'matmul_mxfp4 100')
def matmul_mxfp4(c, name):
    scaled(c, packed, 32, 'ue8m0')


@triton('matmul_scaled', 'matmul_nvfp4 100')
def matmul_nvfp4(c, name):
    scaled(c, packed, 16, 'ue4m3')


def scaled(c, make, vec, scale_kind):
    values = []
    for name, seed, rows in (('a', 1, 128), ('b', 2, 64)):
        codes, v = make(rng(seed), rows)
        low, high = (125, 130) if scale_kind == 'ue8m0' else (0x30, 0x44)
        s = rng(seed + 5).integers(low, high, (rows, 256 // vec)).astype(np.uint8)
        c.input(name, codes), c.input('s' + name, s)
        values.append(v * np.repeat(2.0 ** (s.astype(int) - 127) if scale_kind == 'ue8m0' else e4m3(s), vec, 1))
    c.out('c', (values[0] @ values[1].T).astype(np.float32), tol=2e-6, atol=1e-3)
    i32(c, 256)


def attend(c, n, d=64):
    q, k, v = (to_bf16(rng(s).standard_normal((n, d))) for s in (1, 2, 3))
    c.input('q', q), c.input('k', k), c.input('v', v)
    fq, fk, fv = (from_bf16(x).astype(np.float64) for x in (q, k, v))
    p = np.exp2(fq @ fk.T * 0.18)
    want = p / p.sum(1, keepdims=True) @ fv
    c.out('out', to_bf16(want), tol=1e-2, atol=4e-3, decode=from_bf16)
    i32(c, n)
    c.scalar('f32', 0.18)


@triton('attention', 'attention 90 100', grid=2)
def attention(c, name):
    attend(c, 128)


@triton('attention', 'attention_ws 100', grid=1)
def attention_ws(c, name):
    attend(c, 128)


@triton('gather_rows', 'gather_rows 100', grid='2,2')
def gather_rows(c, name):
    x = c.input('x', to_bf16(rng().standard_normal((50, 128))))
    index = c.input('index', rng(2).integers(0, 50, 32).astype(np.int32))
    c.out('out', x[index])
    i32(c, 50, 128)


@triton('scatter_rows', 'scatter_rows 100')
def scatter_rows(c, name):
    x = c.input('x', to_bf16(rng().standard_normal((16, 64))))
    index = c.input('index', rng(2).permutation(40)[:16].astype(np.int32))
    start = to_bf16(rng(3).standard_normal((40, 64)))
    want = start.copy()
    want[index] = x
    c.inout('out', start, want)
    i32(c, 40, 64)


@triton('split_k', 'split_k 90 100', grid=3)
def split_k(c, name):
    (a, va), (b, vb) = operand('f16', (64, 192), 1), operand('f16', (16, 192), 2)
    c.input('a', a), c.input('b', b)
    c.inout('c', np.ones((64, 16), np.float32), (va @ vb.T + 1).astype(np.float32))
    i32(c, 192)


@triton('reduce_tma', 'reduce_tma 90 100', grid=3)
def reduce_tma(c, name):
    x = c.input('x', small_ints((48, 32)))
    start = small_ints((10, 32), seed=4)
    c.inout('out', start, start + x.reshape(3, 16, 32).sum(0)[:10])
    i32(c, 10, 32)


@triton('locked_sum', 'locked_sum 90', grid=6, race='warps whose sum is not used read beside the one that writes')
def locked_sum(c, name):
    x = c.input('x', small_ints(700))
    c.inout('out', np.zeros(1, np.float32), x.sum(keepdims=True))
    c.inout('lock', np.zeros(1, np.int32), np.zeros(1, np.int32))
    i32(c, 700)
