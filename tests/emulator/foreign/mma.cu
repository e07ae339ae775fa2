// targets: 100
// tcgen05.mma in every kind, on operand images that the caller laid out; D is returned as it lies in tensor memory, over a pattern.
#include "tc.h"

struct Operands {  // read from global memory: offsets in bytes
  uint64_t a_desc, b_desc;
  uint32_t a_bytes, b_bytes, a_step, b_step;  // steps are in units of 16 bytes
  uint32_t steps, idesc, columns, spare;
};

#define PATTERN 0x00C0DE00u
#define PROLOGUE(G)                                              \
  extern __shared__ __align__(1024) uint8_t pool[];              \
  __shared__ uint64_t bar;                                       \
  __shared__ uint32_t slot;                                      \
  smem_fill(pool, a, o->a_bytes);                                \
  smem_fill(pool + o->a_bytes, b, o->b_bytes);                   \
  if (threadIdx.x == 0) {                                        \
    bar_init(&bar, 1);                                           \
    bar_fence();                                                 \
  }                                                              \
  uint32_t tmem = tmem_alloc<G>(&slot, 512);                     \
  uint64_t a_desc = o->a_desc | (smem(pool) & 0x3FFFF) >> 4;     \
  uint64_t b_desc = o->b_desc | (smem(pool + o->a_bytes) & 0x3FFFF) >> 4; \
  (void)a_desc;

#define STEPS(instruction, ...)                                                                                \
  before_sync();                                                                                               \
  __syncthreads();                                                                                             \
  after_sync();                                                                                                \
  if (threadIdx.x == 0) {                                                                                      \
    _Pragma("unroll 1") for (uint32_t k = 0; k < o->steps; k++) {                                                                  \
      asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; " instruction " }" ::"r"(tmem), "l"(a_desc + k * o->a_step), \
                   "l"(b_desc + k * o->b_step), "r"(o->idesc), "r"(k), ##__VA_ARGS__);                          \
    }                                                                                                          \
    commit(&bar);                                                                                              \
  }                                                                                                            \
  bar_wait(&bar, 0);                                                                                           \
  after_sync();

#define MMA_SS(kind)                                                                                    \
  KERNEL mma_##kind(const Operands *o, const uint8_t *a, const uint8_t *b, uint32_t *out) {             \
    PROLOGUE(1)                                                                                         \
    tmem_fill(tmem, o->columns, nullptr, PATTERN);                                                      \
    STEPS("tcgen05.mma.cta_group::1.kind::" #kind " [%0], %1, %2, %3, P;")                              \
    tmem_dump(tmem, o->columns, out);                                                                   \
    tmem_free(tmem, 512);                                                                               \
  }
MMA_SS(f16)
MMA_SS(tf32)
MMA_SS(f8f6f4)
MMA_SS(i8)

// A in tensor memory: `a` is its image, a_bytes / 512 columns for all steps; a_step is in columns.
#define MMA_TS(kind)                                                                                    \
  KERNEL mma_ts_##kind(const Operands *o, const uint8_t *a, const uint8_t *b, uint32_t *out) {          \
    extern __shared__ __align__(1024) uint8_t pool[];                                                   \
    __shared__ uint64_t bar;                                                                            \
    __shared__ uint32_t slot;                                                                           \
    smem_fill(pool, b, o->b_bytes);                                                                     \
    if (threadIdx.x == 0) {                                                                             \
      bar_init(&bar, 1);                                                                                \
      bar_fence();                                                                                      \
    }                                                                                                   \
    uint32_t tmem = tmem_alloc(&slot, 512);                                                             \
    tmem_fill(tmem, o->columns, nullptr, PATTERN);                                                      \
    tmem_fill(tmem + 256, o->a_bytes / 512, (const uint32_t *)a, 0);                                    \
    uint64_t b_desc = o->b_desc | (smem(pool) & 0x3FFFF) >> 4;                                          \
    before_sync();                                                                                      \
    __syncthreads();                                                                                    \
    after_sync();                                                                                       \
    if (threadIdx.x == 0) {                                                                             \
      _Pragma("unroll 1") for (uint32_t k = 0; k < o->steps; k++)                                                           \
        asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::1.kind::" #kind " [%0], [%1], %2, %3, P; }" ::"r"(tmem), \
                     "r"(tmem + 256 + k * o->a_step), "l"(b_desc + k * o->b_step), "r"(o->idesc), "r"(k)); \
      commit(&bar);                                                                                     \
    }                                                                                                   \
    bar_wait(&bar, 0);                                                                                  \
    after_sync();                                                                                       \
    tmem_dump(tmem, o->columns, out);                                                                   \
    tmem_free(tmem, 512);                                                                               \
  }
MMA_TS(f16)
MMA_TS(f8f6f4)

#define MMA_WS(kind)                                                                                    \
  KERNEL mma_ws_##kind(const Operands *o, const uint8_t *a, const uint8_t *b, uint32_t *out) {          \
    PROLOGUE(1)                                                                                         \
    tmem_fill(tmem, o->columns, nullptr, PATTERN);                                                      \
    STEPS("tcgen05.mma.ws.cta_group::1.kind::" #kind ".collector::b0::discard [%0], %1, %2, %3, P;")    \
    tmem_dump(tmem, o->columns, out);                                                                   \
    tmem_free(tmem, 512);                                                                               \
  }
MMA_WS(f16)
MMA_WS(i8)

// Lanes that the mask names keep what they had; D counts times 2^-3 first.
KERNEL mma_masked(const Operands *o, const uint8_t *a, const uint8_t *b, uint32_t *out, uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3) {
  PROLOGUE(1)
  tmem_fill(tmem, o->columns, nullptr, 0x41000000);  // 8.0
  before_sync();
  __syncthreads();
  after_sync();
  if (threadIdx.x == 0) {
    asm volatile("{ .reg .pred P; setp.eq.u32 P, 0, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%4, %5, %6, %7}, P, 3; }" ::"r"(tmem),
                 "l"(a_desc), "l"(b_desc), "r"(o->idesc), "r"(m0), "r"(m1), "r"(m2), "r"(m3));
    commit(&bar);
  }
  bar_wait(&bar, 0);
  after_sync();
  tmem_dump(tmem, o->columns, out);
  tmem_free(tmem, 512);
}

// Block scales: 512-byte blocks for 128 rows x 4 scales, copied by tcgen05.cp; one block a word of scales.
#define MMA_SCALED(name, kind)                                                                                                      \
  KERNEL mma_##name(const Operands *o, const uint8_t *a, const uint8_t *b, const uint8_t *sa, const uint8_t *sb, uint32_t *out, int scale_bytes, \
                    int steps_a_word, int id_step) {                                                                                \
    PROLOGUE(1)                                                                                                                     \
    uint8_t *scales = pool + o->a_bytes + o->b_bytes;                                                                               \
    smem_fill(scales, sa, scale_bytes);                                                                                             \
    smem_fill(scales + scale_bytes, sb, scale_bytes);                                                                               \
    tmem_fill(tmem, o->columns, nullptr, PATTERN);                                                                                  \
    before_sync();                                                                                                                  \
    __syncthreads();                                                                                                                \
    after_sync();                                                                                                                   \
    if (threadIdx.x == 0) {                                                                                                         \
      uint64_t desc = (uint64_t)1 << 46 | (uint64_t)(128 >> 4) << 32 | (smem(scales) & 0x3FFFF) >> 4;                               \
      _Pragma("unroll 1") for (int i = 0; i < 2 * scale_bytes; i += 512)                                                                                \
        asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(tmem + 256 + i / 128), "l"(desc + i / 16));           \
      _Pragma("unroll 1") for (uint32_t k = 0; k < o->steps; k++) {                                                                                     \
        uint32_t word = k / steps_a_word, id = k % steps_a_word * id_step;                                                          \
        asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::1.kind::" kind " [%0], %1, %2, %3, [%5], [%6], P; }" ::"r"(tmem), \
                     "l"(a_desc + k * o->a_step), "l"(b_desc + k * o->b_step), "r"(o->idesc | id << 29 | id << 4), "r"(k),          \
                     "r"(tmem + 256 + word * 4), "r"(tmem + 256 + scale_bytes / 128 + word * 4));                                   \
      }                                                                                                                             \
      commit(&bar);                                                                                                                 \
    }                                                                                                                               \
    bar_wait(&bar, 0);                                                                                                              \
    after_sync();                                                                                                                   \
    tmem_dump(tmem, o->columns, out);                                                                                               \
    tmem_free(tmem, 512);                                                                                                           \
  }
MMA_SCALED(mxf8f6f4, "mxf8f6f4.block_scale.scale_vec::1X")
MMA_SCALED(mxf4, "mxf4.block_scale.scale_vec::2X")
MMA_SCALED(mxf4nvf4, "mxf4nvf4.block_scale.scale_vec::4X")
MMA_SCALED(mxf4nvf4_2x, "mxf4nvf4.block_scale.scale_vec::2X")

// A pair of CTAs: each brings its own rows of A and columns of B; the even one issues, both dump.
#define MMA_PAIR(kind)                                                                                                       \
  KERNEL __cluster_dims__(2, 1, 1) mma_pair_##kind(const Operands *o, const uint8_t *a2, const uint8_t *b2, uint32_t *out) { \
    const uint8_t *a = a2 + ctarank() * o->a_bytes, *b = b2 + ctarank() * o->b_bytes;                                        \
    PROLOGUE(2)                                                                                                              \
    tmem_fill(tmem, o->columns, nullptr, PATTERN);                                                                           \
    before_sync();                                                                                                           \
    cluster_sync();                                                                                                          \
    after_sync();                                                                                                            \
    if (threadIdx.x == 0 && ctarank() == 0) {                                                                                \
      _Pragma("unroll 1") for (uint32_t k = 0; k < o->steps; k++)                                                                                \
        asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::2.kind::" #kind " [%0], %1, %2, %3, P; }" ::"r"(tmem), \
                     "l"(a_desc + k * o->a_step), "l"(b_desc + k * o->b_step), "r"(o->idesc), "r"(k));                       \
      commit2(&bar, 3);                                                                                                      \
    }                                                                                                                        \
    bar_wait(&bar, 0);                                                                                                       \
    after_sync();                                                                                                            \
    tmem_dump(tmem, o->columns, out + ctarank() * 128 * o->columns);                                                         \
    before_sync();                                                                                                           \
    cluster_sync();                                                                                                          \
    tmem_free<2>(tmem, 512);                                                                                                 \
  }
MMA_PAIR(f16)
MMA_PAIR(f8f6f4)

// Block scales of a pair: each CTA brings the scales of its own rows of A, and all of B's.
KERNEL __cluster_dims__(2, 1, 1) mma_pair_mxf8f6f4(const Operands *o, const uint8_t *a2, const uint8_t *b2, const uint8_t *sa, const uint8_t *sb, uint32_t *out, int scale_bytes) {
  const uint8_t *a = a2 + ctarank() * o->a_bytes, *b = b2 + ctarank() * o->b_bytes;
  PROLOGUE(2)
  uint8_t *scales = pool + o->a_bytes + o->b_bytes;
  smem_fill(scales, sa + ctarank() * scale_bytes, scale_bytes);
  smem_fill(scales + scale_bytes, sb, scale_bytes);
  tmem_fill(tmem, o->columns, nullptr, PATTERN);
  before_sync();
  cluster_sync();
  after_sync();
  if (threadIdx.x == 0 && ctarank() == 0) {
    uint64_t desc = (uint64_t)1 << 46 | (uint64_t)(128 >> 4) << 32 | (smem(scales) & 0x3FFFF) >> 4;
    _Pragma("unroll 1") for (int i = 0; i < 2 * scale_bytes; i += 512)
      asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(tmem + 256 + i / 128), "l"(desc + i / 16));
    _Pragma("unroll 1") for (uint32_t k = 0; k < o->steps; k++)
      asm volatile("{ .reg .pred P; setp.ne.u32 P, %4, 0; tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%5], [%6], P; }" ::"r"(tmem),
                   "l"(a_desc + k * o->a_step), "l"(b_desc + k * o->b_step), "r"(o->idesc | k % 4 << 29 | k % 4 << 4), "r"(k), "r"(tmem + 256 + k / 4 * 4),
                   "r"(tmem + 256 + scale_bytes / 128 + k / 4 * 4));
    commit2(&bar, 3);
  }
  bar_wait(&bar, 0);
  after_sync();
  tmem_dump(tmem, o->columns, out + ctarank() * 128 * o->columns);
  before_sync();
  cluster_sync();
  tmem_free<2>(tmem, 512);
}
