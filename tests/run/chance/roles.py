"""Groups of threads that do different work on tiles of their own, meet, and read each other's."""
import numpy as np

from chance.base import SPELLING, Elements, Kernel, as_type, pick, whole_numbers
from elementwise import number
from run_case import exactly


def ranges(rng, threads):
    """Cuts the threads into two to four ranges of whole warps."""
    warps = threads // 32
    cuts = sorted(int(c) for c in rng.choice(np.arange(1, warps), size=min(int(rng.integers(1, 4)), warps - 1), replace=False))
    edges = [0] + cuts + [warps]
    return [(32 * a, 32 * b) for a, b in zip(edges, edges[1:])]


def heads(rng, parts, threads):
    """The conditions of an if chain whose arms are these ranges; some are written with the warp's number."""
    out = []
    for i, (lo, hi) in enumerate(parts):
        if i == len(parts) - 1:
            out.append("else:")
            continue
        by_warp = rng.integers(2)
        name, a, b = ("warp", lo // 32, hi // 32) if by_warp else ("tx", lo, hi)
        forms = ["%s < %d" % (name, b), "%d <= %s < %d" % (a, name, b), "%s >= %d and %s < %d" % (name, a, name, b)]
        if by_warp and b == a + 1:
            forms.append("warp == %d" % a)
        out.append("%s %s:" % ("elif" if i else "if", pick(rng, forms)))
    return out


def roles(rng):
    """Rounds in which each range of threads changes its tile, from its own and perhaps the others' of the round before."""
    kernel = Kernel()
    kernel.threads = threads = int(pick(rng, [64, 128, 256]))
    parts = ranges(rng, threads)
    m, n = pick(rng, [(8, 32), (16, 16), (7, 33), (32, 8), (1, 64)])
    blocks, rounds = 2, int(rng.integers(1, 4))
    names = "PQRS"[:len(parts)]
    dtypes = [pick(rng, ["f32", "bf16", "i32", "f16"]) for _ in parts]
    state, body = [], ["tx = get_thread_binding()", "warp = tx // 32"]
    for name, dtype in zip(names, dtypes):
        kernel.tensor("IN_" + name, ["M", "N"], dtype)
        kernel.inputs["IN_" + name] = whole_numbers(rng, dtype, (blocks * m, n), 3)
        state.append(kernel.inputs["IN_" + name].reshape(blocks, m, n))
        body += ["%s = alloc_shared((%d, %d), %s)" % (name, m, n, SPELLING[dtype])]
    at = "[bx * %d, 0]" % m
    load = heads(rng, parts, threads)
    for head, name in zip(load, names):
        body += [head, "    copy(IN_%s%s, %s)" % (name, at, name)]
    expressions = [Recipe(rng, names, i) for i in range(len(parts))]
    inner = []
    for head, name, recipe, dtype in zip(heads(rng, parts, threads), names, expressions, dtypes):
        text = recipe.text(state, dtypes)
        inner += [head, "    for i, j in Parallel(%d, %d):" % (m, n), "        %s[i, j] = %s" % (name, text)]
    body += ["for k in %s(%d):" % (pick(rng, ["serial", "range"]), rounds)] + ["    " + line for line in inner]
    for _ in range(rounds):
        for i, recipe in enumerate(expressions):
            state[i] = recipe.value(state, dtypes)
    for name, dtype, value in zip(names, dtypes, state):
        kernel.tensor("OUT_" + name, ["M", "N"], dtype)
        kernel.want["OUT_" + name] = value.reshape(blocks * m, n)
        body.append("copy(%s, OUT_%s%s)" % (name, name, at))
    kernel.grid, kernel.body = str(blocks), body
    return kernel


class Recipe:
    """An expression over one's own tile, the same for every state."""
    def __init__(self, rng, names, own):
        self.seed, self.names, self.own = int(rng.integers(1 << 30)), names, own

    def make(self, state, dtypes):
        rng = np.random.default_rng(self.seed)
        leaves = [("%s[i, j]" % self.names[self.own], (dtypes[self.own], state[self.own]))]
        text, value = Elements(rng, leaves).expression(2)
        dtype = dtypes[self.own]
        bound = number(dtype, as_type(value, dtype)[1])
        return ("max(min(cast(%s, %s), 8), -8)" % (text, SPELLING[dtype]),
                exactly(dtype, np.clip(np.where(np.isnan(bound), 8, bound), -8, 8)))

    def text(self, state, dtypes):
        return self.make(state, dtypes)[0]

    def value(self, state, dtypes):
        return self.make(state, dtypes)[1]
