"""Scalar programs with loops, branches and jumps, run by every thread; the reference is the same text, run by Python."""
import numpy as np

from chance.base import Kernel, pick
from run_case import untouched

NAMES = ["x", "y", "z"]


class Writer:
    """Statements that keep every variable between -200 and 200, so that no arithmetic wraps."""
    def __init__(self, rng):
        self.rng, self.counters, self.lines = rng, 0, []

    def atom(self, loops):
        choices = [pick(self.rng, NAMES), str(int(self.rng.integers(-9, 10))), "A[t]", "A[(t + %d) %% 61]" % int(self.rng.integers(61))]
        return pick(self.rng, choices + loops)

    def value(self, loops):
        a, b = self.atom(loops), self.atom(loops)
        k = int(self.rng.integers(1, 9))
        forms = ["(%s + %s) %% 197" % (a, b), "(%s - %s) %% 101" % (a, b), "(%s * %s) // 200 %% 193" % (a, b), "min(%s, %s)" % (a, b),
                 "max(%s, -(%s))" % (a, b), "%s // %d" % (a, k), "(%s) %% %d" % (a, k), "abs(%s)" % a,
                 "(%s if %s else %s)" % (a, self.test(loops), b), "(%s ^ %s) %% 128" % (a, b)]
        return pick(self.rng, forms)

    def test(self, loops):
        a, b = self.atom(loops), self.atom(loops)
        simple = "%s %s %s" % (a, pick(self.rng, ["<", "<=", ">", ">=", "==", "!="]), b)
        return pick(self.rng, [simple, simple, "%s %% 3 == %d" % (a, int(self.rng.integers(3))),
                               "(%s and %s > %s)" % (simple, b, a), "not %s" % simple, "%s < %s + 5 <= 90" % (a, b)])

    def block(self, indent, depth, loops, in_loop):
        for _ in range(int(self.rng.integers(1, 4))):
            self.statement(indent, depth, loops, in_loop)

    def put(self, indent, text):
        self.lines.append("    " * indent + text)

    def statement(self, indent, depth, loops, in_loop):
        kinds = ["assign"] * 4 + (["if", "for", "while"] * 2 if depth < 3 else []) + (["jump"] if in_loop else []) + ["leave"] * (depth > 0)
        makers = {"assign": self.assign, "if": self.branch, "for": self.loop, "while": self.whiles, "jump": self.jump, "leave": self.leave}
        makers[pick(self.rng, kinds)](indent, depth, loops, in_loop)

    def assign(self, indent, depth, loops, in_loop):
        name = pick(self.rng, NAMES)
        form = pick(self.rng, ["%s = %s", "%s = %s", "%s = (%s)"])
        self.put(indent, form % (name, self.value(loops)))
        if self.rng.integers(4) == 0:
            self.put(indent, "%s += %d" % (name, int(self.rng.integers(-3, 4))))
            self.put(indent, "%s = %s %% 199" % (name, name))

    def leave(self, indent, depth, loops, in_loop):
        if self.rng.integers(3) == 0:
            self.put(indent, "if %s:" % self.test(loops))
            self.put(indent + 1, "return")
        else:
            self.assign(indent, depth, loops, in_loop)

    def jump(self, indent, depth, loops, in_loop):
        self.put(indent, "if %s:" % self.test(loops))
        self.put(indent + 1, pick(self.rng, ["break", "continue"]))

    def branch(self, indent, depth, loops, in_loop):
        self.put(indent, "if %s:" % self.test(loops))
        self.block(indent + 1, depth + 1, loops, in_loop)
        if self.rng.integers(3) == 0:
            self.put(indent, "elif %s:" % self.test(loops))
            self.block(indent + 1, depth + 1, loops, in_loop)
        if self.rng.integers(2):
            self.put(indent, "else:")
            self.block(indent + 1, depth + 1, loops, in_loop)

    def loop(self, indent, depth, loops, in_loop):
        name = "ijk"[depth]
        bound = pick(self.rng, [str(int(self.rng.integers(0, 5))), "abs(%s) %% 4" % self.atom(loops), "N %% %d" % int(self.rng.integers(2, 5))])
        heads = ["range(%s)" % bound, "serial(%s)" % bound, "range(%d, %s, %d)" % (int(self.rng.integers(-2, 2)), bound, int(self.rng.integers(1, 3))),
                 "range(%s, -2, -1)" % bound, "unroll(%d)" % int(self.rng.integers(1, 4))]
        self.put(indent, "for %s in %s:" % (name, pick(self.rng, heads)))
        self.block(indent + 1, depth + 1, loops + [name], True)

    def whiles(self, indent, depth, loops, in_loop):
        name = "n%d" % self.counters
        self.counters += 1
        self.put(indent, "%s = 0" % name)
        if self.rng.integers(3) == 0:
            self.put(indent, "while True:")
            self.put(indent + 1, "if %s >= %d or %s:" % (name, int(self.rng.integers(1, 5)), self.test(loops)))
            self.put(indent + 2, "break")
        else:
            self.put(indent, "while %s < %d and (%s):" % (name, int(self.rng.integers(1, 5)), self.test(loops + [name])))
        self.put(indent + 1, "%s += 1" % name)
        self.block(indent + 1, depth + 1, loops + [name], True)


def reference(lines, a, extent):
    """What the program leaves in C, thread by thread."""
    text = "def run(A, C, N, t):\n    x, y, z = A[t], t, 3\n" + "\n".join("    " + line for line in lines) + "\n    C[t] = x * 3 + y - z\n"
    scope = {"serial": range, "unroll": range, "range": range, "min": min, "max": max, "abs": abs}
    exec(compile(text, "chance", "exec"), scope)
    c = untouched("i32", (extent,))  # where the program returns early, nothing is stored
    for t in range(extent):
        scope["run"](a, c, extent, t)
    return c


def control(rng):
    """C[t] = what a program with loops and jumps makes of A."""
    kernel = Kernel()
    kernel.threads = int(pick(rng, [32, 64, 96]))
    extent = int(rng.integers(1, 3 * kernel.threads))
    writer = Writer(rng)
    writer.block(0, 0, [], False)
    writer.block(0, 0, [], False)
    a = rng.integers(-20, 21, 61 + extent).astype(np.int32)[:max(extent, 61)]
    kernel.tensor("A", ["M"], "i32")
    kernel.tensor("C", ["N"], "i32")
    kernel.inputs["A"] = a
    kernel.want["C"] = reference(writer.lines, [int(v) for v in a], extent)
    kernel.grid = "ceildiv(N, %d)" % kernel.threads
    whiles = ["n%d = alloc_var(int32, init=0)" % i for i in range(writer.counters)]
    idle = pick(rng, [["if t >= N:", "    return"], []])
    body = ["x = alloc_var(int32, init=A[t])", "y = alloc_var(int32, init=t)", "z = alloc_var(int32, init=3)"] + whiles + writer.lines
    body.append("C[t] = x * 3 + y - z")
    if not idle:
        body = ["if t < N:"] + ["    " + line for line in body]
    kernel.body = ["t = bx * %d + get_thread_binding()" % kernel.threads] + idle + body
    return kernel
