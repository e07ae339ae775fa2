// targets: 100
// Tensor memory: every shape of load and store, packed forms, every shape of copy, and the addresses they use.
#include "tc.h"
#include <utility>

// One load: 32 threads x registers, from a filled image of 128 lanes x 128 columns.
#define R1(b) "%" #b
#define LIST1 "{%0}"
#define LIST2 "{%0, %1}"
#define LIST4 "{%0, %1, %2, %3}"
#define LIST8 "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define LIST16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define OUT1(v) "=r"(v[0])
#define OUT2(v) OUT1(v), "=r"(v[1])
#define OUT4(v) OUT2(v), "=r"(v[2]), "=r"(v[3])
#define OUT8(v) OUT4(v), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])
#define OUT16(v) OUT8(v), "=r"(v[8]), "=r"(v[9]), "=r"(v[10]), "=r"(v[11]), "=r"(v[12]), "=r"(v[13]), "=r"(v[14]), "=r"(v[15])
#define IN1(v) "r"(v[0])
#define IN2(v) IN1(v), "r"(v[1])
#define IN4(v) IN2(v), "r"(v[2]), "r"(v[3])
#define IN8(v) IN4(v), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7])
#define IN16(v) IN8(v), "r"(v[8]), "r"(v[9]), "r"(v[10]), "r"(v[11]), "r"(v[12]), "r"(v[13]), "r"(v[14]), "r"(v[15])

// ld: image in, registers out. st: registers in, image out (over what was there). `where` is added to the warp's own lanes.
#define LD(name, form, n, extra)                                                                                \
  KERNEL ld_##name(const uint32_t *image, uint32_t *out, uint32_t where) {                                      \
    __shared__ uint32_t slot;                                                                                   \
    uint32_t tmem = tmem_alloc(&slot, 128), v[n];                                                               \
    tmem_fill(tmem, 128, image, 0);                                                                             \
    asm volatile("tcgen05.ld.sync.aligned." form ".b32 " LIST##n ", [%" #n "]" extra ";" : OUT##n(v) : "r"(tmem + own_lanes() + where)); \
    wait_ld();                                                                                                  \
    for (int i = 0; i < n; i++) out[threadIdx.x * n + i] = v[i];                                                \
    tmem_free(tmem, 128);                                                                                       \
  }
#define ST(name, form, n, extra)                                                                                \
  KERNEL st_##name(const uint32_t *image, const uint32_t *in, uint32_t *out, uint32_t where) {                  \
    __shared__ uint32_t slot;                                                                                   \
    uint32_t tmem = tmem_alloc(&slot, 128), v[n];                                                               \
    tmem_fill(tmem, 128, image, 0);                                                                             \
    for (int i = 0; i < n; i++) v[i] = in[threadIdx.x * n + i];                                                 \
    asm volatile("tcgen05.st.sync.aligned." form ".b32 [%" #n "]" extra ", " LIST##n ";" ::IN##n(v), "r"(tmem + own_lanes() + where)); \
    wait_st();                                                                                                  \
    tmem_dump(tmem, 128, out);                                                                                  \
    tmem_free(tmem, 128);                                                                                       \
  }
#define BOTH(name, form, n, extra) LD(name, form, n, extra) ST(name, form, n, extra)
BOTH(32x32b_x1, "32x32b.x1", 1, "")
BOTH(32x32b_x2, "32x32b.x2", 2, "")
BOTH(32x32b_x16, "32x32b.x16", 16, "")
BOTH(16x64b_x1, "16x64b.x1", 1, "")
BOTH(16x64b_x8, "16x64b.x8", 8, "")
BOTH(16x128b_x1, "16x128b.x1", 2, "")
BOTH(16x128b_x8, "16x128b.x8", 16, "")
BOTH(16x256b_x1, "16x256b.x1", 4, "")
BOTH(16x256b_x4, "16x256b.x4", 16, "")
BOTH(16x32bx2_x1, "16x32bx2.x1", 1, ", 5")
BOTH(16x32bx2_x8, "16x32bx2.x8", 8, ", 16")
LD(32x32b_x8_pack, "32x32b.x8.pack::16b", 8, "")
LD(16x64b_x4_pack, "16x64b.x4.pack::16b", 4, "")
LD(16x128b_x4_pack, "16x128b.x4.pack::16b", 8, "")
LD(16x256b_x2_pack, "16x256b.x2.pack::16b", 8, "")
ST(32x32b_x8_unpack, "32x32b.x8.unpack::16b", 8, "")
ST(16x64b_x4_unpack, "16x64b.x4.unpack::16b", 4, "")
ST(16x128b_x4_unpack, "16x128b.x4.unpack::16b", 8, "")
ST(16x256b_x2_unpack, "16x256b.x2.unpack::16b", 8, "")

// Copies from shared memory: an image of 4 KiB to columns 8 and up of a filled image.
#define CP(name, form, ...)                                                                             \
  KERNEL cp_##name(const uint32_t *image, const uint8_t *source, uint32_t *out, uint64_t desc) {        \
    __shared__ __align__(1024) uint8_t pool[4096];                                                      \
    __shared__ uint64_t bar;                                                                            \
    __shared__ uint32_t slot;                                                                           \
    if (threadIdx.x == 0) {                                                                             \
      bar_init(&bar, 1);                                                                                \
      bar_fence();                                                                                      \
    }                                                                                                   \
    uint32_t tmem = tmem_alloc(&slot, 32);                                                              \
    tmem_fill(tmem, 32, image, 0);                                                                      \
    smem_fill(pool, source, 4096);                                                                      \
    before_sync();                                                                                      \
    __syncthreads();                                                                                    \
    after_sync();                                                                                       \
    if (threadIdx.x == 0) {                                                                             \
      asm volatile("tcgen05.cp.cta_group::1." form " [%0], %1;" ::"r"(tmem + 8), "l"(desc | (smem(pool) & 0x3FFFF) >> 4)); \
      commit(&bar);                                                                                     \
    }                                                                                                   \
    bar_wait(&bar, 0);                                                                                  \
    after_sync();                                                                                       \
    tmem_dump(tmem, 32, out);                                                                           \
    tmem_free(tmem, 32);                                                                                \
  }
CP(128x256b, "128x256b")
CP(4x256b, "4x256b")
CP(128x128b, "128x128b")
CP(64x128b_02_13, "64x128b.warpx2::02_13")
CP(64x128b_01_23, "64x128b.warpx2::01_23")
CP(32x128b_warpx4, "32x128b.warpx4")
CP(128x128b_b4, "128x128b.b8x16.b4x16_p64")
CP(128x128b_b6, "128x128b.b8x16.b6x16_p32")

CP(128x256b_b4, "128x256b.b8x16.b4x16_p64")
CP(128x256b_b6, "128x256b.b8x16.b6x16_p32")
CP(4x256b_b4, "4x256b.b8x16.b4x16_p64")
CP(4x256b_b6, "4x256b.b8x16.b6x16_p32")
CP(64x128b_02_13_b4, "64x128b.warpx2::02_13.b8x16.b4x16_p64")
CP(64x128b_02_13_b6, "64x128b.warpx2::02_13.b8x16.b6x16_p32")
CP(64x128b_01_23_b4, "64x128b.warpx2::01_23.b8x16.b4x16_p64")
CP(64x128b_01_23_b6, "64x128b.warpx2::01_23.b8x16.b6x16_p32")
CP(32x128b_warpx4_b4, "32x128b.warpx4.b8x16.b4x16_p64")
CP(32x128b_warpx4_b6, "32x128b.warpx4.b8x16.b6x16_p32")

// A pair: one thread issues, each CTA's tensor memory gets its own shared memory's rows.
#define PAIR(name, instruction)                                                                         \
  KERNEL __cluster_dims__(2, 1, 1) name(const uint32_t *image, const uint8_t *source, uint32_t *out, uint64_t desc) { \
    __shared__ __align__(1024) uint8_t pool[4096];                                                      \
    __shared__ uint64_t bar;                                                                            \
    __shared__ uint32_t slot;                                                                           \
    if (threadIdx.x == 0) {                                                                             \
      bar_init(&bar, 1);                                                                                \
      bar_fence();                                                                                      \
    }                                                                                                   \
    uint32_t tmem = tmem_alloc<2>(&slot, 32);                                                           \
    tmem_fill(tmem, 32, image + ctarank() * 4096, 0);                                                   \
    smem_fill(pool, source + ctarank() * 4096, 4096);                                                   \
    before_sync();                                                                                      \
    cluster_sync();                                                                                     \
    after_sync();                                                                                       \
    if (threadIdx.x == 0 && ctarank() == 0) {                                                           \
      asm volatile(instruction ::"r"(tmem + 8), "l"(desc | (smem(pool) & 0x3FFFF) >> 4), "r"(tmem + (32 << 16) + 8)); \
      commit2(&bar, 3);                                                                                 \
    }                                                                                                   \
    bar_wait(&bar, 0);                                                                                  \
    after_sync();                                                                                       \
    tmem_dump(tmem, 32, out + ctarank() * 4096);                                                        \
    before_sync();                                                                                      \
    cluster_sync();                                                                                     \
    tmem_free<2>(tmem, 32);                                                                             \
  }
PAIR(cp_pair_128x256b, "tcgen05.cp.cta_group::2.128x256b [%0], %1;")
PAIR(cp_pair_4x256b, "tcgen05.cp.cta_group::2.4x256b [%0], %1;")
PAIR(cp_pair_128x128b, "tcgen05.cp.cta_group::2.128x128b [%0], %1;")
PAIR(cp_pair_64x128b_02_13, "tcgen05.cp.cta_group::2.64x128b.warpx2::02_13 [%0], %1;")
PAIR(cp_pair_64x128b_01_23, "tcgen05.cp.cta_group::2.64x128b.warpx2::01_23 [%0], %1;")
PAIR(cp_pair_32x128b_warpx4, "tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;")
// The second quarter of both CTAs moves down one row, twice.
PAIR(shift_pair, "tcgen05.shift.cta_group::2.down [%2]; tcgen05.shift.cta_group::2.down [%2];")

// All four quarters move down one row, then the copy brings a first row to each.
KERNEL shift_down(const uint32_t *image, const uint8_t *source, uint32_t *out, uint64_t desc) {
  __shared__ __align__(1024) uint8_t pool[4096];
  __shared__ uint64_t bar;
  __shared__ uint32_t slot;
  if (threadIdx.x == 0) {
    bar_init(&bar, 1);
    bar_fence();
  }
  uint32_t tmem = tmem_alloc(&slot, 32);
  tmem_fill(tmem, 32, image, 0);
  smem_fill(pool, source, 4096);
  before_sync();
  __syncthreads();
  after_sync();
  if (threadIdx.x == 0) {
    for (uint32_t quarter = 0; quarter < 4; quarter++)
      asm volatile("tcgen05.shift.down.cta_group::1 [%0];" ::"r"(tmem + (quarter << 21) + 8));
    asm volatile("tcgen05.cp.cta_group::1.4x256b [%0], %1;" ::"r"(tmem + 8), "l"(desc | (smem(pool) & 0x3FFFF) >> 4));
    commit(&bar);
  }
  bar_wait(&bar, 0);
  after_sync();
  tmem_dump(tmem, 32, out);
  tmem_free(tmem, 32);
}

// Several allocations, freed out of order; the addresses don't overlap.
KERNEL alloc_several(uint32_t *out) {
  __shared__ uint32_t slot[4];
  static const int sizes[4] = {128, 128, 64, 32};
  if (threadIdx.x < 32) {
    for (int i = 0; i < 4; i++)
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(smem(&slot[i])), "r"(sizes[i]) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  before_sync();
  __syncthreads();
  after_sync();
  for (int i = 0; i < 4; i++) {
    uint32_t v = threadIdx.x * 10 + i;
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(slot[i] + own_lanes() + sizes[i] - 1), "r"(v));
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(slot[i] + own_lanes()), "r"(v + 5));
  }
  wait_st();
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = ld1(slot[i] + own_lanes() + sizes[i] - 1) + (ld1(slot[i] + own_lanes()) << 16);
  wait_ld();
  before_sync();
  __syncthreads();
  if (threadIdx.x < 32)
    for (int i = 0; i < 4; i++) {
      int k = (i + 2) % 4;
      asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(slot[k]), "r"(sizes[k]));
    }
}
