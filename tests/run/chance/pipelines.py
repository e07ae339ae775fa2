"""Pipelined loops of products, in all kinds of places and with all kinds of things around and inside them, which the compiler may turn into warp
roles. Every step is written twice: as text, and as what it does to the arrays of a block."""
import numpy as np

from chance.base import SPELLING, Kernel, pick, whole_numbers
from run_case import as_f64, exactly


class Steps:
    """Lines of text and the functions of a block's state that they stand for."""
    def __init__(self):
        self.lines, self.acts = [], []

    def add(self, line, act=None):
        self.lines.append(line)
        if act:
            self.acts.append(act)

    def inside(self, head, inner, run):
        """A loop or branch; `run(state, body)` does it."""
        self.lines += [head] + ["    " + line for line in inner.lines]
        self.acts.append(lambda state: run(state, inner.do))

    def do(self, state):
        for act in self.acts:
            act(state)


def tile_of(array, row, column, rows, columns):
    """A tile with zeros where it leaves the array."""
    out = np.zeros((rows, columns))
    part = array[row:row + rows, column:column + columns]
    out[:part.shape[0], :part.shape[1]] = part
    return out


class Pipeline:
    def __init__(self, rng):
        self.rng, self.kernel = rng, Kernel()
        self.bm, self.bn, self.bk = int(pick(rng, [128, 128, 64])), int(pick(rng, [16, 32, 64, 64, 96])), int(pick(rng, [32, 64, 64]))
        self.kernel.threads = int(pick(rng, [128, 128, 256])) if self.bm == 128 else 128
        self.dtype, self.out = pick(rng, ["bf16", "f16"]), pick(rng, ["f32", "f32", "bf16"])
        self.two = rng.integers(3) == 0  # accumulators
        self.turns = int(pick(rng, [1, 1, 2, 3, 5]))  # of an outer loop; more than 1 stores in each
        self.operands = 3 if self.two or rng.integers(4) == 0 else 2  # A, B and perhaps D beside B
        self.names = ["c0", "c1"] if self.two else ["c0"]
        self.kernel.arch, self.kernel.sms = pick(rng, ["sm_90a", "sm_100a"]), int(pick(rng, [1, 2, 3, 148]))
        while (len(self.names) + 1) * self.bm * self.bn > 180 * self.kernel.threads:  # they are in registers
            self.bn //= 2
        self.tmem = {name: rng.integers(2) == 0 for name in self.names}

    def chance(self, n):
        return self.rng.integers(n) == 0

    def sizes(self):
        rng = self.rng
        m, n = int(rng.integers(1, 2 * self.bm + 40)), int(rng.integers(1, 3 * self.bn))
        k = int(rng.integers(1, 5 * self.bk))
        return (m, n, k) if self.chance(5) else tuple((extent + 7) // 8 * 8 for extent in (m, n, k))

    def load(self, steps, k_text, k_of):
        b = self
        for name, tensor, rows, row_text, row in (("a", "A", b.bm, "by", "by"), ("b", "B", b.bn, "bx", "bx"), ("d", "D", b.bn, "bx", "bx"))[:b.operands]:
            def act(state, name=name, tensor=tensor, rows=rows, row=row):
                state[name] = tile_of(state["in"][tensor], state[row] * rows, k_of(state) * b.bk, rows, b.bk)
            steps.add("copy(%s[%s * %d, (%s) * %d], %s)" % (tensor, row_text, rows, k_text, b.bk, name), act)

    def transform(self, steps, name):
        rows = self.bm if name == "a" else self.bn
        plus = int(self.rng.integers(0, 2))

        def act(state):
            state[name] = state[name] * 2 + plus
        steps.add("for i, j in Parallel(%d, %d):" % (rows, self.bk))
        steps.add("    %s[i, j] = %s[i, j] * 2 + %d" % (name, name, plus), act)

    def product(self, steps, acc, operand, clear):
        def act(state):
            base = 0 if clear[1](state) else state[acc]
            state[acc] = base + state["a"] @ state[operand].T
        text = ", clear_accum=%s" % clear[0] if clear[0] != "False" or self.chance(3) else ""
        steps.add("gemm(a, %s, %s, transpose_B=True%s)" % (operand, acc, text), act)

    def scale(self, steps, acc):
        def act(state):
            state[acc] = state[acc] * 2 - 1
        steps.add("for i, j in Parallel(%d, %d):" % (self.bm, self.bn))
        steps.add("    %s[i, j] = %s[i, j] * 2 - 1" % (acc, acc), act)

    def condition(self):
        p = int(self.rng.integers(2))
        return pick(self.rng, [("k %% 2 == %d" % p, lambda s: s["k"] % 2 == p), ("k != 1", lambda s: s["k"] != 1),
                               ("by == %d or k < 2" % p, lambda s: s["by"] == p or s["k"] < 2)])

    def body(self, first):
        """What stands in the pipelined loop. `first`: its first round, as text and function."""
        steps, rng = Steps(), self.rng
        self.load(steps, "k", lambda s: s["k"])
        if self.chance(4):
            self.transform(steps, pick(rng, ["a", "b"]))
        inner = Steps()
        for i, acc in enumerate(self.names):
            operand = "d" if self.operands == 3 and (i == 1 or self.chance(3)) else "b"
            never = ("False", lambda s: False)
            clear = never if acc in self.cleared else ("k == %s" % first[0], lambda s: s["k"] == first[1](s))
            if acc in self.cleared and not self.tmem[acc] and self.turns == 1 and self.chance(6):  # else numbers grow too large
                self.scale(inner, acc)
            self.product(inner, acc, operand, clear)
            if self.chance(5):
                self.product(inner, acc, "b", never)
        if self.cleared == set(self.names) and self.chance(4):
            text, holds = self.condition()
            steps.inside("if %s:" % text, inner, lambda s, body: body(s) if holds(s) else None)
        else:
            steps.lines, steps.acts = steps.lines + inner.lines, steps.acts + inner.acts
        return steps

    def bounds(self):
        """(begin, end) of the loop: text and function each."""
        rng, begin = self.rng, int(pick(self.rng, [0, 0, 0, 1]))
        rounds = [("ceildiv(K, %d)" % self.bk, lambda s: -(-s["K"] // self.bk)), ("ceildiv(K, %d)" % self.bk, lambda s: -(-s["K"] // self.bk)),
                  ("4", lambda s: 4), ("by + 2", lambda s: s["by"] + 2)]
        if self.turns > 1:
            rounds += [("r + 1", lambda s: s["r"] + 1), ("3 - r", lambda s: 3 - s["r"])]
        end = pick(rng, rounds)
        return (str(begin), lambda s: begin), end

    def loop(self, steps):
        begin, end = self.bounds()
        stages = int(pick(self.rng, [0, 1, 2, 2, 3, 3, 4, 5]))

        def run(state, body):
            for k in range(begin[1](state), end[1](state)):
                state["k"] = k
                body(state)
        head = "for k in Pipelined(%s%s, num_stages=%d):" % ("" if begin[0] == "0" else begin[0] + ", ", end[0], stages)
        if any(name not in self.cleared for name in self.names):  # a loop of no rounds must not leave it unset
            head = "for k in Pipelined(%s, num_stages=%d):" % (4 if begin[0] == "0" else "1, 4", stages)
            end = ("4", lambda s: 4)
        if self.chance(6):
            self.guard(steps, head, self.body(begin), run)
        else:
            steps.inside(head, self.body(begin), run)

    def guard(self, steps, head, body, run):
        if self.cleared != set(self.names):
            return steps.inside(head, body, run)
        inner = Steps()
        inner.inside(head, body, run)
        steps.inside("if by == 0:", inner, lambda s, act: act(s) if s["by"] == 0 else None)

    def clear(self, steps):
        for name in sorted(self.cleared):
            def act(state, name=name):
                state[name] = np.zeros((self.bm, self.bn))
            steps.add("clear(%s)" % name, act)

    def finish(self, steps, tensor, acc):
        """The accumulator's way to the result, perhaps computed on."""
        rng, value = self.rng, acc
        if self.tmem[acc]:
            steps.add("copy(%s, p)" % acc, lambda s: s.update(p=s[acc]))
            value = "p"
        more = pick(rng, ["", "", "scaled", "bias", "tensor"])
        if value == "p" or self.turns == 1:
            if more:
                text = {"scaled": "%s[i, j] * 2 + 1", "bias": "%s[i, j] + bias[bx * BN + j]", "tensor": "%s[i, j] + T[by * BM + i, bx * BN + j]"}[more]
                text = text.replace("BN", str(self.bn)).replace("BM", str(self.bm)) % value

                def act(state):
                    at = state["by"] * self.bm, state["bx"] * self.bn
                    add = {"scaled": 1, "bias": tile_of(state["in"]["bias"][None, :], 0, at[1], 1, self.bn),
                           "tensor": tile_of(state["in"]["T"], *at, self.bm, self.bn)}[more]
                    state[value] = state[value] * (2 if more == "scaled" else 1) + add
                steps.add("for i, j in Parallel(%d, %d):" % (self.bm, self.bn))
                guard = {"bias": "if bx * %d + j < N:" % self.bn, "tensor": "if by * %d + i < M and bx * %d + j < N:" % (self.bm, self.bn)}.get(more)
                if guard:
                    steps.add("    " + guard)
                steps.add("    %s%s[i, j] = %s" % ("    " if guard else "", value, text), act)
        lead = "r, " if self.turns > 1 else ""
        there = "%s[%sby * %d, bx * %d]" % (tensor, lead, self.bm, self.bn)

        def store(state):
            r = state["r"] if self.turns > 1 else 0
            rows, columns = slice(state["by"] * self.bm, (state["by"] + 1) * self.bm), slice(state["bx"] * self.bn, (state["bx"] + 1) * self.bn)
            out = state["out"][tensor][r][rows, columns]
            out[:] = state[value][:out.shape[0], :out.shape[1]]
        if self.chance(2):
            steps.add("copy(%s, o)" % value)
            steps.add("copy(o, %s)" % there, store)
        else:
            steps.add("copy(%s, %s)" % (value, there), store)

    def make(self):
        k, rng, spelling = self.kernel, self.rng, SPELLING
        m, n, depth = self.sizes()
        for name, dims, dtype in (("A", ["M", "K"], self.dtype), ("B", ["N", "K"], self.dtype), ("D", ["N", "K"], self.dtype), ("bias", ["N"], "f32"),
                                  ("T", ["M", "N"], "f32")):
            k.tensor(name, dims, dtype)
            k.inputs[name] = whole_numbers(rng, dtype, [{"M": m, "N": n, "K": depth}[d] for d in dims], 1)
        results = ["C", "E"][:len(self.names)]
        for name in results:
            k.tensor(name, (["R"] if self.turns > 1 else []) + ["M", "N"], self.out)
        k.grid, k.blocks = "ceildiv(N, %d), ceildiv(M, %d)" % (self.bn, self.bm), "(bx, by)"
        for name, rows in (("a", self.bm), ("b", self.bn), ("d", self.bn))[:self.operands]:
            k.body.append("%s = alloc_shared((%d, %d), %s)" % (name, rows, self.bk, spelling[self.dtype]))
        for name in self.names:
            k.body.append("%s = alloc_%s((%d, %d), float32)" % (name, "tmem" if self.tmem[name] else "fragment", self.bm, self.bn))
        k.body.append("p = alloc_fragment((%d, %d), float32)" % (self.bm, self.bn))
        k.body.append("o = alloc_shared((%d, %d), %s)" % (self.bm, self.bn, spelling[self.out]))
        self.cleared = set(self.names) if self.chance(2) else {name for name in self.names if self.chance(2) or not self.tmem[name]}
        steps, inner = Steps(), Steps()
        afresh = self.chance(2)
        self.clear(inner if afresh or self.turns == 1 else steps)
        self.loop(inner)
        if self.chance(5) and self.cleared == set(self.names):
            self.loop(inner)
        for name, acc in zip(results, self.names):
            self.finish(inner, name, acc)
        if self.turns > 1:
            def run(state, body):
                for r in range(self.turns):
                    state["r"] = r
                    body(state)
            steps.inside("for r in serial(%d):" % self.turns, inner, run)
        else:
            steps = inner
        k.body += steps.lines
        out = {name: np.zeros((self.turns, m, n)) for name in results}
        inputs = {name: as_f64(array) for name, array in k.inputs.items()}
        for by in range(-(-m // self.bm)):
            for bx in range(-(-n // self.bn)):
                steps.do({"by": by, "bx": bx, "K": depth, "in": inputs, "out": out})
        for name in results:
            k.want[name] = exactly(self.out, out[name] if self.turns > 1 else out[name][0])
        return k


def pipelines(rng):
    return Pipeline(rng).make()
