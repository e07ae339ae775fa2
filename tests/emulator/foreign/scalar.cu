// targets: 90 100
// Plain CUDA C++: what the compiler makes of integer, floating, half, conversion and bit-twiddling code. Every thread takes one element
// and writes a row of results.
#include "fk.h"
#include <cuda_fp8.h>

#define PUT(x) *out++ = (x)
#define START(n)                                   \
  int t = blockIdx.x * blockDim.x + threadIdx.x;   \
  out += t * (n)

KERNEL ints32(const int *a, const int *b, int *out) {
  START(24);
  int x = a[t], y = b[t];
  unsigned u = x, v = y;
  PUT(x + y), PUT(x - y), PUT(x * y), PUT(__mulhi(x, y)), PUT((int)__umulhi(u, v)), PUT(x * y + t);
  PUT(y ? x / y : 0), PUT(y ? x % y : 0), PUT(v ? u / v : 0), PUT(v ? u % v : 0), PUT(x / 7), PUT(u % 10u);
  PUT(min(x, y)), PUT(max(x, y)), PUT((int)min(u, v)), PUT((int)max(u, v)), PUT(-x), PUT(abs(x));
  PUT((x >> 3) & 31), PUT(x << (y & 31)), PUT(u >> (v & 31)), PUT(x >> (y & 31)), PUT(__sad(x, y, u)), PUT(__usad(u, v, 3u));
}
KERNEL ints64(const long long *a, const long long *b, long long *out) {
  START(18);
  long long x = a[t], y = b[t];
  unsigned long long u = x, v = y;
  PUT(x + y), PUT(x - y), PUT(x * y), PUT(__mul64hi(x, y)), PUT((long long)__umul64hi(u, v));
  PUT(y ? x / y : 0), PUT(y ? x % y : 0), PUT(v ? u / v : 0), PUT(v ? u % v : 0);
  PUT(min(x, y)), PUT(max(u, v)), PUT(x << (y & 63)), PUT(u >> (v & 63)), PUT(x >> (y & 63));
  PUT((long long)(int)x * (int)y), PUT((long long)((unsigned long long)(unsigned)x * (unsigned)y));
  unsigned __int128 w = (unsigned __int128)u * v + u;
  PUT((long long)(w >> 64)), PUT((long long)((__int128)x >> 5));
}
KERNEL ints16(const short *a, const short *b, short *out) {
  START(12);
  short x = a[t], y = b[t];
  unsigned short u = x, v = y;
  PUT(x + y), PUT(x - y), PUT(x * y), PUT(y ? x / y : 0), PUT(v ? u % v : 0), PUT(min(x, y)), PUT(max(u, v)), PUT(x >> (y & 15));
  PUT(u << (v & 15)), PUT((signed char)x), PUT((unsigned char)x * (signed char)y), PUT(x < y ? u ^ v : u & ~v);
}
KERNEL bits(const unsigned *a, const unsigned *b, unsigned *out) {
  START(24);
  unsigned x = a[t], y = b[t], r;
  unsigned long long w = (unsigned long long)x << 32 | y;
  PUT(__popc(x)), PUT(__clz(x)), PUT(__brev(x)), PUT(__ffs(x)), PUT(__popcll(w)), PUT(__clzll(w)), PUT((unsigned)__brevll(w)), PUT(__ffsll(w));
  PUT(__byte_perm(x, y, 0x5140)), PUT(__byte_perm(x, y, y)), PUT(__funnelshift_l(x, y, y)), PUT(__funnelshift_rc(x, y, y & 63));
  PUT(x & y | ~x & 0x0F0F0F0F), PUT((x ^ y) & 0xFFFF), PUT(__dp4a((int)x, (int)y, 5)), PUT(__dp2a_lo((int)x, (int)y, 9)), PUT(__dp4a(x, y, 7u));
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 255), "r"(y >> 8 & 255));
  PUT(r);
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 31), "r"(y >> 8 & 31));
  PUT(r);
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(y & 31), "r"(y >> 8 & 31));
  PUT(r);
  asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(x));
  PUT(r);
  asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(y & 31), "r"(x & 63));
  PUT(r);
  asm("lop3.b32 %0, %1, %2, %3, 0xD8;" : "=r"(r) : "r"(x), "r"(y), "r"(x * 3));
  PUT(r);
  PUT(x == y ? 1u : __vadd4(x, y));
}
KERNEL wide_add(const unsigned *a, const unsigned *b, unsigned *out) {  // 128-bit sums and differences by carry chains
  START(12);
  const unsigned *x = a + 4 * t, *y = b + 4 * t;
  unsigned r[12];
  asm("add.cc.u32 %0, %4, %8; addc.cc.u32 %1, %5, %9; addc.cc.u32 %2, %6, %10; addc.u32 %3, %7, %11;"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]));
  asm("sub.cc.u32 %0, %4, %8; subc.cc.u32 %1, %5, %9; subc.cc.u32 %2, %6, %10; subc.u32 %3, %7, %11;"
      : "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]));
  asm("mul.lo.u32 %0, %4, %6; mad.hi.cc.u32 %1, %4, %6, 0; madc.lo.cc.u32 %1, %5, %6, %1; madc.hi.u32 %2, %5, %6, 0;"
      "mad.lo.cc.u32 %1, %4, %7, %1; madc.hi.cc.u32 %2, %4, %7, %2; addc.u32 %3, 0, 0; mad.lo.cc.u32 %2, %5, %7, %2; madc.hi.u32 %3, %5, %7, %3;"
      : "=&r"(r[8]), "=&r"(r[9]), "=&r"(r[10]), "=&r"(r[11])
      : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(y[1]));
  for (int i = 0; i < 12; i++) PUT(r[i]);
}

KERNEL floats(const float *a, const float *b, float *out) {
  START(24);
  float x = a[t], y = b[t];
  PUT(x + y), PUT(x - y), PUT(x * y), PUT(fmaf(x, y, x)), PUT(fminf(x, y)), PUT(fmaxf(x, y)), PUT(fabsf(x)), PUT(-x);
  PUT(__fadd_rz(x, y)), PUT(__fadd_ru(x, y)), PUT(__fadd_rd(x, y)), PUT(__fmul_rz(x, y)), PUT(__fmaf_ru(x, y, y)), PUT(__fsub_rd(x, y));
  PUT(x / y), PUT(__frcp_rn(y)), PUT(sqrtf(fabsf(x))), PUT(__fdiv_ru(x, y)), PUT(__fsqrt_rz(fabsf(y))), PUT(__saturatef(x));
  PUT(rintf(x)), PUT(floorf(x)), PUT(ceilf(x)), PUT(truncf(x));
}
KERNEL float_compares(const float *a, const float *b, int *out) {
  START(16);
  float x = a[t], y = b[t];
  PUT(x < y), PUT(x <= y), PUT(x > y), PUT(x >= y), PUT(x == y), PUT(x != y), PUT(!(x < y)), PUT(!(x >= y));
  PUT(isnan(x)), PUT(isinf(x)), PUT(isfinite(y)), PUT(signbit(x)), PUT(!(x <= y) && !(x > y)), PUT(x < y || x > y), PUT(x < y && y < 1 || isnan(y));
  PUT(__float_as_int(x) > __float_as_int(y) ? 5 : -5);
}
KERNEL approximations(const float *a, float *out) {
  START(12);
  float x = a[t];
  PUT(__expf(x)), PUT(exp2f(x)), PUT(__logf(fabsf(x))), PUT(__sinf(x)), PUT(__cosf(x)), PUT(rsqrtf(fabsf(x))), PUT(__fdividef(1.0f, x));
  PUT(tanhf(x)), PUT(expf(x)), PUT(logf(fabsf(x))), PUT(sinf(x)), PUT(powf(fabsf(x), 1.7f));
}
KERNEL doubles(const double *a, const double *b, double *out) {
  START(16);
  double x = a[t], y = b[t];
  PUT(x + y), PUT(x * y), PUT(fma(x, y, x)), PUT(x / y), PUT(sqrt(fabs(x))), PUT(fmin(x, y)), PUT(fmax(x, y)), PUT(__dadd_rd(x, y));
  PUT(__dmul_ru(x, y)), PUT(floor(x)), PUT(rint(y)), PUT(x < y ? x : -y), PUT((double)(float)x), PUT((double)(int)x), PUT((double)(long long)y), PUT(__ddiv_rz(x, y));
}
KERNEL halves(const __half *a, const __half *b, __half *out) {
  START(16);
  __half x = a[t], y = b[t];
  PUT(__hadd(x, y)), PUT(__hsub(x, y)), PUT(__hmul(x, y)), PUT(__hfma(x, y, x)), PUT(__hmin(x, y)), PUT(__hmax(x, y)), PUT(__hneg(x)), PUT(__habs(x));
  PUT(__hmax_nan(x, y)), PUT(__hfma_relu(x, y, y)), PUT(__hadd_sat(x, y)), PUT(__float2half_rz(__half2float(x) * 1.001f)), PUT(hceil(x)), PUT(hrint(y));
  __half2 p = __hfma2(__halves2half2(x, y), __halves2half2(y, y), __halves2half2(x, x));
  PUT(__low2half(p)), PUT(__high2half(__hmax2(p, __halves2half2(x, y))));
}
KERNEL bhalves(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *out) {
  START(12);
  __nv_bfloat16 x = a[t], y = b[t];
  PUT(__hadd(x, y)), PUT(__hsub(x, y)), PUT(__hmul(x, y)), PUT(__hfma(x, y, x)), PUT(__hmin(x, y)), PUT(__hmax(x, y)), PUT(__hneg(x)), PUT(__habs(x));
  __nv_bfloat162 p = __hmul2(__halves2bfloat162(x, y), __halves2bfloat162(y, y));
  PUT(__low2bfloat16(p)), PUT(__high2bfloat16(p));
  p = __floats2bfloat162_rn(__bfloat162float(x) * 1.003f, __bfloat162float(y) + 0.1f);
  PUT(__low2bfloat16(p)), PUT(__high2bfloat16(p));
}
KERNEL conversions(const float *a, long long *out) {
  START(24);
  float x = a[t];
  PUT((int)x), PUT((unsigned)x), PUT((long long)x), PUT((long long)(unsigned long long)x), PUT(__float2int_rn(x)), PUT(__float2int_ru(x)), PUT(__float2uint_rd(x));
  PUT((short)(int)x), PUT((signed char)(int)x), PUT(__float_as_uint((float)(int)x)), PUT(__float_as_uint((float)(unsigned)(x * 1000)));
  PUT(__half_as_ushort(__float2half(x))), PUT(__half_as_ushort(__float2half_ru(x))), PUT(__bfloat16_as_ushort(__float2bfloat16(x)));
  PUT(__double_as_longlong((double)x)), PUT(__double2ll_rn((double)x * 1e6)), PUT(__float2ll_rd(x)), PUT(__half2int_rz(__float2half(x)));
  unsigned r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  PUT(r);
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(x * 3));
  PUT(r);
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x * 5), "f"(x));
  PUT(r);
  asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(-x), "f"(x));
  PUT(r);
  unsigned short s;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(s) : "f"(x), "f"(x * 100));
  PUT(s);
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(s) : "f"(x), "f"(x * 100));
  PUT(s);
}
KERNEL small_floats(const unsigned short *a, unsigned *out) {
  START(3);
  unsigned short x = a[t];
  unsigned r;
  unsigned short s;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"(x));
  PUT(r);
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(r) : "h"(x));
  PUT(r);
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(s) : "r"(r));
  PUT(s);
}
