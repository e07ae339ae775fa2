// tcgen05 wrappers.
#pragma once
#include "fk.h"

DEV void after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
DEV void before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
DEV void wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
DEV void wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
DEV void commit(void *bar) { asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(smem(bar)) : "memory"); }
DEV void commit2(void *bar, int mask) {
  asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(smem(bar)), "h"((short)mask)
               : "memory");
}
// The whole block calls these; warp 0 does it.
template <int G = 1> DEV uint32_t tmem_alloc(uint32_t *slot, int columns) {
  if (threadIdx.x < 32) {
    if (G == 1)
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(smem(slot)), "r"(columns) : "memory");
    else
      asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(smem(slot)), "r"(columns) : "memory");
  }
  before_sync();
  __syncthreads();
  after_sync();
  return *(volatile uint32_t *)slot;
}
template <int G = 1> DEV void tmem_free(uint32_t address, int columns) {
  before_sync();
  __syncthreads();
  after_sync();
  if (threadIdx.x < 32) {
    if (G == 1) {
      asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
      asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
    } else {
      asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
      asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
    }
  }
}
// The warp's own 32 lanes.
DEV uint32_t own_lanes() { return (threadIdx.x / 32 % 4) << 21; }
DEV uint32_t ld1(uint32_t address) {
  uint32_t v;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(v) : "r"(address));
  return v;
}
DEV void ld8(uint32_t address, uint32_t *v) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])
               : "r"(address));
}
DEV void st8(uint32_t address, const uint32_t *v) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7};" ::"r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]),
               "r"(v[5]), "r"(v[6]), "r"(v[7]), "r"(address));
}
// 128 lanes of `columns` (a multiple of 8) from or to a global image, by four warps.
static __device__ __noinline__ void tmem_dump(uint32_t address, int columns, uint32_t *out) {
#pragma unroll 1
  for (int c = 0; c < columns; c += 8) {
    uint32_t v[8];
    ld8(address + own_lanes() + c, v);
    wait_ld();
    for (int i = 0; i < 8; i++) out[threadIdx.x % 128 * columns + c + i] = v[i];
  }
}
static __device__ __noinline__ void tmem_fill(uint32_t address, int columns, const uint32_t *in, uint32_t value) {
#pragma unroll 1
  for (int c = 0; c < columns; c += 8) {
    uint32_t v[8];
    for (int i = 0; i < 8; i++) v[i] = in ? in[threadIdx.x % 128 * columns + c + i] : value;
    st8(address + own_lanes() + c, v);
  }
  wait_st();
}
static __device__ __noinline__ void smem_fill(void *to, const void *from, int bytes) {
#pragma unroll 1
  for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
  proxy_fence();
}
