// targets: 90 100
// Plain CUDA C++: calls, switches, memories of all kinds, and threads that meet in warps, blocks and grids.
#include "fk.h"
#include <cstdio>

#define PUT(x) *out++ = (x)
#define START(n)                                 \
  int t = blockIdx.x * blockDim.x + threadIdx.x; \
  out += t * (n)

// ---- control flow, calls, memory

__device__ __noinline__ int ackermann_like(int m, int n) {  // calls in a loop, no recursion
  int r = n;
  for (int i = 0; i < m; i++) r = r * 2 + 3;
  return r;
}
struct Pair {
  int first;
  double second;
};
__device__ __noinline__ Pair make_pair(int x, Pair p) { return {x + p.first, x * p.second}; }
KERNEL calls(const int *a, double *out) {
  START(2);
  Pair p = make_pair(a[t], make_pair(ackermann_like(t & 7, a[t]), {1, 0.5}));
  PUT(p.first), PUT(p.second);
}
KERNEL switches(const int *a, int *out) {
  START(1);
  int x = a[t], r = 0;
  for (int i = 0; i < 3; i++) {
    switch ((x + i) % 12) {
    case 0: r += x; break;
    case 1: r ^= 77; break;
    case 2: r = r * 3 + i; break;
    case 3: r -= 5;
    case 4: r += 9; break;
    case 5: r = __popc(r); break;
    case 6: r = min(r, x); break;
    case 7: r = ~r; break;
    case 8: continue;
    case 9: r += ackermann_like(i, x); break;
    default: r = r * 2 + 1;
    }
    if (r > 100000) break;
  }
  PUT(r);
}
KERNEL collatz(const unsigned *a, unsigned *out) {
  START(1);
  unsigned n = a[t], steps = 0;
  while (n != 1 && steps < 300) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    steps++;
  }
  PUT(steps);
}
__constant__ int primes[10] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};
__device__ float table[4][3] = {{1, 2, 3}, {4.5, 5.5, 6.5}, {-1, -2, -3}, {0.25, 0.5, 0.75}};
__device__ unsigned counter;
KERNEL memories(const int *a, float *out) {
  START(2);
  int local[16];
  for (int i = 0; i < 16; i++) local[i] = a[t] * i + primes[i % 10];
  float sum = 0;
  for (int i = 0; i < 8; i++) sum += local[(a[t] * 7 + i * 3) & 15] * table[i & 3][(a[t] & 255) % 3];
  PUT(sum), PUT((float)primes[(a[t] & 255) % 10]);
}
KERNEL vectors(const float4 *a, const uchar4 *b, const short2 *s, double2 *out, float4 *out4) {
  int t = threadIdx.x;
  float4 v = a[t];
  uchar4 c = b[t];
  short2 p = s[t];
  out[t] = make_double2(v.x + c.x + p.x, v.y * c.y - p.y);
  out4[t] = make_float4(v.w, v.z * c.z, v.y + c.w, -v.x);
}
struct Big {
  int header[4];
  float scale[5];
  double shift;
  const float *in;
  float *out;
};
KERNEL by_pointer(const Big *big) {
  int t = threadIdx.x;
  big->out[t] = big->in[t] * big->scale[t % 5] + (float)big->shift + big->header[t & 3];
}
KERNEL prints(int n) {
  if (threadIdx.x == n) printf("thread %d of %u: %s %.3f %llx %c\n", threadIdx.x, blockDim.x, "hello", 1.5 * n, 0x123456789abcull, 'z');
}

// ---- between threads

KERNEL warp_votes(const int *a, unsigned *out) {
  START(16);
  int x = a[t], lane = t % 32;
  unsigned full = 0xFFFFFFFF;
  PUT(__ballot_sync(full, x > 0)), PUT(__all_sync(full, x > -100)), PUT(__any_sync(full, x == 3)), PUT(__match_any_sync(full, x));
  int pred;
  PUT(__match_all_sync(full, lane < 40, &pred)), PUT(pred), PUT(__reduce_add_sync(full, x)), PUT(__reduce_max_sync(full, x)), PUT(__reduce_xor_sync(full, (unsigned)x));
  PUT(__shfl_sync(full, x, (lane * 5 + 3) & 31)), PUT(__shfl_up_sync(full, x, 3, 16)), PUT(__shfl_down_sync(full, x, 7)), PUT(__shfl_xor_sync(full, x, 9));
  unsigned some = 0, odd = lane & 1;
  if (odd) some = __ballot_sync(0xAAAAAAAA, x > 0) ^ __reduce_min_sync(0xAAAAAAAA, (unsigned)x & 1023);
  PUT(some);
  PUT(lane > 20 ? __activemask() : 0), PUT(__popc(__activemask()));
}
KERNEL block_scan(const int *a, int *out, int n) {  // inclusive, by warps and shared memory
  __shared__ int part[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, x = threadIdx.x < n ? a[threadIdx.x] : 0;
  for (int d = 1; d < 32; d *= 2) {
    int y = __shfl_up_sync(0xFFFFFFFF, x, d);
    if (lane >= d) x += y;
  }
  if (lane == 31) part[warp] = x;
  __syncthreads();
  if (warp == 0) {
    int y = lane < blockDim.x / 32 ? part[lane] : 0;
    for (int d = 1; d < 32; d *= 2) {
      int z = __shfl_up_sync(0xFFFFFFFF, y, d);
      if (lane >= d) y += z;
    }
    part[lane] = y;
  }
  __syncthreads();
  if (threadIdx.x < n) out[threadIdx.x] = x + (warp ? part[warp - 1] : 0);
}
KERNEL bitonic(unsigned *a) {
  __shared__ unsigned s[128];
  int t = threadIdx.x;
  s[t] = a[t];
  __syncthreads();
  for (int k = 2; k <= 128; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      int p = t ^ j;
      if (p > t && (s[t] > s[p]) == ((t & k) == 0)) {
        unsigned x = s[t];
        s[t] = s[p];
        s[p] = x;
      }
      __syncthreads();
    }
  a[t] = s[t];
}
KERNEL atomics(const int *a, int *i, unsigned *u, float *f, unsigned long long *w, double *d, __half2 *h) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, x = a[t];
  __shared__ unsigned s[4];
  if (threadIdx.x < 4) s[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&i[0], x), atomicSub(&i[1], x), atomicMin(&i[2], x), atomicMax(&i[3], x);
  atomicAnd(&u[0], ~(1u << (t & 15))), atomicOr(&u[1], 1u << (x & 31)), atomicXor(&u[2], x), atomicInc(&u[3], 10), atomicDec(&u[4], 6);
  atomicAdd(&f[0], (float)x), atomicAdd(&w[0], (unsigned long long)x << 20), atomicMax(&w[1], (unsigned long long)(unsigned)x), atomicAdd(&d[0], x * 0.5);
  atomicAdd(&h[0], __halves2half2(__float2half(1), __float2half(-2)));
  if (atomicCAS(&u[5], 0u, t + 1u) == 0) atomicExch(&u[6], 4321u);
  atomicAdd(&s[t & 3], (unsigned)x), atomicOr(&s[0], 0x40000000u);
  __syncthreads();
  if (threadIdx.x < 4) atomicAdd(&u[8 + threadIdx.x], s[threadIdx.x]);
}
KERNEL last_block_sum(const float *a, volatile float *part, float *out, int n) {  // the last block to finish adds everything up
  __shared__ float s[64];
  __shared__ bool last;
  float x = 0;
  for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64) x += a[i];
  s[threadIdx.x] = x;
  __syncthreads();
  for (int k = 32; k > 0; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    part[blockIdx.x] = s[0];
    __threadfence();
    last = atomicInc(&counter, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float all = 0;
    for (int i = 0; i < gridDim.x; i++) all += part[i];
    *out = all;
  }
}
KERNEL handshake(int *flags, int *out) {  // block i waits for block i - 1's flag
  if (threadIdx.x == 0) {
    int v = 1;
    if (blockIdx.x > 0) {
      do {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flags + blockIdx.x - 1) : "memory");
        if (v == 0) __nanosleep(100);
      } while (v == 0);
    }
    out[blockIdx.x] = v * 2 + blockIdx.x;
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flags + blockIdx.x), "r"(v * 2 + blockIdx.x) : "memory");
  }
}
KERNEL shared_matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float x[16][17], y[16][17];
  int r = threadIdx.y, q = threadIdx.x, row = blockIdx.y * 16 + r, column = blockIdx.x * 16 + q;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    x[r][q] = row < n && k + q < n ? a[row * n + k + q] : 0;
    y[r][q] = k + r < n && column < n ? b[(k + r) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += x[r][i] * y[i][q];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}
