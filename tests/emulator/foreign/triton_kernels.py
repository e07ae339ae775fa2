"""Triton kernels, and how they become PTX: `python triton_kernels.py` writes ptx/triton_*.ptx (needs the triton package, no GPU).

KERNELS lists (name, function, signature, constants, targets, options). Pointers come first, then scalars, as in the signature; Triton adds two
scratch pointers at the end.
"""
import os, sys
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, i < n, -float('inf'))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + i, e / tl.sum(e, 0), i < n)


@triton.jit
def layer_norm(x, w, b, out, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, i < n, 0).to(tl.float32)
    mean = tl.sum(v, 0) / n
    d = tl.where(i < n, v - mean, 0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(out + row * n + i, (d * r * tl.load(w + i, i < n) + tl.load(b + i, i < n)).to(tl.bfloat16), i < n)


@triton.jit
def gelu_f16(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    f = v.to(tl.float32)
    t = 1 - 2 / (tl.exp(1.5957691216 * (f + 0.044715 * f * f * f)) + 1)
    tl.store(out + i, (v * 0.5 * (1 + t).to(tl.float16)), i < n)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.histogram(tl.load(x + i, i < n, 0), 64, mask=i < n)
    tl.atomic_add(out + tl.arange(0, 64), h)


@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * BLOCK + i, tl.sort(tl.load(x + row * BLOCK + i)))


@triton.jit
def scan_argmax(x, cumulative, best, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * BLOCK + i)
    tl.store(cumulative + row * BLOCK + i, tl.cumsum(v, 0))
    tl.store(best + row, tl.argmax(v, 0))


@triton.jit
def dropout(x, out, n, seed, p, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, tl.load(x + i, i < n) / (1 - p), 0), i < n)


@triton.jit
def transpose(x, out, rows, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + r[:, None] * columns + c[None, :], (r[:, None] < rows) & (c[None, :] < columns))
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(v), (c[:, None] < columns) & (r[None, :] < rows))


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (start + k)[None, :], (m[:, None] < M) & ((start + k)[None, :] < K), 0)
        y = tl.load(b + (start + k)[:, None] * N + n[None, :], ((start + k)[:, None] < K) & (n[None, :] < N), 0)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc, (m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_f8(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        acc = tl.dot(tl.load(a + m[:, None] * K + (start + k)[None, :]), tl.load(b + n[None, :] * K + (start + k)[:, None]), acc)
    tl.store(c + m[:, None] * BN + n[None, :], acc)


@triton.jit
def matmul_s8(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32)
    for start in range(0, K, BK):
        acc = tl.dot(tl.load(a + m[:, None] * K + (start + k)[None, :]), tl.load(b + n[None, :] * K + (start + k)[:, None]), acc)
    tl.store(c + m[:, None] * BN + n[None, :], acc)


@triton.jit
def matmul_tma(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, tl.num_programs(0), warp_specialize=WS, flatten=False):
        m, n = tile // tiles_n * BM, tile % tiles_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(da.load([m, k]), db.load([n, k]).T, acc)
        dc.store([m, n], acc.to(tl.bfloat16))


@triton.jit
def matmul_scaled(a, sa, b, sb, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FORMAT: tl.constexpr, PACK: tl.constexpr, VEC: tl.constexpr):
    m, n = tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start // PACK + tl.arange(0, BK // PACK)
        s = start // VEC + tl.arange(0, BK // VEC)
        x = tl.load(a + m[:, None] * (K // PACK) + k[None, :])
        y = tl.load(b + n[:, None] * (K // PACK) + k[None, :])
        fx = tl.load(sa + m[:, None] * (K // VEC) + s[None, :])
        fy = tl.load(sb + n[:, None] * (K // VEC) + s[None, :])
        acc = tl.dot_scaled(x, fx, FORMAT, y.T, fy, FORMAT, acc)
    tl.store(c + m[:, None] * BN + n[None, :], acc)


@triton.jit
def attention(q, k, v, out, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WS: tl.constexpr):
    m, n, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    dq = tl.make_tensor_descriptor(q, [N, D], [D, 1], [BM, D])
    dk = tl.make_tensor_descriptor(k, [N, D], [D, 1], [BN, D])
    dv = tl.make_tensor_descriptor(v, [N, D], [D, 1], [BN, D])
    x = dq.load([tl.program_id(0) * BM, 0])
    top = tl.full((BM,), -float('inf'), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, N, BN, warp_specialize=WS):
        s = tl.dot(x, dk.load([start, 0]).T) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        f = tl.exp2(top - new)
        total = total * f + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), dv.load([start, 0]), acc * f[:, None])
        top = new
    tl.store(out + m[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def gather_rows(x, index, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [1, BN])
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    v = desc.gather(tl.load(index + m), tl.program_id(1) * BN)
    tl.store(out + m[:, None] * columns + tl.program_id(1) * BN + tl.arange(0, BN)[None, :], v)


@triton.jit
def scatter_rows(x, index, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    desc = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [1, BN])
    m = tl.arange(0, BM)
    desc.scatter(tl.load(x + m[:, None] * columns + tl.arange(0, BN)[None, :]), tl.load(index + m), 0)


@triton.jit
def split_k(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.arange(0, BM), tl.arange(0, BN)
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    part = tl.dot(tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + n[None, :] * K + k[:, None]))
    tl.atomic_add(c + m[:, None] * BN + n[None, :], part)


@triton.jit
def reduce_tma(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    desc = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BM, BN])
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    v = tl.load(x + m[:, None] * columns + tl.arange(0, BN)[None, :])
    desc.atomic_add([0, 0], v)


@triton.jit
def locked_sum(x, out, lock, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + i, i < n, 0), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out, volatile=True) + total)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


F, H, B, I, U8 = '*fp32', '*fp16', '*bf16', '*i32', '*u8'
BOTH, NEW, OLD = (90, 100), (100,), (90,)
KERNELS = [
    ('add', add, dict(x=F, y=F, out=F, n='i32'), dict(BLOCK=256), BOTH, {}),
    ('softmax', softmax, dict(x=F, out=F, stride='i32', n='i32'), dict(BLOCK=512), BOTH, {}),
    ('layer_norm', layer_norm, dict(x=B, w=F, b=F, out=B, n='i32', eps='fp32'), dict(BLOCK=256), BOTH, {}),
    ('gelu_f16', gelu_f16, dict(x=H, out=H, n='i32'), dict(BLOCK=256), BOTH, {}),
    ('histogram', histogram, dict(x=I, out=I, n='i32'), dict(BLOCK=256), BOTH, {}),
    ('sort_rows', sort_rows, dict(x=I, out=I), dict(BLOCK=128), OLD, {}),
    ('scan_argmax', scan_argmax, dict(x=F, cumulative=F, best=I), dict(BLOCK=256), OLD, {}),
    ('dropout', dropout, dict(x=F, out=F, n='i32', seed='i32', p='fp32'), dict(BLOCK=128), OLD, {}),
    ('transpose', transpose, dict(x=H, out=H, rows='i32', columns='i32'), dict(BLOCK=32), BOTH, {}),
    ('matmul_bf16', matmul, dict(a=B, b=B, c=F, M='i32', N='i32', K='i32'), dict(BM=64, BN=32, BK=32), BOTH, {}),
    ('matmul_f16_128', matmul, dict(a=H, b=H, c=F, M='i32', N='i32', K='i32'), dict(BM=128, BN=64, BK=32), NEW, {}),
    ('matmul_tf32', matmul, dict(a=F, b=F, c=F, M='i32', N='i32', K='i32'), dict(BM=64, BN=32, BK=32), BOTH, {}),
    ('matmul_e4m3', matmul_f8, dict(a='*fp8e4nv', b='*fp8e4nv', c=F, K='i32'), dict(BM=64, BN=32, BK=64), BOTH, {}),
    ('matmul_e5m2', matmul_f8, dict(a='*fp8e5', b='*fp8e5', c=F, K='i32'), dict(BM=128, BN=32, BK=64), NEW, {}),
    ('matmul_s8', matmul_s8, dict(a='*i8', b='*i8', c=I, K='i32'), dict(BM=64, BN=32, BK=64), BOTH, {}),
    ('matmul_mma', matmul, dict(a=H, b=H, c=F, M='i32', N='i32', K='i32'), dict(BM=16, BN=16, BK=32), OLD, dict(num_warps=1)),
    ('matmul_tma', matmul_tma, dict(a=B, b=B, c=B, M='i32', N='i32', K='i32'), dict(BM=128, BN=64, BK=64, WS=False), BOTH, {}),
    ('matmul_ws', matmul_tma, dict(a=B, b=B, c=B, M='i32', N='i32', K='i32'), dict(BM=128, BN=64, BK=64, WS=True), NEW, {}),
    ('matmul_mxfp8', matmul_scaled, dict(a='*fp8e4nv', sa=U8, b='*fp8e4nv', sb=U8, c=F, K='i32'),
     dict(BM=128, BN=64, BK=128, FORMAT='e4m3', PACK=1, VEC=32), NEW, {}),
    ('matmul_mxfp4', matmul_scaled, dict(a=U8, sa=U8, b=U8, sb=U8, c=F, K='i32'), dict(BM=128, BN=64, BK=128, FORMAT='e2m1', PACK=2, VEC=32), NEW, {}),
    ('matmul_nvfp4', matmul_scaled, dict(a=U8, sa='*fp8e4nv', b=U8, sb='*fp8e4nv', c=F, K='i32'),
     dict(BM=128, BN=64, BK=128, FORMAT='e2m1', PACK=2, VEC=16), NEW, {}),
    ('attention', attention, dict(q=B, k=B, v=B, out=B, N='i32', scale='fp32'), dict(D=64, BM=64, BN=32, WS=False), BOTH, {}),
    ('attention_ws', attention, dict(q=B, k=B, v=B, out=B, N='i32', scale='fp32'), dict(D=64, BM=128, BN=64, WS=True), NEW, {}),
    ('gather_rows', gather_rows, dict(x=B, index=I, out=B, rows='i32', columns='i32'), dict(BM=16, BN=64), NEW, {}),
    ('scatter_rows', scatter_rows, dict(x=B, index=I, out=B, rows='i32', columns='i32'), dict(BM=16, BN=64), NEW, {}),
    ('split_k', split_k, dict(a=H, b=H, c=F, K='i32'), dict(BM=64, BN=16, BK=64), BOTH, {}),
    ('reduce_tma', reduce_tma, dict(x=F, out=F, rows='i32', columns='i32'), dict(BM=16, BN=32), BOTH, {}),
    ('locked_sum', locked_sum, dict(x=F, out=F, lock=I, n='i32'), dict(BLOCK=128), OLD, {}),
]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    for name, function, signature, constants, targets, options in KERNELS:
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        for target in targets:
            values = {(function.arg_names.index(k),): v for k, v in constants.items()}
            source = ASTSource(function, {**signature, **{k: 'constexpr' for k in constants}}, values)
            try:
                made = triton.compile(source, target=GPUTarget('cuda', target, 32), options={'ptx_version': 90, **options})
            except Exception as error:
                print(name, target, 'FAILED', type(error).__name__, str(error)[:300])
                continue
            text = made.asm['ptx'].replace(here + '/', '').replace(here, '.')
            with open(f'{here}/ptx/triton_{name}_sm{target}.ptx', 'w') as f:
                f.write(f'// shared {made.metadata.shared} scratch {made.metadata.global_scratch_size}\n' + text)


if __name__ == '__main__':
    main()
