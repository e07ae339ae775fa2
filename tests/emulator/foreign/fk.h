// What the foreign kernels share: one-line wrappers around PTX instructions, written out as a CUDA programmer would.
#pragma once
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define KERNEL extern "C" __global__ void
#define DEV __device__ __forceinline__

struct alignas(128) TensorMap {
  uint64_t words[16];
};

DEV uint32_t smem(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
DEV uint32_t ctarank() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
DEV uint32_t mapa(uint32_t address, uint32_t rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
  return r;
}
DEV void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
DEV void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
DEV void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}
DEV bool elect() {
  uint32_t p;
  asm volatile("{ .reg .pred P; elect.sync _|P, 0xffffffff; selp.b32 %0, 1, 0, P; }" : "=r"(p));
  return p;
}

// ---- mbarriers

DEV void bar_init(void *b, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(b)), "r"(count) : "memory");
}
DEV void bar_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
DEV void bar_arrive(void *b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem(b)) : "memory");
}
DEV void bar_expect(void *b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(b)), "r"(bytes)
               : "memory");
}
DEV void bar_arrive_remote(void *b, int rank) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapa(smem(b), rank))
               : "memory");
}
DEV void bar_wait(void *b, int parity) {
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 "
               "bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(smem(b)),
               "r"(parity)
               : "memory");
}
DEV void proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- TMA

DEV void tma2(void *dst, const TensorMap *map, void *bar, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
               "%4}], [%2];" ::"r"(smem(dst)),
               "l"(map), "r"(smem(bar)), "r"(x), "r"(y)
               : "memory");
}
DEV void tma2_multicast(void *dst, const TensorMap *map, void *bar, int x, int y, int mask) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
               "cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(smem(dst)),
               "l"(map), "r"(smem(bar)), "r"(x), "r"(y), "h"((short)mask)
               : "memory");
}
DEV void tma2_store(const TensorMap *map, const void *src, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(smem(src)), "r"(x), "r"(y)
               : "memory");
}
DEV void bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
DEV void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
