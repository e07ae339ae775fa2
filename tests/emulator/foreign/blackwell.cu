// targets: 100
// Whole kernels for sm_100a: persistent products of specialised warps by one CTA and by pairs, clusters handed out by the hardware,
// multicast loads, attention with P in tensor memory, rows gathered and scattered by TMA.
#include "tc.h"

#define SWIZZLED ((uint64_t)2 << 61 | (uint64_t)1 << 46 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 16)
DEV uint64_t tile_desc(const void *tile) { return SWIZZLED | (smem(tile) & 0x3FFFF) >> 4; }

// ---- clusters handed out: each CTA marks the tiles that its cluster got, first its own, then those that it was given

KERNEL __cluster_dims__(2, 1, 1) stolen_tiles(uint32_t *out) {
  __shared__ __align__(16) uint4 response;
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
  }
  cluster_sync();
  uint32_t x = blockIdx.x, y = blockIdx.y, z = blockIdx.z, round = 0;
  for (;;) {
    if (threadIdx.x == 0) atomicAdd(&out[(z * gridDim.y + y) * gridDim.x + x], 1 + (round > 0 ? 0x10000 : 0));
    if (threadIdx.x == 0) bar_expect(&bar, 16);
    cluster_sync();
    if (threadIdx.x == 0 && ctarank() == 0)
      asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%0], [%1];" ::"r"(smem(&response)),
                   "r"(smem(&bar))
                   : "memory");
    bar_wait(&bar, round & 1);
    uint32_t yes;
    asm volatile(
        "{ .reg .b128 r; .reg .pred P; ld.shared.b128 r, [%4]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 P, r; selp.u32 %3, 1, 0, P;\n"
        "@P clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, %2, _}, r; }"
        : "+r"(x), "+r"(y), "+r"(z), "=r"(yes)
        : "r"(smem(&response))
        : "memory");
    asm volatile("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" ::: "memory");
    if (!yes) break;
    x += ctarank();
    round++;
  }
  cluster_sync();
}

// ---- C (M x N, f32) = A (M x K) B (N x K)^T: tiles of 256 x 128 by pairs, K in steps of 64, three stages, roles by switch

struct Ring {
  uint64_t full[3], empty[3], done, drained, clc;
  uint32_t slot, spare;
  uint4 response;
};

DEV void tma2_pair(void *dst, const TensorMap *map, uint32_t bar, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(smem(dst)), "l"(map),
               "r"(bar), "r"(x), "r"(y)
               : "memory");
}

KERNEL __cluster_dims__(2, 1, 1) __launch_bounds__(256)
    pair_gemm(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb, float *c, int m, int n, int k) {
  extern __shared__ __align__(1024) uint8_t pool[];
  __shared__ __align__(16) Ring ring;
  const int stage_bytes = (128 + 64) * 128;
  int warp = threadIdx.x / 32, rank = ctarank();
  if (threadIdx.x == 0) {
    for (int s = 0; s < 3; s++) bar_init(&ring.full[s], 1), bar_init(&ring.empty[s], 1);
    bar_init(&ring.done, 1), bar_init(&ring.drained, 2 * 128), bar_init(&ring.clc, 1);
    bar_fence();
  }
  if (warp == 2) asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(smem(&ring.slot)) : "memory");
  before_sync();
  cluster_sync();
  after_sync();
  uint32_t tmem = *(volatile uint32_t *)&ring.slot;
  int tiles_n = n / 128, tiles = m / 256 * tiles_n, steps = k / 64, use = 0, round = 0;
  int first = blockIdx.x / 2, stride = gridDim.x / 2;
  switch (warp < 4 ? warp : 4) {
  case 0:  // loads: each CTA brings its 128 rows of A and its 64 rows of B, and signals the even CTA
    if (elect())
      for (int tile = first; tile < tiles; tile += stride)
        for (int i = 0; i < steps; i++, use++) {
          int s = use % 3;
          bar_wait(&ring.empty[s], (use / 3 & 1) ^ 1);
          if (rank == 0) bar_expect(&ring.full[s], 2 * stage_bytes);
          uint32_t bar = smem(&ring.full[s]) & 0xFEFFFFFF;
          tma2_pair(pool + s * stage_bytes, &ma, bar, i * 64, tile / tiles_n * 256 + rank * 128);
          tma2_pair(pool + s * stage_bytes + 128 * 128, &mb, bar, i * 64, tile % tiles_n * 128 + rank * 64);
        }
    break;
  case 1:  // products: the even CTA for both
    if (rank == 0 && elect())
      for (int tile = first; tile < tiles; tile += stride, round++) {
        bar_wait(&ring.drained, (round & 1) ^ 1);
        after_sync();
        for (int i = 0; i < steps; i++, use++) {
          int s = use % 3;
          bar_wait(&ring.full[s], use / 3 & 1);
          after_sync();
          uint64_t a = tile_desc(pool + s * stage_bytes), b = tile_desc(pool + s * stage_bytes + 128 * 128);
          for (int j = 0; j < 4; j++)
            asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, P; }" ::"r"(tmem), "l"(a + 2 * j), "l"(b + 2 * j),
                         "r"(0x10200490), "r"(i | j));
          commit2(&ring.empty[s], 3);
        }
        commit2(&ring.done, 3);
      }
    break;
  case 2: break;
  case 3: break;
  case 4: {
    int t = threadIdx.x - 128, row = rank * 128 + t;
    for (int tile = first; tile < tiles; tile += stride, round++) {
      bar_wait(&ring.done, round & 1);
      after_sync();
      for (int j = 0; j < 128; j += 8) {
        uint32_t v[8];
        ld8(tmem + own_lanes() + j, v);
        wait_ld();
        for (int i = 0; i < 8; i++) c[(size_t)(tile / tiles_n * 256 + row) * n + tile % tiles_n * 128 + j + i] = __uint_as_float(v[i]);
      }
      before_sync();
      bar_arrive_remote(&ring.drained, 0);
    }
    break;
  }
  }
  before_sync();
  cluster_sync();
  after_sync();
  if (warp == 2) {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 128;" ::"r"(tmem));
  }
}

// The same product by clusters of 2 x 2 CTAs of one each, tiles of 128 x 64, A sent along rows of the cluster and B along columns; two
// accumulators; the next tile of a cluster comes from clusterlaunchcontrol. The result leaves by TMA as bf16.
KERNEL __cluster_dims__(2, 2, 1) __launch_bounds__(192)
    cluster_gemm(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb, const __grid_constant__ TensorMap mc, int k) {
  extern __shared__ __align__(1024) uint8_t pool[];
  __shared__ __align__(16) Ring ring;
  __shared__ uint64_t acc_full[2], acc_empty[2], clc_full, clc_empty;
  const int stage_bytes = (128 + 64) * 128;
  uint8_t *store = pool + 3 * stage_bytes;  // 128 x 64 bf16
  uint32_t rank = ctarank(), cx = rank & 1, cy = rank >> 1;
  int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 3; s++) bar_init(&ring.full[s], 1), bar_init(&ring.empty[s], 3);
    for (int s = 0; s < 2; s++) bar_init(&acc_full[s], 1), bar_init(&acc_empty[s], 128);
    bar_init(&clc_full, 1), bar_init(&clc_empty, 4 * 6);
    bar_fence();
  }
  if (warp == 1) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" ::"r"(smem(&ring.slot)) : "memory");
  before_sync();
  cluster_sync();
  after_sync();
  uint32_t tmem = *(volatile uint32_t *)&ring.slot;
  int steps = k / 64, use = 0, round = 0;
  uint32_t x = blockIdx.x, y = blockIdx.y;
  bool more = true;
  while (more) {
    if (warp == 0) {
      if (elect()) {
        // the even CTA asks for the next tile of all four when all warps have read the last answer
        if (rank == 0) bar_wait(&clc_empty, (round & 1) ^ 1);
        bar_expect(&clc_full, 16);
        if (rank == 0) {
          asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%0], [%1];" ::"r"(
                           smem(&ring.response)),
                       "r"(smem(&clc_full))
                       : "memory");
        }
        for (int i = 0; i < steps; i++, use++) {
          int s = use % 3;
          bar_wait(&ring.empty[s], (use / 3 & 1) ^ 1);
          bar_expect(&ring.full[s], stage_bytes);
          uint8_t *a = pool + s * stage_bytes, *b = a + 128 * 128;
          // each CTA loads half of its row's A and of its column's B for two CTAs
          tma2_multicast(a + cx * 64 * 128, &ma, &ring.full[s], i * 64, y * 128 + cx * 64, 3 << (2 * cy));
          tma2_multicast(b + cy * 32 * 128, &mb, &ring.full[s], i * 64, x * 64 + cy * 32, 5 << cx);
        }
      } else {
        use += steps;
      }
      use = __shfl_sync(~0u, use, 0);
    } else if (warp == 1) {
      if (elect()) {
        int w = round & 1;
        bar_wait(&acc_empty[w], (round / 2 & 1) ^ 1);
        after_sync();
        for (int i = 0; i < steps; i++, use++) {
          int s = use % 3;
          bar_wait(&ring.full[s], use / 3 & 1);
          after_sync();
          uint64_t a = tile_desc(pool + s * stage_bytes), b = tile_desc(pool + s * stage_bytes + 128 * 128);
          for (int j = 0; j < 4; j++)
            asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, P; }" ::"r"(tmem + w * 64), "l"(a + 2 * j),
                         "l"(b + 2 * j), "r"(0x08100490), "r"(i | j));
          // frees the stage in all CTAs that wrote into it: the row's and the column's
          int mask = 3 << (2 * cy) | 5 << cx;
          asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(smem(&ring.empty[s])),
                       "h"((short)mask)
                       : "memory");
        }
        commit(&acc_full[w]);
      } else {
        use += steps;
      }
      use = __shfl_sync(~0u, use, 0);
    } else {
      int w = round & 1;
      bar_wait(&acc_full[w], round / 2 & 1);
      after_sync();
      int row = (warp % 4) * 32 + threadIdx.x % 32;
      for (int j = 0; j < 64; j += 8) {
        uint32_t v[8];
        ld8(tmem + own_lanes() + w * 64 + j, v);
        wait_ld();
        uint32_t packed[4];
        for (int i = 0; i < 4; i++) {
          __nv_bfloat162 p = __floats2bfloat162_rn(__uint_as_float(v[2 * i]), __uint_as_float(v[2 * i + 1]));
          packed[i] = *(uint32_t *)&p;
        }
        *(uint4 *)(store + row * 128 + ((j * 2) ^ (row % 8) * 16)) = make_uint4(packed[0], packed[1], packed[2], packed[3]);
      }
      before_sync();
      bar_arrive(&acc_empty[w]);
      proxy_fence();
      asm volatile("bar.sync 1, 128;" ::: "memory");
      if (threadIdx.x == 64) {
        tma2_store(&mc, store, x * 64, y * 128);
        bulk_commit();
        bulk_wait();
      }
      asm volatile("bar.sync 1, 128;" ::: "memory");
    }
    bar_wait(&clc_full, round & 1);
    uint32_t yes, nx, ny;
    asm volatile(
        "{ .reg .b128 r; .reg .pred P; ld.shared.b128 r, [%3]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 P, r; selp.u32 %2, 1, 0, P;\n"
        "mov.u32 %0, 0; mov.u32 %1, 0;\n"
        "@P clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, r;\n"
        "@P clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %1, r; }"
        : "=&r"(nx), "=&r"(ny), "=r"(yes)
        : "r"(smem(&ring.response))
        : "memory");
    __syncwarp();
    if (threadIdx.x % 32 == 0) bar_arrive_remote(&clc_empty, 0);
    more = yes;
    x = nx + cx, y = ny + cy;
    round++;
  }
  before_sync();
  cluster_sync();
  after_sync();
  if (warp == 1) {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" ::"r"(tmem));
  }
}

// ---- attention: 128 queries a CTA, keys in blocks of 64, D = 64. S = Q K^T in tensor memory; P goes back into it as A of P V.

KERNEL __launch_bounds__(128) attention(const __grid_constant__ TensorMap mq, const __grid_constant__ TensorMap mk, const __grid_constant__ TensorMap mv, float *out, int n,
                                        float scale) {
  extern __shared__ __align__(1024) uint8_t pool[];
  __shared__ uint64_t loaded, multiplied;
  __shared__ uint32_t slot;
  uint8_t *q = pool, *k = pool + 128 * 128, *v = k + 64 * 128;
  if (threadIdx.x == 0) {
    bar_init(&loaded, 1), bar_init(&multiplied, 1);
    bar_fence();
  }
  uint32_t tmem = tmem_alloc(&slot, 256), s = tmem, p = tmem + 64, o = tmem + 128;
  float top = -1e30f, total = 0, acc[64];
  for (int i = 0; i < 64; i++) acc[i] = 0;
  int phase = 0, rounds = 0;
  for (int start = 0; start < n; start += 64, rounds++) {
    if (threadIdx.x == 0) {
      bar_expect(&loaded, 2 * 64 * 128 + (start == 0 ? 128 * 128 : 0));
      if (start == 0) tma2(q, &mq, &loaded, 0, blockIdx.x * 128);
      tma2(k, &mk, &loaded, 0, start);
      tma2(v, &mv, &loaded, 0, start);
      bar_wait(&loaded, rounds & 1);
      for (int j = 0; j < 4; j++)
        asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, P; }" ::"r"(s), "l"(tile_desc(q) + 2 * j),
                     "l"(tile_desc(k) + 2 * j), "r"(0x08100490), "r"(j));
      commit(&multiplied);
    }
    __syncwarp();
    bar_wait(&multiplied, phase++ & 1);
    after_sync();
    float x[64], m = top;
    for (int j = 0; j < 64; j += 8) {
      uint32_t w[8];
      ld8(s + own_lanes() + j, w);
      wait_ld();
      for (int i = 0; i < 8; i++) m = fmaxf(m, x[j + i] = __uint_as_float(w[i]) * scale);
    }
    float f = exp2f(top - m), sum = 0;
    top = m;
    for (int j = 0; j < 64; j += 16) {
      uint32_t w[8];
      for (int i = 0; i < 8; i++) {
        float y0 = exp2f(x[j + 2 * i] - m), y1 = exp2f(x[j + 2 * i + 1] - m);
        sum += y0 + y1;
        __nv_bfloat162 two = __floats2bfloat162_rn(y0, y1);
        w[i] = *(uint32_t *)&two;
      }
      st8(p + own_lanes() + j / 2, w);
    }
    wait_st();
    total = total * f + sum;
    before_sync();
    __syncthreads();
    after_sync();
    if (threadIdx.x == 0) {
      // V is keys x D: B of this product is its transpose, so it is read MN-major
      uint64_t b = (uint64_t)2 << 61 | (uint64_t)1 << 46 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)(64 * 128 >> 4) << 16 | (smem(v) & 0x3FFFF) >> 4;
      for (int j = 0; j < 4; j++)
        asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, P; }" ::"r"(o), "r"(p + 8 * j), "l"(b + 128 * j),
                     "r"(0x08100490 | 1 << 16), "r"(j));
      commit(&multiplied);
    }
    __syncwarp();
    bar_wait(&multiplied, phase++ & 1);
    after_sync();
    for (int j = 0; j < 64; j += 8) {
      uint32_t w[8];
      ld8(o + own_lanes() + j, w);
      wait_ld();
      for (int i = 0; i < 8; i++) acc[j + i] = acc[j + i] * f + __uint_as_float(w[i]);
    }
    before_sync();
    __syncthreads();
    after_sync();
  }
  for (int i = 0; i < 64; i++) out[(blockIdx.x * 128 + threadIdx.x) * 64 + i] = acc[i] / total;
  tmem_free(tmem, 256);
}

// ---- four rows at a time

KERNEL gather_scatter(const __grid_constant__ TensorMap from, const __grid_constant__ TensorMap to, const int *rows, int count, int column) {
  extern __shared__ __align__(1024) uint8_t pool[];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
    for (int i = 0; i < count; i += 4) {
      bar_expect(&bar, 4 * 128);
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(
                       smem(pool + i * 128)),
                   "l"(&from), "r"(smem(&bar)), "r"(column), "r"(rows[i]), "r"(rows[i + 1]), "r"(rows[i + 2]), "r"(rows[i + 3])
                   : "memory");
      bar_wait(&bar, i / 4 & 1);
      asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&to), "r"(smem(pool + i * 128)),
                   "r"(column), "r"(rows[count + i]), "r"(rows[count + i + 1]), "r"(rows[count + i + 2]), "r"(rows[count + i + 3])
                   : "memory");
      bulk_commit();
    }
    bulk_wait();
  }
}

KERNEL bulk_zero(uint32_t *out) {
  __shared__ __align__(16) uint32_t s[64];
  s[threadIdx.x] = 7, s[threadIdx.x + 32] = 9;
  __syncwarp();
  if (threadIdx.x == 0) asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" ::"r"(smem(s + 4)), "l"((uint64_t)72) : "memory");
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x], out[threadIdx.x + 32] = s[threadIdx.x + 32];
}

// Pairs of floats in one instruction.
KERNEL packed_floats(const float2 *a, const float2 *b, float2 *out) {
  int t = threadIdx.x;
  uint64_t x = *(uint64_t *)&a[t], y = *(uint64_t *)&b[t], r[5];
  asm("add.rn.f32x2 %0, %1, %2;" : "=l"(r[0]) : "l"(x), "l"(y));
  asm("mul.rn.f32x2 %0, %1, %2;" : "=l"(r[1]) : "l"(x), "l"(y));
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(r[2]) : "l"(x), "l"(y), "l"(x));
  asm("sub.rz.f32x2 %0, %1, %2;" : "=l"(r[3]) : "l"(x), "l"(y));
  asm("fma.rm.ftz.f32x2 %0, %1, %2, %3;" : "=l"(r[4]) : "l"(y), "l"(y), "l"(x));
  for (int i = 0; i < 5; i++) out[t * 5 + i] = *(float2 *)&r[i];
}
// Formats that only this generation converts to.
KERNEL tiny_floats(const float *a, uint32_t *out) {
  int t = threadIdx.x;
  float x = a[2 * t], y = a[2 * t + 1];
  uint16_t s;
  uint32_t r[8];
  asm("{ .reg .b8 q; cvt.rn.satfinite.e2m1x2.f32 q, %1, %2; cvt.u32.u8 %0, q; }" : "=r"(r[0]) : "f"(x), "f"(y));
  asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;" : "=h"(s) : "f"(x), "f"(y));
  r[1] = s;
  asm("cvt.rn.satfinite.e3m2x2.f32 %0, %1, %2;" : "=h"(s) : "f"(x), "f"(y));
  r[2] = s;
  asm("cvt.rz.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(s) : "f"(x), "f"(y));
  r[3] = s;
  asm("cvt.rp.satfinite.ue8m0x2.f32 %0, %1, %2;" : "=h"(s) : "f"(x), "f"(y));
  r[4] = s;
  asm("{ .reg .b8 q; cvt.u8.u32 q, %1; cvt.rn.f16x2.e2m1x2 %0, q; }" : "=r"(r[5]) : "r"(t * 37 & 255));
  asm("cvt.rn.f16x2.e3m2x2 %0, %1;" : "=r"(r[6]) : "h"((uint16_t)((t * 7 & 63) | (t * 11 & 63) << 8)));
  asm("cvt.rn.bf16x2.ue8m0x2 %0, %1;" : "=r"(r[7]) : "h"((uint16_t)(t * 8 | (t * 5 + 1) << 8)));
  for (int i = 0; i < 8; i++) out[t * 8 + i] = r[i];
}
