"""Products whose waiting is written out: rings of slots, one barrier a slot or one for all, A from shared memory, a fragment or TMEM; with
warps in roles."""
import numpy as np

from chance.base import SPELLING, Kernel, pick, whole_numbers
from elementwise import hold, number


def protocols(rng):
    """C = A B^T with tcgen05_gemm; each wait is for the phase that the round's number gives."""
    kernel = Kernel()
    kernel.threads = int(pick(rng, [128, 256]))
    bm, bn, bk = 128, int(pick(rng, [32, 64, 128, 160])), int(pick(rng, [32, 64, 64, 128]))
    slots = int(pick(rng, [1, 1, 2, 3, 4]))
    while slots * (bm + bn) * bk * 2 > 180000:
        slots -= 1
    m, n, k = int(rng.integers(1, 200)), int(rng.integers(1, 2 * bn)), int(rng.integers(1, 6 * bk))
    form = pick(rng, ["one", "ring", "roles"] if slots > 1 else ["one"])
    if form == "roles" or rng.integers(2):  # what TMA can read
        m, n, k = (-(-d // 8) * 8 for d in (m, n, k))
    ab, c = pick(rng, ["bf16", "f16"]), pick(rng, ["f32", "bf16", "f16"])
    for name, dims in (("A", ["M", "K"]), ("B", ["N", "K"])):
        kernel.tensor(name, dims, ab)
    kernel.tensor("C", ["M", "N"], c)
    a, b = whole_numbers(rng, ab, (m, k), 2), whole_numbers(rng, ab, (n, k), 2)
    kernel.inputs = {"A": a, "B": b}
    result = lambda x, y: x @ y.T  # noqa: E731
    kernel.want["C"] = hold(c, result(number(ab, a).astype(np.float64), number(ab, b).astype(np.float64)).astype(np.float32))
    kernel.approximate(rng, {"A": ab, "B": ab}, result, c)
    kernel.grid, kernel.blocks = "ceildiv(N, %d), ceildiv(M, %d)" % (bn, bm), "(bx, by)"
    if form == "roles":
        return by_roles(rng, kernel, (bm, bn, bk), slots, SPELLING[ab])
    source = pick(rng, ["shared", "shared", "fragment", "tmem"]) if form == "one" else "shared"
    kernel.body = (ring if form == "ring" else one_barrier)(rng, (bm, bn, bk), slots, SPELLING[ab], source)
    kernel.body += ["copy(acc, part)", "copy(part, C[by * %d, bx * %d])" % (bm, bn)]
    return kernel


def tiles(sizes, dtype, slots):
    bm, bn, bk = sizes
    lead = "%d, " % slots if slots else ""
    return ["a = alloc_shared((%s%d, %d), %s)" % (lead, bm, bk, dtype), "b = alloc_shared((%s%d, %d), %s)" % (lead, bn, bk, dtype),
            "acc = alloc_tmem((%d, %d), float32)" % (bm, bn), "part = alloc_fragment((%d, %d), float32)" % (bm, bn)]


def one_barrier(rng, sizes, slots, dtype, source):
    """Every round waits for its own product."""
    bm, bn, bk = sizes
    body = tiles(sizes, dtype, 0) + ["done = alloc_barrier(1)"]
    operand, extra = "a", []
    if source != "shared":
        body.append("r = alloc_fragment((%d, %d), %s)" % (bm, bk, dtype))
        extra = ["copy(a, r)"]
        operand = "r"
    if source == "tmem":
        body.append("at = alloc_tmem((%d, %d), %s)" % (bm, bk, dtype))
        extra.append("copy(r, at)")
        operand = "at"
    if source == "fragment":  # the compiler's own waits
        product = "gemm(r, b, acc, transpose_B=True, clear_accum=k == 0)"
        wait = []
    else:
        product = "tcgen05_gemm(%s, b, acc, transpose_B=True, clear_accum=k == 0, mbar=done)" % operand
        wait = ["mbarrier_wait_parity(done, %s)" % pick(rng, ["k % 2", "k & 1"])]
    loop = ["copy(A[by * %d, k * %d], a)" % (bm, bk), "copy(B[bx * %d, k * %d], b)" % (bn, bk)] + extra + [product] + wait
    return body + ["for k in serial(ceildiv(K, %d)):" % bk] + ["    " + line for line in loop]


def ring(rng, sizes, slots, dtype, source):
    """A slot is filled again once the product that read it is done."""
    bm, bn, bk = sizes
    body = tiles(sizes, dtype, slots) + ["bars = alloc_barrier([1] * %d)" % slots, "rounds = ceildiv(K, %d)" % bk]
    loop = ["s = k %% %d" % slots, "if k >= %d:" % slots, "    mbarrier_wait_parity(bars[s], (k // %d - 1) %% 2)" % slots,
            "copy(A[by * %d, k * %d], a[s, :, :])" % (bm, bk), "copy(B[bx * %d, k * %d], b[s, :, :])" % (bn, bk),
            "tcgen05_gemm(a[s, :, :], b[s, :, :], acc, transpose_B=True, clear_accum=k == 0, mbar=bars[s])"]
    body += ["for k in %s(rounds):" % pick(rng, ["serial", "range"])] + ["    " + line for line in loop]
    last = ["for k in range(max(rounds - %d, 0), rounds):" % slots, "    mbarrier_wait_parity(bars[k %% %d], k // %d %% 2)" % (slots, slots)]
    return body + last


def by_roles(rng, kernel, sizes, slots, dtype):
    """One warp loads, one multiplies, four write out; which ones, and how they count, is chance. Some warps may be idle."""
    bm, bn, bk = sizes
    groups = int(pick(rng, [2, 3]))
    kernel.threads = 128 * groups
    last = int(rng.integers(groups))  # the group that writes out
    free = [w for w in range(4 * groups) if w // 4 != last]
    loader, product = (int(w) for w in rng.choice(free, size=2, replace=False))
    two = bool(rng.integers(2))  # barriers of their own for the two operands
    full = ["full_a", "full_b"] if two else ["full", "full"]
    body = tiles(sizes, dtype, slots)
    body += ["%s = alloc_barrier([1] * %d)" % (name, slots) for name in sorted(set(full))]
    body += ["empty = alloc_barrier([1] * %d)" % slots, "finished = alloc_barrier(1)", "tx = get_thread_binding()", "warp = tx // 32",
             "rounds = ceildiv(K, %d)" % bk]
    copies = ["tma_copy(A[by * %d, k * %d], a[s, :, :], barrier=%s[s])" % (bm, bk, full[0]),
              "tma_copy(B[bx * %d, k * %d], b[s, :, :], barrier=%s[s])" % (bn, bk, full[1])]
    arrive = ["if tx == %d:" % (32 * loader)] + ["    mbarrier_arrive(%s[s])" % name for name in sorted(set(full))]
    count = ["s, use = k %% %d, k // %d" % (slots, slots)]
    load = count + ["mbarrier_wait_parity(empty[s], (use %s 1) ^ 1)" % pick(rng, ["&", "% 2 *"])] + copies + arrive
    multiply = count + ["mbarrier_wait_parity(%s[s], use & 1)" % name for name in sorted(set(full))]
    multiply.append("tcgen05_gemm(a[s, :, :], b[s, :, :], acc, transpose_B=True, clear_accum=k == 0, mbar=empty[s])")
    loop = ["for k in serial(rounds):"]
    arms = {loader: loop + ["    " + line for line in load],
            product: loop + ["    " + line for line in multiply] + ["tcgen05_mma_arrive(finished)"]}
    out = ["mbarrier_wait_parity(finished, 0)", "copy(acc, part)", "copy(part, C[by * %d, bx * %d])" % (bm, bn)]
    chain = [("warp == %d" % w, arms[w]) for w in rng.permutation([loader, product])]
    chain.insert(int(rng.integers(3)), ("%d <= tx < %d" % (128 * last, 128 * last + 128), out))
    for i, (condition, lines) in enumerate(chain):
        body += ["%s %s:" % ("elif" if i else "if", condition)] + ["    " + line for line in lines]
    kernel.body = body
    return kernel
