"""Whole kernels that use the language's statements together, against numpy: variables, branches, loops, Parallel over shared memory
and fragments of several ranks, thread indices, barriers, scalar arguments.

    language.py TILE_RUN [--order ORDER] [--check LIST] [NAME-PREFIX…]
"""
import subprocess
import sys

import numpy as np


class Case:
    def __init__(self, name, text, arrays, reference, defines=(), tolerance=0.0):
        self.name, self.text, self.arrays, self.reference = name, text, arrays, reference
        self.defines, self.tolerance = list(defines), tolerance

    def run(self, tile_run, options):
        command = [tile_run, "kernel.tile", "--device", "emu", "--out", "C=c.npy"] + options
        for name, array in self.arrays.items():
            np.save(name + ".npy", array)
            command += ["--in", "%s=%s.npy" % (name, name)]
        for define in self.defines:
            command += ["-D", define]
        with open("kernel.tile", "w") as file:
            file.write(self.text)
        with np.errstate(all="ignore"):
            want = self.reference(**self.arrays)
        np.save("c.npy", np.zeros_like(want))  # what the kernel does not write stays 0
        done = subprocess.run(command + ["--in", "C=c.npy"], capture_output=True, text=True)
        if done.returncode != 0:
            return "tile-run ends with %d: %s" % (done.returncode, done.stderr.strip()[:1500])
        got = np.load("c.npy").view(want.dtype)
        same = np.abs(got.astype(np.float64) - want) <= self.tolerance * (1 + np.abs(want.astype(np.float64)))
        bad = np.argwhere(~same)
        if len(bad) == 0:
            return None
        at = tuple(bad[0])
        return "%d of %d wrong; first at %s: %s, want %s" % (len(bad), got.size, at, got[at], want[at])


def floats(*shape, seed=1):
    return np.random.default_rng(seed).normal(0, 2, shape).astype(np.float32)


def whole(*shape, seed=1, low=-9, high=10):
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


def collatz(A):
    result = []
    for x in A:
        steps = 0
        for _ in range(20):
            if x > 1:
                x = x // 2 if x % 2 == 0 else 3 * x + 1
                steps += 1
        result.append(steps)
    return np.array(result, np.int32)


def classes(A):
    result = np.zeros_like(A)
    for i, x in enumerate(A):
        result[i] = 1 if x < -3 else 2 if x == 0 else 3 if 2 <= x < 5 else x * x
    return result


def cases():
    yield Case("variables", """
@kernel
def k(A: Tensor[(N,), int32], C: Tensor[(N,), int32]):
    with Kernel(ceildiv(N, 64), threads=64) as bx:
        for i in Parallel(64):
            x = alloc_var(int32)
            steps = alloc_var(int32, 0)
            x = A[bx * 64 + i]
            for r in serial(20):
                if x > 1:
                    if x % 2 == 0:
                        x = x // 2
                    else:
                        x = 3 * x + 1
                    steps += 1
            C[bx * 64 + i] = steps
""", {"A": whole(150, low=-3, high=40)}, collatz)

    yield Case("branches", """
@kernel
def k(A: Tensor[(N,), int32], C: Tensor[(N,), int32]):
    with Kernel(ceildiv(N, 32), threads=32) as bx:
        for i in Parallel(32):
            j = bx * 32 + i
            if A[j] < -3:
                C[j] = 1
            elif A[j] == 0:
                C[j] = 2
            elif 2 <= A[j] < 5 and not A[j] == 7:
                C[j] = 3
            else:
                C[j] = A[j] * A[j] if A[j] != 100 else 0
""", {"A": whole(100)}, classes)

    yield Case("signs", """
@kernel
def k(A: Tensor[(N,), int32], B: Tensor[(N,), int32], C: Tensor[(N, 6), int32]):
    with Kernel(ceildiv(N, 32), threads=32) as bx:
        for i in Parallel(32):
            j = bx * 32 + i
            if B[j] != 0:
                C[j, 0] = A[j] // B[j]
                C[j, 1] = A[j] % B[j]
                C[j, 2] = ceildiv(A[j], B[j])
                C[j, 3] = truncdiv(A[j], B[j])
                C[j, 4] = A[j] // -3 + A[j] % -3
                C[j, 5] = max(min(A[j], 4), -4) + abs(A[j])
""", {"A": whole(90), "B": whole(90, seed=2)}, lambda A, B: np.where((B != 0)[:, None], np.stack([
        A // np.where(B == 0, 1, B), A % np.where(B == 0, 1, B), -(-A // np.where(B == 0, 1, B)),
        np.trunc(A / np.where(B == 0, 1, B)).astype(np.int32), A // -3 + A % -3, np.clip(A, -4, 4) + abs(A)], 1), 0).astype(np.int32))

    yield Case("row_sums", """
@kernel
def k(A: Tensor[(M, N), float32], C: Tensor[(M,), float32]):
    with Kernel(ceildiv(M, 32), threads=64) as bx:
        S = alloc_shared((32, 32), float32)
        total = alloc_fragment((32,), float32)
        clear(total)
        for k in serial(ceildiv(N, 32)):
            copy(A[bx * 32, k * 32], S)
            for i in Parallel(32):
                for j in serial(32):
                    total[i] = total[i] + S[i, j]
        copy(total, C[bx * 32])
""", {"A": whole(70, 100).astype(np.float32)}, lambda A: A.sum(1))

    yield Case("broadcast", """
@kernel
def k(A: Tensor[(M, N), float32], R: Tensor[(M,), float32], L: Tensor[(N,), float32], C: Tensor[(M, N), float32]):
    with Kernel(ceildiv(N, 32), ceildiv(M, 64), threads=128) as (bx, by):
        F = alloc_fragment((64, 32), float32)
        row = alloc_fragment((64,), float32)
        column = alloc_fragment((32,), float32)
        copy(A[by * 64, bx * 32], F)
        copy(R[by * 64], row)
        copy(L[bx * 32], column)
        for i, j in Parallel(64, 32):
            F[i, j] = F[i, j] * row[i] + column[j]
        copy(F, C[by * 64, bx * 32])
""", {"A": whole(100, 50).astype(np.float32), "R": whole(100, seed=2).astype(np.float32), "L": whole(50, seed=3).astype(np.float32)},
               lambda A, R, L: A * R[:, None] + L)

    yield Case("threads", """
@kernel
def k(A: Tensor[(N,), int32], C: Tensor[(N,), int32]):
    with Kernel(ceildiv(N, 96), threads=96) as bx:
        S = alloc_shared((96,), int32)
        tx = get_thread_binding(0)
        S[tx] = A[bx * 96 + tx]
        sync_threads()
        C[bx * 96 + tx] = S[95 - tx] * 2 + tx
""", {"A": whole(192)}, lambda A: (A.reshape(2, 96)[:, ::-1] * 2 + np.arange(96)).reshape(-1).astype(np.int32))

    yield Case("stencil", """
@kernel
def k(A: Tensor[(N,), float32], C: Tensor[(N,), float32]):
    with Kernel(ceildiv(N, 64), threads=64) as bx:
        S = alloc_shared((66,), float32)
        for i in Parallel(66):
            S[i] = A[bx * 64 + i - 1]
        for r in serial(3):
            for i in Parallel(64):
                S[i + 1] = S[i + 1] + 1.0
        for i in Parallel(64):
            C[bx * 64 + i] = S[i + 1] * 2.0 - (0.0 if i + bx * 64 == 0 else A[bx * 64 + i - 1])
""", {"A": whole(130).astype(np.float32)}, lambda A: (A + 3) * 2 - np.concatenate([[0], A[:-1]]).astype(np.float32))

    yield Case("grid_3d", """
@kernel
def k(A: Tensor[(B, M, N), float16], C: Tensor[(B, N, M), float16]):
    with Kernel(ceildiv(N, 16), ceildiv(M, 16), B, threads=32) as (bx, by, bz):
        S = alloc_shared((16, 16), float16)
        T = alloc_shared((16, 16), float16)
        copy(A[bz, by * 16:by * 16 + 16, bx * 16:bx * 16 + 16], S)
        for i, j in Parallel(16, 16):
            T[j, i] = S[i, j]
        copy(T, C[bz, bx * 16:bx * 16 + 16, by * 16:by * 16 + 16])
""", {"A": whole(3, 20, 35).astype(np.float16)}, lambda A: A.transpose(0, 2, 1))

    yield Case("unrolled_columns", """
@kernel
def k(A: Tensor[(M, 4), float32], C: Tensor[(M, 4), float32]):
    with Kernel(ceildiv(M, 64), threads=64) as bx:
        for i in Parallel(64):
            last = alloc_var(float32, 0.0)
            for c in unroll(4):
                last = last * 2.0 + A[bx * 64 + i, c]
                C[bx * 64 + i, c] = last
""", {"A": whole(100, 4).astype(np.float32)}, lambda A: np.stack([A[:, 0], 2 * A[:, 0] + A[:, 1], 4 * A[:, 0] + 2 * A[:, 1] + A[:, 2],
                                                               8 * A[:, 0] + 4 * A[:, 1] + 2 * A[:, 2] + A[:, 3]], 1))

    yield Case("triangle", """
@kernel
def k(A: Tensor[(M, N), int32], C: Tensor[(M, N), int32]):
    with Kernel(M, threads=32) as row:
        for j in range(row, N, 2):
            for i in Parallel(1):
                C[row, j] = A[row, j] + 1
        for j in range(row - 1, -1, -1):
            if j != 2:
                C[row, j] = -A[row, j]
""", {"A": whole(9, 12)}, triangle)

    yield Case("booleans", """
@kernel
def k(A: Tensor[(N,), bool], B: Tensor[(N,), bool], C: Tensor[(N,), bool]):
    with Kernel(ceildiv(N, 128), threads=128) as bx:
        F = alloc_fragment((128,), bool)
        S = alloc_shared((128,), bool)
        copy(A[bx * 128], F)
        copy(B[bx * 128], S)
        for i in Parallel(128):
            F[i] = (F[i] and not S[i]) or (S[i] and not F[i])
        copy(F, C[bx * 128])
""", {"A": whole(200, low=0, high=2).astype(np.bool_), "B": whole(200, seed=2, low=0, high=2).astype(np.bool_)}, lambda A, B: A ^ B)

    yield Case("bytes", """
@kernel
def k(A: Tensor[(N,), int8], B: Tensor[(N,), uint8], C: Tensor[(N,), int32]):
    with Kernel(ceildiv(N, 256), threads=64) as bx:
        F = alloc_fragment((256,), int8)
        copy(A[bx * 256], F)
        for i in Parallel(256):
            C[bx * 256 + i] = cast(F[i], int32) * cast(B[bx * 256 + i], int32)
""", {"A": whole(300, low=-128, high=128).astype(np.int8), "B": whole(300, seed=2, low=0, high=256).astype(np.uint8)},
               lambda A, B: A.astype(np.int32) * B)

    yield Case("softmax", """
@kernel
def k(A: Tensor[(M, N), float32], C: Tensor[(M, N), float32]):
    with Kernel(M, threads=32) as row:
        top = alloc_var(float32, -infinity(float32))
        total = alloc_var(float32, 0.0)
        for j in serial(N):
            top = max(top, A[row, j])
        for j in serial(N):
            total = total + exp(A[row, j] - top)
        for j in Parallel(N):
            C[row, j] = exp(A[row, j] - top) / total
""", {"A": floats(5, 70)}, lambda A: (lambda e: e / e.sum(1, keepdims=True))(np.exp(A - A.max(1, keepdims=True))), ["N=70"], tolerance=1e-5)

    yield Case("functions", """
@macro
def smooth(x):
    return tanh(x) * 0.5 + rsqrt(abs(x) + 1.0)


def twice(f, x):
    return f(f(x))


@kernel
def k(A: Tensor[(N,), float32], C: Tensor[(N,), float32]):
    with Kernel(ceildiv(N, 128), threads=128) as bx:
        for i in Parallel(128):
            C[bx * 128 + i] = twice(smooth, A[bx * 128 + i]) + sqrt(exp2(floor(A[bx * 128 + i]))) - log2(ceil(abs(A[bx * 128 + i])) + 1.0)
""", {"A": floats(200)}, functions, tolerance=1e-5)


def triangle(A):
    C = np.zeros_like(A)
    for r in range(A.shape[0]):
        for j in range(r, A.shape[1], 2):
            C[r, j] = A[r, j] + 1
        for j in range(r - 1, -1, -1):
            if j != 2:
                C[r, j] = -A[r, j]
    return C


def functions(A):
    x = A.astype(np.float64)
    smooth = lambda v: np.tanh(v) * 0.5 + 1 / np.sqrt(np.abs(v) + 1)
    return (smooth(smooth(x)) + np.sqrt(np.exp2(np.floor(x))) - np.log2(np.ceil(np.abs(x)) + 1)).astype(np.float32)


def main():
    arguments = sys.argv[2:]
    options = []
    while arguments and arguments[0].startswith("--"):
        options, arguments = options + arguments[:2], arguments[2:]
    count = wrong = 0
    for case in cases():
        if arguments and not any(case.name.startswith(p) for p in arguments):
            continue
        count += 1
        problem = case.run(sys.argv[1], options)
        if problem:
            wrong += 1
            print("%s: %s\n%s" % (case.name, problem, case.text))
    print("%d kernels, %d wrong" % (count, wrong))
    sys.exit(1 if wrong or not count else 0)


if __name__ == "__main__":
    main()
