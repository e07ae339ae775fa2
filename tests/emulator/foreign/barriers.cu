// mbarriers of every kind, clusters and their addresses, asynchronous stores, named barriers.
// targets: 90
#include "fk.h"
#include <cooperative_groups.h>

// Counted arrivals, dropped arrivals, states and pending counts.
KERNEL mbarrier_counts(uint32_t *out) {
  __shared__ uint64_t bar;
  int t = threadIdx.x;
  if (t == 0) bar_init(&bar, 64);
  __syncthreads();
  uint64_t state;
  uint32_t early, pending, done;
  // phase 0: half of the threads arrive twice at once, the others not at all
  if (t < 32) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;" ::"r"(smem(&bar)) : "memory");
  bar_wait(&bar, 0);
  out[t] = 1;
  __syncthreads();
  // phase 1: a quarter leaves for good
  if (t < 16) {
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(smem(&bar)) : "memory");
  } else {
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(smem(&bar)) : "memory");
  }
  do {
    asm volatile("{ .reg .pred P; mbarrier.test_wait.shared::cta.b64 P, [%1], %2; selp.u32 %0, 1, 0, P; }"
                 : "=r"(done)
                 : "r"(smem(&bar)), "l"(state)
                 : "memory");
  } while (!done);
  __syncthreads();
  // phase 2: 48 are expected now; one thread does it all, and looks at the count before its last arrival
  if (t == 0) {
    asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 40;" : "=l"(state) : "r"(smem(&bar)) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[64] = pending;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 7;" : "=l"(state) : "r"(smem(&bar)) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    out[65] = pending;
    asm volatile("{ .reg .pred P; mbarrier.test_wait.parity.shared::cta.b64 P, [%1], 0; selp.u32 %0, 1, 0, P; }" : "=r"(early) : "r"(smem(&bar)));
    out[66] = early;
    bar_arrive(&bar);
    asm volatile("{ .reg .pred P; mbarrier.test_wait.parity.shared::cta.b64 P, [%1], 0; selp.u32 %0, 1, 0, P; }" : "=r"(early) : "r"(smem(&bar)));
    out[67] = early;
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(smem(&bar)) : "memory");
    bar_init(&bar, 1);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 48;" ::"r"(smem(&bar)) : "memory");
    bar_arrive(&bar);
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" ::"r"(smem(&bar)) : "memory");
    asm volatile("{ .reg .pred P; mbarrier.test_wait.parity.shared::cta.b64 P, [%1], 0; selp.u32 %0, 1, 0, P; }" : "=r"(early) : "r"(smem(&bar)));
    out[68] = early;
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" ::"r"(smem(&bar)) : "memory");
    asm volatile("{ .reg .pred P; mbarrier.try_wait.parity.shared::cta.b64 P, [%1], 0, 1000; selp.u32 %0, 1, 0, P; }" : "=r"(early) : "r"(smem(&bar)));
    out[69] = early;
  }
}

// Two CTAs hand a number back and forth by remote arrivals.
KERNEL __cluster_dims__(2, 1, 1) mbarrier_ping_pong(uint32_t *out, int rounds) {
  __shared__ uint64_t bar;
  __shared__ uint32_t value;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
    value = 1;
  }
  cluster_sync();
  uint32_t me = ctarank(), peer = me ^ 1;
  if (threadIdx.x == 0) {
    for (int i = 0; i < rounds; i++) {
      if (me == 1 || i > 0) bar_wait(&bar, (me == 1 ? i : i - 1) & 1);
      uint32_t mine = value * 3 + me;
      asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(mapa(smem(&value), peer)), "r"(mine) : "memory");
      asm volatile("fence.acq_rel.cluster;" ::: "memory");
      bar_arrive_remote(&bar, peer);
    }
    if (me == 0) {
      bar_wait(&bar, (rounds - 1) & 1);
      out[0] = value;
    }
  }
  cluster_sync();
}

KERNEL __cluster_dims__(2, 1, 1) st_async(uint32_t *out) {
  __shared__ __align__(16) uint32_t box[32 * 8];
  __shared__ uint64_t bar;
  uint32_t t = threadIdx.x;
  for (int i = 0; i < 8; i++) box[t * 8 + i] = 0xAAAA;
  if (t == 0) {
    bar_init(&bar, 1);
    bar_fence();
    bar_expect(&bar, 32 * (4 + 8 + 16));
  }
  cluster_sync();
  uint32_t peer = ctarank() ^ 1, to = mapa(smem(box), peer), b = mapa(smem(&bar), peer), me = ctarank() * 1000 + t;
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to + t * 4), "r"(me), "r"(b) : "memory");
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to + 128 + t * 8), "l"((uint64_t)me << 33), "r"(b)
               : "memory");
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to + 384 + t * 16), "f"(me + 0.5f),
               "f"(me + 1.5f), "f"(-1.0f * me), "f"(0.25f), "r"(b)
               : "memory");
  bar_wait(&bar, 0);
  for (int i = 0; i < 8; i++) out[blockIdx.x * 256 + i * 32 + t] = box[i * 32 + t];
  cluster_sync();
}

KERNEL __cluster_dims__(4, 1, 1) red_async(uint32_t *out) {
  __shared__ uint32_t box[8];
  __shared__ unsigned long long wide;
  __shared__ uint64_t bar;
  uint32_t t = threadIdx.x;
  if (t < 8) box[t] = t == 4 || t == 1 ? 0xFFFFFFFF : 0;
  if (t == 0) {
    wide = 1;
    bar_init(&bar, 1);
    bar_fence();
    if (ctarank() == 0) bar_expect(&bar, 4 * 32 * (4 * 7 + 8));
  }
  cluster_sync();
  uint32_t to = mapa(smem(box), 0), b = mapa(smem(&bar), 0), me = ctarank() * 32 + t;
#define RED(op, type, offset, value) \
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." op "." type " [%0], %1, [%2];" ::"r"(to + offset), "r"(value), "r"(b) : "memory")
  RED("add", "u32", 0, me);
  RED("min", "u32", 4, me + 5);
  RED("max", "s32", 8, (int)me - 50);
  RED("inc", "u32", 12, 99);
  RED("and", "b32", 16, ~(1u << (me & 7)));
  RED("or", "b32", 20, 1u << (me & 15));
  RED("xor", "b32", 24, me * 0x01010101u);
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%0], %1, [%2];" ::"r"(mapa(smem(&wide), 0)),
               "l"((unsigned long long)me << 30), "r"(b)
               : "memory");
  if (ctarank() == 0) {
    bar_wait(&bar, 0);
    if (t < 8) out[t] = box[t];
    if (t == 0) *(unsigned long long *)(out + 8) = wide;
  }
  cluster_sync();
}

// What a thread can know about its cluster. 16 words a CTA.
KERNEL cluster_facts(uint32_t *out) {
  __shared__ uint32_t here;
  uint32_t r[16], address = smem(&here);
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r[0]));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r[1]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(r[2]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(r[3]));
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(r[4]));
  asm volatile("mov.u32 %0, %%clusterid.y;" : "=r"(r[5]));
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(r[6]));
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(r[7]));
  asm volatile("{ .reg .pred P; mov.pred P, %%is_explicit_cluster; selp.u32 %0, 1, 0, P; }" : "=r"(r[8]));
  r[9] = address >> 24;
  r[10] = mapa(address, 1) - mapa(address, 0);
  asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(r[11]) : "r"(mapa(address, 1)));
  asm volatile("{ .reg .pred P; isspacep.shared::cta P, %1; selp.u32 %0, 1, 0, P; }" : "=r"(r[12]) : "l"(&here));
  asm volatile("{ .reg .b64 a; .reg .pred P; mapa.u64 a, %1, %2; isspacep.shared::cta P, a; selp.u32 %0, 1, 0, P; }"
               : "=r"(r[13])
               : "l"(&here), "r"(ctarank() ^ 1));
  asm volatile("{ .reg .b64 a; .reg .pred P; mapa.u64 a, %1, %2; isspacep.shared::cluster P, a; selp.u32 %0, 1, 0, P; }"
               : "=r"(r[14])
               : "l"(&here), "r"(ctarank() ^ 1));
  asm volatile("{ .reg .pred P; isspacep.global P, %1; selp.u32 %0, 1, 0, P; }" : "=r"(r[15]) : "l"(out));
  uint32_t cta = blockIdx.x + gridDim.x * blockIdx.y;
  if (threadIdx.x == 0)
    for (int i = 0; i < 16; i++) out[cta * 16 + i] = r[i];
}

// Sum over a cluster of any size by distributed shared memory, with cooperative groups' own code.
KERNEL cluster_sum(const float *in, float *out, int n) {
  namespace cg = cooperative_groups;
  cg::cluster_group cluster = cg::this_cluster();
  __shared__ float part[32], total;
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
  float sum = 0;
  for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads()) sum += in[i];
  for (int d = 16; d > 0; d /= 2) sum += warp.shfl_xor(sum, d);
  if (warp.thread_rank() == 0) part[warp.meta_group_rank()] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    total = 0;
    for (int w = 0; w < blockDim.x / 32; w++) total += part[w];
  }
  cluster.sync();
  if (threadIdx.x == 0) {
    float all = 0;
    for (unsigned r = 0; r < cluster.num_blocks(); r++) all += *cluster.map_shared_rank(&total, r);
    out[blockIdx.x] = all + cluster.block_rank();
  }
  cluster.sync();
}

// Producer and consumer warps on named barriers: bar.arrive does not wait.
KERNEL named_barriers(uint32_t *out, int rounds) {
  __shared__ uint32_t box[2][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    for (int i = 0; i < rounds; i++) {
      int s = i & 1;
      if (i >= 2) asm volatile("bar.sync %0, 64;" ::"r"(3 + s) : "memory");
      box[s][lane] = i * 100 + lane;
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + s) : "memory");
    }
  } else {
    uint32_t sum = 0;
    for (int i = 0; i < rounds; i++) {
      int s = i & 1;
      asm volatile("barrier.sync %0, 64;" ::"r"(1 + s) : "memory");
      sum = sum * 7 + box[s][lane];
      if (i + 2 < rounds) asm volatile("barrier.arrive %0, 64;" ::"r"(3 + s) : "memory");
    }
    out[lane] = sum;
  }
}

KERNEL barrier_votes(const int *in, int *out) {
  int v = in[threadIdx.x];
  int count = __syncthreads_count(v > 2), all = __syncthreads_and(v > -5), any = __syncthreads_or(v == 7);
  out[threadIdx.x] = count * 100 + (all != 0) * 10 + (any != 0);
}

// cp.async of 4, 8 and 16 bytes, short sources, groups, and an mbarrier that counts copies.
KERNEL cp_async_kinds(const uint8_t *in, uint8_t *out) {
  __shared__ __align__(16) uint8_t tile[4][512];
  __shared__ uint64_t bar;
  int t = threadIdx.x;
  if (t == 0) bar_init(&bar, 32);
  for (int i = 0; i < 4; i++) ((uint4 *)tile[i])[t] = make_uint4(0x77777777, 0x77777777, 0x77777777, 0x77777777);
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(smem(tile[0] + t * 4)), "l"(in + t * 4) : "memory");
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(smem(tile[0] + 128 + t * 8)), "l"(in + 128 + t * 8), "r"(t % 9) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem(tile[1] + t * 16)), "l"(in + 512 + t * 16) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem(tile[2] + t * 16)), "l"(in + 1024 + t * 16), "r"(t % 2 ? 16 : 0) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
  for (int i = t; i < 512; i += 32) out[i] = i < 384 ? tile[0][i] : 0;
  for (int i = t; i < 512; i += 32) out[512 + i] = tile[1][i];
  asm volatile("{ .reg .pred P; setp.ne.u32 P, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, P; }" ::"r"(smem(tile[3] + t * 16)), "l"(in + 1536 + t * 16),
               "r"(t & 4)
               : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(smem(&bar)) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  bar_wait(&bar, 0);
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(smem(&bar)) : "memory");
  bar_arrive(&bar);
  bar_wait(&bar, 1);
  for (int i = t; i < 1024; i += 32) out[1024 + i] = tile[2 + i / 512][i % 512];
}
