// TMA tiles of every rank and swizzle, stores, reductions, multicast, bulk copies without a map, tensor maps made on the device.
// targets: 90
#include "fk.h"

DEV void dump(uint8_t *out, const uint8_t *tile, int bytes) {
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = tile[i];
}

// The tile as it lies in shared memory, for each rank.
#define LOAD_PROLOGUE                                        \
  extern __shared__ __align__(1024) uint8_t tile[];          \
  __shared__ uint64_t bar;                                   \
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) tile[i] = 0xEE; \
  proxy_fence();                                             \
  if (threadIdx.x == 0) {                                    \
    bar_init(&bar, 1);                                       \
    bar_fence();                                             \
  }                                                          \
  __syncthreads();                                           \
  if (threadIdx.x == 0) {                                    \
    bar_expect(&bar, expected);
#define LOAD_EPILOGUE  \
  }                    \
  bar_wait(&bar, 0);   \
  dump(out, tile, bytes);

KERNEL load1(const __grid_constant__ TensorMap map, uint8_t *out, int bytes, int expected, int x) {
  LOAD_PROLOGUE
  asm volatile("cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" ::"r"(smem(tile)), "l"(&map),
               "r"(smem(&bar)), "r"(x)
               : "memory");
  LOAD_EPILOGUE
}
KERNEL load2(const __grid_constant__ TensorMap map, uint8_t *out, int bytes, int expected, int x, int y) {
  LOAD_PROLOGUE
  tma2(tile, &map, &bar, x, y);
  LOAD_EPILOGUE
}
KERNEL load3(const __grid_constant__ TensorMap map, uint8_t *out, int bytes, int expected, int x, int y, int z) {
  LOAD_PROLOGUE
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(smem(tile)),
               "l"(&map), "r"(smem(&bar)), "r"(x), "r"(y), "r"(z)
               : "memory");
  LOAD_EPILOGUE
}
KERNEL load4(const __grid_constant__ TensorMap map, uint8_t *out, int bytes, int expected, int x, int y, int z, int w) {
  LOAD_PROLOGUE
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global [%0, {%1, %2, %3, %4}];" ::"l"(&map), "r"(x), "r"(y), "r"(z), "r"(w));
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(smem(tile)),
               "l"(&map), "r"(smem(&bar)), "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
  LOAD_EPILOGUE
}
KERNEL load5(const __grid_constant__ TensorMap map, uint8_t *out, int bytes, int expected, int x, int y, int z, int w, int v) {
  LOAD_PROLOGUE
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(
          smem(tile)),
      "l"(&map), "r"(smem(&bar)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v), "l"(policy)
      : "memory");
  LOAD_EPILOGUE
}

// A tile of consecutive bytes, stored or combined through a map.
DEV void fill(uint8_t *tile, const uint8_t *in, int bytes) {
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) tile[i] = in[i];
  proxy_fence();
  __syncthreads();
}
KERNEL store2(const __grid_constant__ TensorMap map, const uint8_t *in, int bytes, int x, int y) {
  extern __shared__ __align__(1024) uint8_t tile[];
  fill(tile, in, bytes);
  if (threadIdx.x == 0) {
    tma2_store(&map, tile, x, y);
    bulk_commit();
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    bulk_wait();
  }
}
#define REDUCE(op)                                                                                                                          \
  KERNEL reduce_##op(const __grid_constant__ TensorMap map, const uint8_t *in, int bytes, int x, int y) {                                   \
    extern __shared__ __align__(1024) uint8_t tile[];                                                                                       \
    fill(tile, in, bytes);                                                                                                                  \
    if (threadIdx.x == 0) {                                                                                                                 \
      asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." #op ".tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(smem(tile)), \
                   "r"(x), "r"(y)                                                                                                           \
                   : "memory");                                                                                                             \
      bulk_commit();                                                                                                                        \
      bulk_wait();                                                                                                                          \
    }                                                                                                                                       \
  }
REDUCE(add)
REDUCE(min)
REDUCE(max)
REDUCE(inc)
REDUCE(dec)
REDUCE(and)
REDUCE(or)
REDUCE(xor)

// Each of four CTAs loads a quarter and sends it to all.
KERNEL __cluster_dims__(4, 1, 1) multicast(const __grid_constant__ TensorMap map, uint32_t *out, int x, int y) {
  __shared__ __align__(1024) uint8_t tile[32 * 64];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
  }
  cluster_sync();
  uint32_t rank = ctarank();
  if (threadIdx.x == 0) {
    bar_expect(&bar, sizeof tile);
    tma2_multicast(tile + rank * 8 * 64, &map, &bar, x, y + rank * 8, 15);
  }
  bar_wait(&bar, 0);
  uint32_t sum = 0;
  for (int i = threadIdx.x; i < 32 * 64; i += blockDim.x) {
    uint32_t v = tile[i];
    sum += v * (i + 1);
    out[blockIdx.x * 2048 + i] = v;
  }
  cluster_sync();
}

// ---- bulk copies without a map

KERNEL bulk_round(const uint8_t *in, uint8_t *out, int bytes) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
    bar_expect(&bar, bytes);
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in), "r"(bytes));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(smem(tile)), "l"(in), "r"(bytes),
                 "r"(smem(&bar))
                 : "memory");
  }
  __syncthreads();
  bar_wait(&bar, 0);
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) tile[i] ^= 0x5A;
  proxy_fence();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out), "r"(smem(tile)), "r"(bytes) : "memory");
    bulk_commit();
    bulk_wait();
  }
}

// A ring: every CTA sends its tile to the next one of the cluster.
KERNEL __cluster_dims__(4, 1, 1) bulk_ring(const uint32_t *in, uint32_t *out) {
  __shared__ __align__(128) uint32_t mine[64];
  __shared__ __align__(128) uint32_t theirs[64];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
    bar_expect(&bar, 256);
  }
  mine[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  proxy_fence();
  cluster_sync();
  if (threadIdx.x == 0) {
    uint32_t next = (ctarank() + 1) % 4;
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(mapa(smem(theirs), next)),
                 "r"(smem(mine)), "r"(256), "r"(mapa(smem(&bar), next))
                 : "memory");
  }
  bar_wait(&bar, 0);
  out[blockIdx.x * 64 + threadIdx.x] = theirs[threadIdx.x];
  cluster_sync();
}

KERNEL __cluster_dims__(2, 1, 1) bulk_multicast(const uint32_t *in, uint32_t *out) {
  __shared__ __align__(128) uint32_t tile[64];
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
    bar_expect(&bar, 256);
  }
  cluster_sync();
  if (threadIdx.x == 0 && ctarank() == 1)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(smem(tile)),
                 "l"(in), "r"(256), "r"(smem(&bar)), "h"((short)3)
                 : "memory");
  bar_wait(&bar, 0);
  out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x];
  cluster_sync();
}

#define BULK_REDUCE(name, op, type)                                                                                                              \
  KERNEL bulk_##name(const uint8_t *in, uint8_t *out, int bytes) {                                                                               \
    extern __shared__ __align__(1024) uint8_t tile[];                                                                                              \
    fill(tile, in, bytes);                                                                                                                       \
    if (threadIdx.x == 0) {                                                                                                                      \
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." op "." type " [%0], [%1], %2;" ::"l"(out), "r"(smem(tile)), "r"(bytes) \
                   : "memory");                                                                                                                  \
      bulk_commit();                                                                                                                             \
      bulk_wait();                                                                                                                               \
    }                                                                                                                                            \
  }
BULK_REDUCE(add_f32, "add", "f32")
BULK_REDUCE(add_f64, "add", "f64")
BULK_REDUCE(add_f16, "add.noftz", "f16")
BULK_REDUCE(add_bf16, "add.noftz", "bf16")
BULK_REDUCE(min_s32, "min", "s32")
BULK_REDUCE(max_u64, "max", "u64")
BULK_REDUCE(xor_b32, "xor", "b32")

// Both CTAs add into the first one's counters.
KERNEL __cluster_dims__(2, 1, 1) bulk_add_peer(const uint32_t *in, uint32_t *out) {
  __shared__ __align__(128) uint32_t mine[32];
  __shared__ __align__(128) uint32_t sum[32];
  __shared__ uint64_t bar;
  mine[threadIdx.x] = in[blockIdx.x * 32 + threadIdx.x];
  sum[threadIdx.x] = 1000;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
    if (ctarank() == 0) bar_expect(&bar, 256);
  }
  proxy_fence();
  cluster_sync();
  if (threadIdx.x == 0)
    asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], %2, [%3];" ::"r"(
                     mapa(smem(sum), 0)),
                 "r"(smem(mine)), "r"(128), "r"(mapa(smem(&bar), 0))
                 : "memory");
  if (ctarank() == 0) {
    bar_wait(&bar, 0);
    out[threadIdx.x] = sum[threadIdx.x];
  }
  cluster_sync();
}

// ---- a tensor map made on the device

#define REPLACE(field, type, constraint, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], %1;" ::"r"(smem(m)), constraint(value) : "memory")
#define REPLACE_AT(field, type, constraint, ordinal, value) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], " #ordinal ", %1;" ::"r"(smem(m)), constraint(value) : "memory")

KERNEL device_map(const uint16_t *in, uint64_t *scratch, uint8_t *out, int width, int height, int bytes) {
  extern __shared__ __align__(1024) uint8_t tile[];
  __shared__ __align__(128) uint32_t m[32];
  __shared__ uint64_t bar;
  m[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
  }
  __syncwarp();
  if (threadIdx.x == 0) {
    REPLACE("global_address", "b64", "l", (uint64_t)in);
    REPLACE("rank", "b32", "r", 1);
    REPLACE_AT("box_dim", "b32", "r", 0, 64);
    REPLACE_AT("box_dim", "b32", "r", 1, 16);
    REPLACE_AT("global_dim", "b32", "r", 0, width);
    REPLACE_AT("global_dim", "b32", "r", 1, height);
    REPLACE_AT("global_stride", "b64", "l", 0, (uint64_t)width * 2);
    REPLACE_AT("element_stride", "b32", "r", 0, 1);
    REPLACE_AT("element_stride", "b32", "r", 1, 1);
    asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 10;" ::"r"(smem(m)) : "memory");
    asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"r"(smem(m)) : "memory");
    asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"r"(smem(m)) : "memory");
    asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 1;" ::"r"(smem(m)) : "memory");
  }
  __syncwarp();
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(scratch), "r"(smem(m))
               : "memory");
  if (threadIdx.x == 0) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(scratch) : "memory");
    bar_expect(&bar, 64 * 16 * 2);
    tma2(tile, (const TensorMap *)scratch, &bar, 0, 8);
    bar_wait(&bar, 0);
  }
  __syncwarp();
  dump(out, tile, bytes);
}
