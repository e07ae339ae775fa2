// targets: 90 100
// Tensor cores of a warp: mma.sync in every type, with ldmatrix, stmatrix and movmatrix.
#include "fk.h"

DEV void ldmatrix4(uint32_t *r, const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(smem(p)) : "memory");
}
DEV void ldmatrix2t(uint32_t *r, const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(smem(p)) : "memory");
}
DEV void ldmatrix2(uint32_t *r, const void *p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(smem(p)) : "memory");
}
DEV void mma_bf16(float *c, const uint32_t *a, const uint32_t *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// C (32 x 32) = A (32 x 64) B (64 x 32), four warps of 16 x 16; C goes out through stmatrix as bf16.
KERNEL mma_gemm(const uint4 *a, const uint4 *b, uint4 *c) {
  __shared__ __align__(16) __nv_bfloat16 x[32][72], y[64][40], z[32][40];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, row = warp / 2 * 16, column = warp % 2 * 16;
  for (int i = t; i < 256; i += 128) *(uint4 *)&x[i / 8][i % 8 * 8] = a[i];
  for (int i = t; i < 256; i += 128) *(uint4 *)&y[i / 4][i % 4 * 8] = b[i];
  __syncthreads();
  float acc[2][4] = {};
  for (int k = 0; k < 64; k += 16) {
    uint32_t fa[4], fb[2];
    ldmatrix4(fa, &x[row + lane % 16][k + lane / 16 * 8]);
    for (int n = 0; n < 2; n++) {
      ldmatrix2t(fb, &y[k + lane % 16][column + n * 8]);
      mma_bf16(acc[n], fa, fb);
    }
  }
  uint32_t r[4];
  for (int i = 0; i < 4; i++) {
    __nv_bfloat162 v = __floats2bfloat162_rn(acc[i / 2][i % 2 * 2], acc[i / 2][i % 2 * 2 + 1]);
    r[i] = *(uint32_t *)&v;
  }
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(smem(&z[row + lane % 16][column + lane / 16 * 8])), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
  __syncthreads();
  c[t] = *(uint4 *)&z[t / 4][t % 4 * 8];
}

// One instruction of each type on fragments that the caller arranged: A, B, C as registers by thread.
#define MMA(name, text, na, nb, nc, type, constraint)                                                                          \
  KERNEL mma_##name(const uint32_t *a, const uint32_t *b, const type *c, type *d) {                                            \
    uint32_t x[4], y[2];                                                                                                       \
    type z[4];                                                                                                                 \
    int t = threadIdx.x;                                                                                                       \
    for (int i = 0; i < na; i++) x[i] = a[t * na + i];                                                                         \
    for (int i = 0; i < nb; i++) y[i] = b[t * nb + i];                                                                         \
    for (int i = 0; i < nc; i++) z[i] = c[t * nc + i];                                                                         \
    MMA_##na##nb##nc(text, constraint);                                                                                        \
    for (int i = 0; i < nc; i++) d[t * nc + i] = z[i];                                                                         \
  }
#define MMA_424(text, k)                                                                                                                         \
  asm volatile("mma.sync.aligned." text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                      \
               : "+" k(z[0]), "+" k(z[1]), "+" k(z[2]), "+" k(z[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]))
#define MMA_214(text, k)                                                                                                                         \
  asm volatile("mma.sync.aligned." text " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                                                  \
               : "+" k(z[0]), "+" k(z[1]), "+" k(z[2]), "+" k(z[3]) : "r"(x[0]), "r"(x[1]), "r"(y[0]))
#define MMA_422(text, k)                                                                                                                         \
  asm volatile("mma.sync.aligned." text " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"                                                      \
               : "+" k(z[0]), "+" k(z[1]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]))
MMA(f16_f32, "m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, float, "f")
MMA(f16_f16, "m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, uint32_t, "r")
MMA(f16_k8, "m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4, float, "f")
MMA(bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, float, "f")
MMA(tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, float, "f")
MMA(tf32_k4, "m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, float, "f")
MMA(e4m3, "m16n8k32.row.col.f32.e4m3.e5m2.f32", 4, 2, 4, float, "f")
MMA(s8, "m16n8k32.row.col.s32.s8.u8.s32", 4, 2, 4, int, "r")
MMA(s8_sat, "m16n8k32.row.col.satfinite.s32.s8.s8.s32", 4, 2, 4, int, "r")
MMA(u8_k16, "m16n8k16.row.col.s32.u8.u8.s32", 2, 1, 4, int, "r")

KERNEL matrices(const uint4 *in, uint32_t *out) {  // movmatrix and the small forms of ldmatrix and stmatrix
  __shared__ __align__(16) uint16_t m[8][8], n[8][8];
  int t = threadIdx.x;
  if (t < 8) *(uint4 *)m[t] = in[t];
  __syncwarp();
  uint32_t a, b, c;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(smem(m[t % 8])) : "memory");
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(b) : "r"(a));
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(smem(n[t % 8])), "r"(a) : "memory");
  __syncwarp();
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(c) : "r"(smem(n[t % 8])) : "memory");
  out[t * 3] = a;
  out[t * 3 + 1] = b;
  out[t * 3 + 2] = c;
}

// Attention of 64 queries over n keys, D = 32, one warp for 16 queries: S stays in registers and becomes A of the second product.
KERNEL mma_attention(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, float *out, int n, float scale) {
  __shared__ __align__(16) __nv_bfloat16 x[64][40], y[32][40], z[32][40];
  int t = threadIdx.x, lane = t % 32, row = t / 32 * 16;
#pragma unroll 1
  for (int i = t; i < 64 * 32; i += 128) x[i / 32][i % 32] = q[i];
  float acc[4][4] = {}, top[2] = {-1e30f, -1e30f}, total[2] = {};
  for (int start = 0; start < n; start += 32) {
    __syncthreads();
#pragma unroll 1
    for (int i = t; i < 32 * 32; i += 128) {
      y[i / 32][i % 32] = k[start * 32 + i];
      z[i / 32][i % 32] = v[start * 32 + i];
    }
    __syncthreads();
    float s[4][4] = {};
    for (int d = 0; d < 32; d += 16) {
      uint32_t fa[4], fb[2];
      ldmatrix4(fa, &x[row + lane % 16][d + lane / 16 * 8]);
      for (int j = 0; j < 4; j++) {
        ldmatrix2(fb, &y[j * 8 + lane % 8][d + lane / 8 % 2 * 8]);
        mma_bf16(s[j], fa, fb);
      }
    }
    for (int h = 0; h < 2; h++) {
      float m = top[h];
      for (int j = 0; j < 4; j++) m = fmaxf(m, fmaxf(s[j][2 * h], s[j][2 * h + 1]) * scale);
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
      m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
      float f = exp2f(top[h] - m), sum = 0;
      top[h] = m;
      for (int j = 0; j < 4; j++)
        for (int i = 2 * h; i < 2 * h + 2; i++) sum += s[j][i] = exp2f(s[j][i] * scale - m);
      total[h] = total[h] * f + sum;
      for (int j = 0; j < 4; j++) acc[j][2 * h] *= f, acc[j][2 * h + 1] *= f;
    }
    for (int j = 0; j < 2; j++) {
      uint32_t fa[4], fb[2];
      for (int i = 0; i < 4; i++) {
        __nv_bfloat162 p = __floats2bfloat162_rn(s[2 * j + i / 2][i % 2 * 2], s[2 * j + i / 2][i % 2 * 2 + 1]);
        fa[i] = *(uint32_t *)&p;
      }
      for (int d = 0; d < 4; d++) {
        ldmatrix2t(fb, &z[j * 16 + lane % 16][d * 8]);
        mma_bf16(acc[d], fa, fb);
      }
    }
  }
  for (int h = 0; h < 2; h++) {
    total[h] += __shfl_xor_sync(~0u, total[h], 1);
    total[h] += __shfl_xor_sync(~0u, total[h], 2);
    for (int d = 0; d < 4; d++)
      for (int i = 0; i < 2; i++) out[(row + lane / 4 + 8 * h) * 32 + d * 8 + lane % 4 * 2 + i] = acc[d][2 * h + i] / total[h];
  }
}
