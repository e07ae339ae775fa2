"""Workers that stay and take tile after tile, in every way to hand tiles out: each element is changed, and each tile counted, exactly once."""
import numpy as np

from chance.base import SPELLING, Kernel, pick, whole_numbers
from elementwise import number
from run_case import exactly


def persistent(rng):
    """C = A * 2 + 1 tile by tile; T counts the visits of each tile."""
    kernel = Kernel()
    kernel.threads = int(pick(rng, [32, 64, 128]))
    bm, bn = int(pick(rng, [1, 4, 16, 33])), int(pick(rng, [8, 16, 20, 64]))
    m, n = int(rng.integers(1, 7 * bm + 1)), int(rng.integers(1, 9 * bn + 1))
    rows, columns = -(-m // bm), -(-n // bn)
    workers = int(pick(rng, [1, 2, 3, 4, 7, 64]))
    dtype = pick(rng, ["f32", "i32", "bf16", "f16"])
    a = whole_numbers(rng, dtype, (m, n), 9)
    for name in "AC":
        kernel.tensor(name, ["M", "N"], dtype)
    kernel.tensor("T", ["P", "Q"], "i32")
    kernel.inputs = {"A": a, "T": np.zeros((rows, columns), np.int32)}
    kernel.want = {"C": exactly(dtype, number(dtype, a).astype(np.float64) * 2 + 1), "T": np.ones((rows, columns), np.int32)}
    kernel.grid, kernel.blocks = str(workers), "w"
    m_tiles, n_tiles = "ceildiv(M, %d)" % bm, "ceildiv(N, %d)" % bn
    place = pick(rng, ["shared", "fragment"])
    work = ["copy(A[i * %d, j * %d], S)" % (bm, bn), "for p, q in Parallel(%d, %d):" % (bm, bn), "    S[p, q] = S[p, q] * 2 + 1",
            "copy(S, C[i * %d, j * %d])" % (bm, bn), "if get_thread_binding() == 0:", "    atomic_add(T[i, j], 1)"]
    form = pick(rng, ["loop", "scheduler", "numbers"])
    group = int(pick(rng, [1, 2, 3, 4, 8]))
    if form == "loop":
        head = ["for i, j in Persistent([%s, %s], %d, w%s):" % (m_tiles, n_tiles, workers, pick(rng, ["", ", group_size=%d" % group]))]
        body = head + ["    " + line for line in work]
    elif form == "scheduler":
        major = bool(rng.integers(2))
        head = ["s = PersistentTileScheduler(%s, %s, num_workers=%d, swizzle_size=%d, column_major=%s)" % (m_tiles, n_tiles, workers, group, major),
                "s.init(w)", "while s.valid():"]
        body = head + ["    " + line for line in ["i, j = s.m_idx, s.n_idx"] + work + ["s.next_tile()"]]
    else:
        head = ["for t in range(w, %s * %s, %d):" % (m_tiles, n_tiles, workers)]
        body = head + ["    " + line for line in ["i, j = t // %s, t %% %s" % (n_tiles, n_tiles)] + work]
    kernel.body = ["S = alloc_%s((%d, %d), %s)" % (place, bm, bn, SPELLING[dtype])] + body
    return kernel
