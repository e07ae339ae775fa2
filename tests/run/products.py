"""Matrix products of many tile shapes with small whole numbers, where every result is exact.

    products.py TILE_RUN [--order ORDER] [--check LIST] [NAME-PREFIX…]
The reference is computed by numpy in double precision and rounded to the type of C.
"""
import subprocess
import sys

import numpy as np

import elementwise as types
from copies import DTYPES

PLAIN = """
@kernel
def product(A: Tensor[(M, K), {ab}], B: Tensor[(N, K), {ab}], C: Tensor[(M, N), {c}]):
    with Kernel(ceildiv(N, {bn}), ceildiv(M, {bm}), threads={threads}) as (bx, by):
        A_shared = alloc_shared(({bm}, {bk}), {ab})
        B_shared = alloc_shared(({bn}, {bk}), {ab})
        C_shared = alloc_shared(({bm}, {bn}), {c})
        acc = {accumulator}(({bm}, {bn}), float32)
        {local}
        done = alloc_barrier(1)
        {before}
        for k in {loop}:
            copy(A[by * {bm}, ({k}) * {bk}], A_shared)
            copy(B[bx * {bn}, ({k}) * {bk}], B_shared)
            gemm(A_shared, B_shared, acc, transpose_B=True, {clear}mbar=done)
        {after}
"""
FRAGMENT = dict(accumulator="alloc_fragment", local="pass", after="copy(acc, C_shared)\n        copy(C_shared, C[by * {bm}, bx * {bn}])")
TMEM = dict(accumulator="alloc_tmem", local="part = alloc_fragment(({bm}, {bn}), float32)",
            after="copy(acc, part)\n        copy(part, C_shared)\n        copy(C_shared, C[by * {bm}, bx * {bn}])")
DIRECT = dict(accumulator="alloc_tmem", local="part = alloc_fragment(({bm}, {bn}), float32)",
              after="copy(acc, part)\n        copy(part, C[by * {bm}, bx * {bn}])")
FIRST = dict(before="pass", clear="clear_accum={k} == 0, ")
CLEARED = dict(before="clear(acc)", clear="")


class Case:
    def __init__(self, name, size, tile, ab="bf16", c="bf16", threads=128, source=None, reference=None, k="k", loop=None, **parts):
        self.name, self.size, self.ab, self.c = name, size, ab, c
        self.reference = reference or (lambda a, b, c: a @ b.T)
        bm, bn, bk = tile
        fields = dict(bm=bm, bn=bn, bk=bk, ab=DTYPES[ab], c=DTYPES[c], threads=threads, k=k, loop=loop or "serial(ceildiv(K, %d))" % bk)
        text = source or PLAIN
        for _ in range(2):  # the parts have fields of their own
            text = text.format(**{**{name: part.format(**fields) for name, part in parts.items()}, **fields})
        self.text = text

    def run(self, tile_run, options):
        m, n, k = self.size
        rng = np.random.default_rng(1)
        a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (n, k))
        np.save("a.npy", types.hold(self.ab, a.astype(np.float32)))
        np.save("b.npy", types.hold(self.ab, b.astype(np.float32)))
        with open("product.tile", "w") as file:
            file.write(self.text)
        done = subprocess.run([tile_run, "product.tile", "--device", "emu", "--in", "A=a.npy", "--in", "B=b.npy", "--out", "C=c.npy"]
                              + options, capture_output=True, text=True)
        if done.returncode != 0:
            return "tile-run ends with %d: %s" % (done.returncode, done.stderr.strip()[:1500])
        want = types.hold(self.c, self.reference(a.astype(np.float64), b.astype(np.float64), None).astype(np.float32))
        got = np.load("c.npy").view(types.NUMPY[self.c])
        x, y = types.number(self.c, got), types.number(self.c, want)
        bad = np.argwhere(x != y)
        if len(bad) == 0:
            return None
        at = tuple(bad[0])
        return "%d of %d wrong; first at %s: %s, want %s" % (len(bad), x.size, at, x[at], y[at])


def shapes():
    for bn in (16, 48, 128, 256, 320, 512):
        yield Case("columns_%d" % bn, (130, bn + 8, 72), (128, bn, 64), **TMEM, **FIRST)
    for bk in (16, 32, 64, 128):
        yield Case("depth_%d" % bk, (128, 64, 144), (128, 64, bk), **TMEM, **FIRST)
    yield Case("rows_256", (300, 136, 64), (256, 128, 32), **TMEM, **FIRST)
    yield Case("f16", (128, 128, 128), (128, 128, 64), ab="f16", c="f16", **TMEM, **FIRST)
    yield Case("f32_result", (130, 132, 128), (128, 64, 64), c="f32", **TMEM, **FIRST)
    yield Case("direct", (130, 136, 64), (128, 128, 64), **DIRECT, **FIRST)
    yield Case("direct_ragged", (130, 133, 64), (128, 128, 64), **DIRECT, **FIRST)
    for threads in (128, 256):
        yield Case("fragment_%d" % threads, (200, 136, 96), (128, 128, 32), threads=threads, **FRAGMENT, **CLEARED)
    yield Case("fragment_first", (200, 136, 96), (128, 128, 32), **FRAGMENT, **FIRST)
    yield Case("tmem_cleared_256", (200, 136, 96), (128, 128, 32), threads=256, **TMEM, **CLEARED)
    for size in ((1, 8, 16), (129, 257, 72), (257, 8, 8), (1, 1, 1), (130, 96, 40), (130, 64, 0)):
        yield Case("ragged_%dx%dx%d" % size, size, (128, 64, 64), **TMEM, **FIRST)


def loops():
    one = lambda a, b, c: a @ b.T
    for loop, k in (("Pipelined(8, num_stages=3)", "k"), ("Pipelined(2, 10, num_stages=3)", "k - 2"), ("unroll(8)", "k")):
        yield Case("loop_" + loop.split("(")[0].lower() + k.replace(" ", ""), (128, 128, 512), (128, 128, 64), loop=loop, k=k, **TMEM,
                   **FIRST)
    # two products a round on one barrier, and in nested loops under a condition
    twice = PLAIN.replace("mbar=done)\n        {after}", "mbar=done)\n            gemm(A_shared, B_shared, acc, transpose_B=True, mbar=done)"
                          "\n        {after}")
    yield Case("two_products", (128, 64, 192), (128, 64, 64), source=twice, reference=lambda a, b, c: 2 * (a @ b.T), **TMEM, **FIRST)
    # slices along K that begin and end inside the panels of the swizzle; one whose start is known only at run time
    cut = PLAIN.replace("gemm(A_shared, B_shared, acc, transpose_B=True, {clear}mbar=done)",
                        "gemm(A_shared[:, 0:48], B_shared[:, 0:48], acc, transpose_B=True, {clear}mbar=done)\n"
                        "            gemm(A_shared[:, 48:128], B_shared[:, 48:128], acc, transpose_B=True, mbar=done)")
    yield Case("slices", (130, 72, 200), (128, 64, 128), source=cut, **TMEM, **FIRST)
    cut = PLAIN.replace("gemm(A_shared, B_shared, acc, transpose_B=True, {clear}mbar=done)",
                        "for s in serial(4):\n"
                        "                gemm(A_shared[:, s * 32:s * 32 + 32], B_shared[:, s * 32:s * 32 + 32], acc, transpose_B=True, mbar=done)")
    yield Case("moving_slices", (130, 72, 200), (128, 64, 128), source=cut, **FRAGMENT, **CLEARED)
    rows = PLAIN.replace("gemm(A_shared, B_shared, acc, transpose_B=True, {clear}mbar=done)",
                         "gemm(A_shared, B_shared[0:16, :], acc[:, 0:16], transpose_B=True, {clear}mbar=done)\n"
                         "            gemm(A_shared, B_shared[16:64, :], acc[:, 16:64], transpose_B=True, {clear}mbar=done)")
    yield Case("column_slices", (130, 72, 200), (128, 64, 64), source=rows, **TMEM, **FIRST)
    nested = PLAIN.replace("        for k in {loop}:\n", "        for o in serial(3):\n         if o != 1:\n          for k in {loop}:\n")
    yield Case("nested", (128, 64, 192), (128, 64, 64), source=nested, reference=lambda a, b, c: 2 * (a @ b.T), **FRAGMENT, **CLEARED)


HEAD = """
@kernel
def product(A: Tensor[(M, K), bfloat16], B: Tensor[(N, K), bfloat16], C: Tensor[(M, N), float32]):
    with Kernel(ceildiv(N, 64), ceildiv(M, 128), threads=128) as (bx, by):
"""


def composed():
    """Kernels whose operands or accumulators are written by threads between the products."""
    def case(name, body, reference, size=(130, 72, 136)):
        return Case(name, size, (128, 64, 64), c="f32", source=HEAD + body, reference=reference)

    yield case("scaled_operand", """
        A_shared = alloc_shared((128, 64), bfloat16)
        B_shared = alloc_shared((64, 64), bfloat16)
        acc = alloc_fragment((128, 64), float32)
        clear(acc)
        for k in serial(ceildiv(K, 64)):
            copy(A[by * 128, k * 64], A_shared)
            copy(B[bx * 64, k * 64], B_shared)
            for i, j in Parallel(128, 64):
                A_shared[i, j] = A_shared[i, j] * 2 + cast(j % 2, bfloat16)
            gemm(A_shared, B_shared, acc, transpose_B=True)
        copy(acc, C[by * 128, bx * 64])
""", lambda a, b, c: (2 * a + np.arange(a.shape[1]) % 2) @ b.T)
    yield case("computed_operand", """
        A_shared = alloc_shared((128, 64), bfloat16)
        B_shared = alloc_shared((64, 64), bfloat16)
        acc = alloc_tmem((128, 64), float32)
        part = alloc_fragment((128, 64), float32)
        for k in serial(ceildiv(K, 64)):
            for i, j in Parallel(128, 64):
                A_shared[i, j] = A[by * 128 + i, k * 64 + j]
            copy(B[bx * 64, k * 64], B_shared)
            gemm(A_shared, B_shared, acc, transpose_B=True, clear_accum=k == 0)
        copy(acc, part)
        copy(part, C[by * 128, bx * 64])
""", lambda a, b, c: a @ b.T)
    yield case("rescaled", """
        A_shared = alloc_shared((128, 64), bfloat16)
        B_shared = alloc_shared((64, 64), bfloat16)
        acc = alloc_fragment((128, 64), float32)
        clear(acc)
        for k in serial(ceildiv(K, 64)):
            copy(A[by * 128, k * 64], A_shared)
            copy(B[bx * 64, k * 64], B_shared)
            for i, j in Parallel(128, 64):
                acc[i, j] = acc[i, j] * 0.5 + cast(i + j, float32)
            gemm(A_shared, B_shared, acc, transpose_B=True)
        copy(acc, C[by * 128, bx * 64])
""", rescaled)
    yield case("starts_from_C", """
        A_shared = alloc_shared((128, 64), bfloat16)
        B_shared = alloc_shared((64, 64), bfloat16)
        start = alloc_fragment((128, 64), float32)
        acc = alloc_tmem((128, 64), float32)
        for i, j in Parallel(128, 64):
            start[i, j] = cast(i - j, float32)
        copy(start, acc)
        for k in serial(ceildiv(K, 64)):
            copy(A[by * 128, k * 64], A_shared)
            copy(B[bx * 64, k * 64], B_shared)
            gemm(A_shared, B_shared, acc, transpose_B=True)
        copy(acc, start)
        copy(start, C[by * 128, bx * 64])
""", lambda a, b, c: a @ b.T + np.arange(len(a))[:, None] % 128 - np.arange(len(b)) % 64)
    yield case("two_accumulators", """
        A_shared = alloc_shared((128, 64), bfloat16)
        B_shared = alloc_shared((64, 64), bfloat16)
        first = alloc_tmem((128, 64), float32)
        second = alloc_tmem((128, 64), float32)
        x = alloc_fragment((128, 64), float32)
        y = alloc_fragment((128, 64), float32)
        for k in serial(ceildiv(K, 64)):
            copy(A[by * 128, k * 64], A_shared)
            copy(B[bx * 64, k * 64], B_shared)
            gemm(A_shared, B_shared, first, transpose_B=True, clear_accum=k == 0)
            if k % 2 == 0:
                gemm(A_shared, B_shared, second, transpose_B=True, clear_accum=k == 0)
        copy(first, x)
        copy(second, y)
        for i, j in Parallel(128, 64):
            x[i, j] = x[i, j] * 3 - y[i, j]
        copy(x, C[by * 128, bx * 64])
""", lambda a, b, c: 3 * (a @ b.T) - even_blocks(a) @ b.T)
    # (A @ B^T) @ B, the product in the middle going through shared memory; here N and K of the second are those of B
    yield Case("chained", (128, 64, 64), (128, 64, 64), c="f32", source=HEAD + """
        A_shared = alloc_shared((128, 64), bfloat16)
        B_shared = alloc_shared((64, 64), bfloat16)
        P_shared = alloc_shared((128, 64), bfloat16)
        acc = alloc_fragment((128, 64), float32)
        copy(A[0, 0], A_shared)
        copy(B[0, 0], B_shared)
        clear(acc)
        gemm(A_shared, B_shared, acc, transpose_B=True)
        for i, j in Parallel(128, 64):
            acc[i, j] = min(max(acc[i, j], -100.0), 100.0)
        copy(acc, P_shared)
        clear(acc)
        gemm(P_shared, B_shared, acc, transpose_B=True)
        copy(acc, C[0, 0])
""", reference=lambda a, b, c: np.clip(a @ b.T, -100, 100) @ b.T)
    for scratch in (64, 128, 200, 1024, 4096):
        yield case("scratch_%d" % scratch, """
        scratch = alloc_shared((%d,), uint8)
        A_shared = alloc_shared((128, 64), bfloat16)
        B_shared = alloc_shared((64, 64), bfloat16)
        acc = alloc_fragment((128, 64), float32)
        fill(scratch, 255)
        clear(acc)
        for k in serial(ceildiv(K, 64)):
            copy(A[by * 128, k * 64], A_shared)
            copy(B[bx * 64, k * 64], B_shared)
            gemm(A_shared, B_shared, acc, transpose_B=True)
        fill(scratch, 1)
        copy(acc, C[by * 128, bx * 64])
""" % scratch, lambda a, b, c: a @ b.T, size=(128, 64, 72))


def rescaled(a, b, c):
    total = np.zeros((len(a), len(b)))
    add = np.arange(len(a))[:, None] % 128 + np.arange(len(b)) % 64
    for k in range(0, a.shape[1], 64):
        total = total * 0.5 + add + a[:, k:k + 64] @ b[:, k:k + 64].T
    return total


def even_blocks(a):
    return a * (np.arange(a.shape[1]) // 64 % 2 == 0)


def main():
    arguments = sys.argv[2:]
    options = []
    while arguments and arguments[0].startswith("--"):
        options, arguments = options + arguments[:2], arguments[2:]
    count = wrong = 0
    for group in (shapes, loops, composed):
        for case in group():
            if arguments and not any(case.name.startswith(p) for p in arguments):
                continue
            count += 1
            problem = case.run(sys.argv[1], options)
            if problem:
                wrong += 1
                print("%s: %s\n%s" % (case.name, problem, case.text))
    print("%d products, %d wrong" % (count, wrong))
    sys.exit(1 if wrong or not count else 0)


if __name__ == "__main__":
    main()
