// targets: 90
// wgmma in every type, from shared memory and from registers, alone and in a pipeline of specialised warps.
#include "fk.h"

DEV void ldmatrix4(uint32_t *r, const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(smem(p)) : "memory");
}
DEV void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEV void wg_finish() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// Operand images that the caller laid out.
static __device__ __noinline__ void image(void *to, const void *from, int bytes) {
#pragma unroll 1
  for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
  proxy_fence();
  __syncthreads();
}
#define D16(d) "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15])
#define D8(d) "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7])
#define LIST16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define LIST8 "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define WGMMA(name, type, n, o1, o2, o3, tail)                                                                                             \
  KERNEL wgmma_##name(const uint8_t *a, const uint8_t *b, uint32_t *out, int a_bytes, int b_bytes, uint64_t a_desc, uint64_t b_desc, int a_step, \
                      int b_step, int steps) {                                                                                             \
    extern __shared__ __align__(1024) uint8_t pool[];                                                                                      \
    image(pool, a, a_bytes);                                                                                                               \
    image(pool + a_bytes, b, b_bytes);                                                                                                     \
    a_desc |= (smem(pool) & 0x3FFFF) >> 4;                                                                                                 \
    b_desc |= (smem(pool + a_bytes) & 0x3FFFF) >> 4;                                                                                       \
    uint32_t d[n];                                                                                                                         \
    for (int i = 0; i < n; i++) d[i] = 0xDEAD;                                                                                             \
    wg_fence();                                                                                                                            \
    _Pragma("unroll 1") for (int k = 0; k < steps; k++)                                                                                    \
        asm volatile("{ .reg .pred P; setp.ne.b32 P, %" o3 ", 0; wgmma.mma_async.sync.aligned." type " " LIST##n ", %" o1 ", %" o2 ", P" tail "; }" \
                     : D##n(d)                                                                                                             \
                     : "l"(a_desc + k * a_step), "l"(b_desc + k * b_step), "r"(k));                                                        \
    wg_finish();                                                                                                                           \
    for (int i = 0; i < n; i++) out[threadIdx.x * n + i] = d[i];                                                                           \
  }
WGMMA(bf16, "m64n32k16.f32.bf16.bf16", 16, "16", "17", "18", ", 1, 1, 0, 0")
WGMMA(f16_negated, "m64n32k16.f32.f16.f16", 16, "16", "17", "18", ", -1, 1, 0, 0")
WGMMA(f16_f16, "m64n32k16.f16.f16.f16", 8, "8", "9", "10", ", 1, 1, 0, 0")
WGMMA(bf16_transposed, "m64n32k16.f32.bf16.bf16", 16, "16", "17", "18", ", 1, 1, 1, 1")
WGMMA(tf32, "m64n32k8.f32.tf32.tf32", 16, "16", "17", "18", ", 1, 1")
WGMMA(e4m3, "m64n32k32.f32.e4m3.e5m2", 16, "16", "17", "18", ", 1, 1")
WGMMA(e5m2_f16, "m64n32k32.f16.e5m2.e5m2", 8, "8", "9", "10", ", 1, 1")
WGMMA(s8, "m64n32k32.s32.s8.u8", 16, "16", "17", "18", "")
WGMMA(u8_sat, "m64n32k32.s32.u8.u8.satfinite", 16, "16", "17", "18", "")

// A from registers: C = A B with A loaded by ldmatrix.
KERNEL wgmma_registers(const uint8_t *a, const uint8_t *b, uint32_t *out, int b_bytes, uint64_t b_desc, int b_step) {
  extern __shared__ __align__(1024) uint8_t pool[];
  __shared__ __align__(16) uint16_t x[64][72];
  image(pool, b, b_bytes);
  for (int i = threadIdx.x; i < 512; i += 128) *(uint4 *)&x[i / 8][i % 8 * 8] = ((const uint4 *)a)[i];
  __syncthreads();
  b_desc |= (smem(pool) & 0x3FFFF) >> 4;
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16;
  uint32_t d[16];
  for (int i = 0; i < 16; i++) d[i] = 0;
  for (int k = 0; k < 4; k++) {
    uint32_t f[4];
    ldmatrix4(f, &x[row + lane % 16][k * 16 + lane / 16 * 8]);
    wg_fence();
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " LIST16 ", {%16, %17, %18, %19}, %20, 1, 1, 1, 0;"
                 : D16(d)
                 : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "l"(b_desc + k * b_step));
    wg_finish();
  }
  for (int i = 0; i < 16; i++) out[threadIdx.x * 16 + i] = d[i];
}

// A persistent product of specialised warps: one warpgroup loads by TMA into a ring of three stages, two compute 64 rows each.
// C (M x N) = A (M x K) B (N x K)^T in f32; tiles of 128 x 32, K in steps of 64.
KERNEL __launch_bounds__(384) pipelined(const __grid_constant__ TensorMap ma, const __grid_constant__ TensorMap mb, float *c, int m, int n, int k) {
  extern __shared__ __align__(1024) uint8_t pool[];
  __shared__ uint64_t full[3], empty[3];
  const int stage_bytes = (128 + 32) * 128;
  int group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 3; s++) bar_init(&full[s], 1), bar_init(&empty[s], 8);
    bar_fence();
  }
  __syncthreads();
  int tiles_n = n / 32, tiles = m / 128 * tiles_n, steps = k / 64, use = 0;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
        for (int i = 0; i < steps; i++, use++) {
          int s = use % 3;
          bar_wait(&empty[s], (use / 3 & 1) ^ 1);
          bar_expect(&full[s], stage_bytes);
          tma2(pool + s * stage_bytes, &ma, &full[s], i * 64, tile / tiles_n * 128);
          tma2(pool + s * stage_bytes + 128 * 128, &mb, &full[s], i * 64, tile % tiles_n * 32);
        }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int t = threadIdx.x % 128;
    const uint64_t desc = (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 16;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      uint32_t d[16];
      for (int i = 0; i < 16; i++) d[i] = 0;
      for (int i = 0; i < steps; i++, use++) {
        int s = use % 3;
        bar_wait(&full[s], use / 3 & 1);
        uint64_t a = desc | (smem(pool + s * stage_bytes + (group - 1) * 64 * 128) & 0x3FFFF) >> 4, b = desc | (smem(pool + s * stage_bytes + 128 * 128) & 0x3FFFF) >> 4;
        wg_fence();
        for (int j = 0; j < 4; j++)
          asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " LIST16 ", %16, %17, 1, 1, 1, 0, 0;" : D16(d) : "l"(a + 2 * j), "l"(b + 2 * j));
        wg_finish();
        if (t % 32 == 0) bar_arrive(&empty[s]);
      }
      int row = tile / tiles_n * 128 + (group - 1) * 64 + t / 32 * 16 + t % 32 / 4, column = tile % tiles_n * 32 + t % 4 * 2;
      for (int i = 0; i < 16; i++) c[(row + i / 2 % 2 * 8) * n + column + i / 4 * 8 + i % 2] = __uint_as_float(d[i]);
    }
  }
}
