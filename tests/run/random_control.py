"""Random control flow against Python, which runs the same text: loops of several kinds in each other, branches, macros, and break,
continue and return wherever they may stand.

    random_control.py TILEC TILE_RUN [FIRST-SEED] [COUNT]

Variables are written x[0], so that in Python they are lists of one number and a macro can set them there, too.
"""
import random
import subprocess
import sys

import numpy as np

N = 48
KERNELS_IN_A_FILE = 8


class Writer:
    """The body of one function; `room` bounds its statements."""

    def __init__(self, rng, seed, room):
        self.rng, self.seed, self.room, self.lines, self.macros = rng, seed, room, [], []

    def number(self, names):
        return self.rng.choice(names + ["x[0]", "y[0]", "A[i]", "A[(x[0] + %d) %% %d]" % (self.rng.randrange(N), N), str(self.rng.randrange(9))])

    def condition(self, names):
        a, b = self.number(names), self.number(names)
        kind = self.rng.randrange(4)
        if kind == 0:
            return "%s %% %d == %d" % (a, self.rng.randrange(2, 5), self.rng.randrange(2))
        if kind == 1:
            return "%s < %s" % (a, b)
        if kind == 2:
            return "%s > %d and %s != %d" % (a, self.rng.randrange(6), b, self.rng.randrange(6))
        return "not %s == %s" % (a, b)

    def add(self, depth, text):
        self.lines.append("    " * depth + text)

    def set_variable(self, depth, names):
        name = self.rng.choice("xy")
        self.add(depth, "%s[0] = (%s[0] * %d + %s) %% 97" % (name, name, self.rng.randrange(1, 4), self.number(names)))

    def bind_name(self, depth, names):
        name = "v%d" % len(self.lines)
        self.add(depth, "%s = %s + %d" % (name, self.number(names), self.rng.randrange(5)))
        names.append(name)

    def jump(self, depth, loops):
        words = ["return"] + (["break", "continue"] * 2 if loops else [])
        self.add(depth, self.rng.choice(words))

    def branch(self, depth, names, loops):
        self.add(depth, "if %s:" % self.condition(names))
        self.block(depth + 1, list(names), loops)
        for _ in range(self.rng.choice([0, 0, 1])):
            self.add(depth, "elif %s:" % self.condition(names))
            self.block(depth + 1, list(names), loops)
        if self.rng.random() < 0.4:
            self.add(depth, "else:")
            self.block(depth + 1, list(names), loops)

    def loop(self, depth, names, loops):
        kind, k = self.rng.randrange(7), "k%d" % len(self.lines)
        if kind == 0:
            self.add(depth, "for %s in range(%s %% 4):" % (k, self.number(names)))
        elif kind == 1:
            self.add(depth, "for %s in serial(%s %% 3, %s %% 6, 1 + %s %% 2):" % (k, self.number(names), self.number(names), self.number(names)))
        elif kind == 2:
            self.add(depth, "for %s in range(%s %% 5, -2, -1 - %s %% 2):" % (k, self.number(names), self.number(names)))
        elif kind == 3:
            self.add(depth, "for %s in [0, 2, 5]:" % k)
        elif kind == 4:
            self.add(depth, "for %s in unroll(3):" % k)
        elif kind == 5:
            self.add(depth, "while n[0] < 150 and n[0] %% 9 != 0 and %s:" % self.condition(names))
            self.add(depth + 1, "n[0] += 1")
        else:
            self.add(depth, "while True:")
            self.add(depth + 1, "n[0] += 1")
            self.add(depth + 1, "if n[0] %% %d == 0 or n[0] > 150:" % self.rng.randrange(3, 8))
            self.add(depth + 2, "break")
        self.block(depth + 1, names + ([k] if kind < 5 else []), loops + 1, fixed=kind == 3)

    def call(self, depth):
        macro = Writer(self.rng, self.seed, 8)
        macro.block(1, [], 0)
        self.macros += macro.macros
        name = "m%d_%d" % (self.seed, self.rng.randrange(10 ** 6))
        self.macros.append("@macro\ndef %s(A, i, x, y, n):\n%s\n" % (name, "\n".join(macro.lines)))
        self.add(depth, "%s(A, i, x, y, n)" % name)

    def block(self, depth, names, loops, fixed=False):
        for _ in range(self.rng.randrange(1, 4)):
            self.room -= 1
            kind = self.rng.random()
            if kind < 0.35 or self.room <= 0 or depth > 6:
                self.set_variable(depth, names)
            elif kind < 0.45 and not fixed:
                self.bind_name(depth, names)
            elif kind < 0.7:
                self.branch(depth, names, loops)
            elif kind < 0.9 and loops < 3:
                self.loop(depth, names, loops)
            elif kind < 0.95:
                self.call(depth)
            else:
                self.set_variable(depth, names)
        if self.rng.random() < (0.35 if depth > 1 else 0.0):
            self.jump(depth, loops)
            if self.rng.random() < 0.2:
                self.set_variable(depth, names)


def program(seed):
    """The text of kernel k<seed>, and the same for Python as a function of A and i that gives the result."""
    writer = Writer(random.Random(seed), seed, 25)
    writer.block(1, [], 0)
    macros = "\n".join(writer.macros)
    macros += "\n@macro\ndef main%d(A, i, x, y, n):\n%s\n" % (seed, "\n".join(writer.lines))
    by_thread = seed % 2
    around = ("        for t in Parallel(32):\n            i = b * 32 + t\n            if i >= %d:\n                continue\n" % N if by_thread
              else "        i = b\n")
    inside = " " * (12 if by_thread else 8)
    kernel = "@kernel\ndef k%d(A: Tensor[(%d,), int32], C: Tensor[(%d,), int32]):\n    with Kernel(%d, threads=32) as b:\n" % (
        seed, N, N, -(-N // 32) if by_thread else N)
    kernel += around + "".join(inside + line + "\n" for line in (
        "x = alloc_var(int32, init=A[i])", "y = alloc_var(int32, init=i)", "n = alloc_var(int32, init=1)",
        "main%d(A, i, x, y, n)" % seed, "C[i] = x[0] * 100 + y[0] + n[0] * 10000"))
    return macros, kernel


def in_python(macros, seed, A):
    scope = {"macro": lambda f: f, "serial": range, "unroll": range}
    exec(macros, scope)
    result = []
    for i in range(N):
        x, y, n = [int(A[i])], [i], [1]
        scope["main%d" % seed]([int(a) for a in A], i, x, y, n)
        result.append(x[0] * 100 + y[0] + n[0] * 10000)
    return np.array(result, np.int32)


def check(tilec, tile_run, seeds):
    """How many of these programs are wrong."""
    programs = {seed: program(seed) for seed in seeds}
    with open("control.tile", "w") as file:
        file.write("\n".join(macros + "\n" + kernel for macros, kernel in programs.values()))
    done = subprocess.run([tilec, "control.tile", "-o", "control.ptx"], capture_output=True, text=True)
    if done.returncode:
        print("tilec ends with %d on seeds %s:\n%s" % (done.returncode, list(seeds), done.stderr[:3000]))
        return len(programs)
    wrong = 0
    for seed, (macros, _) in programs.items():
        A = np.random.default_rng(seed).integers(0, 20, N).astype(np.int32)
        np.save("A.npy", A)
        np.save("C.npy", np.full(N, -1, np.int32))
        run = subprocess.run([tile_run, "control.ptx", "--device", "emu", "--kernel", "k%d" % seed, "--check", "all", "--in", "A=A.npy", "--in",
                              "C=C.npy", "--out", "C=out.npy"], capture_output=True, text=True, timeout=300)
        if run.returncode:
            print("seed %d: tile-run ends with %d: %s" % (seed, run.returncode, run.stderr[-800:]))
            wrong += 1
            continue
        want, got = in_python(macros, seed, A), np.load("out.npy")
        if not np.array_equal(want, got):
            at = int(np.argmax(want != got))
            print("seed %d: element %d is %d, want %d" % (seed, at, got[at], want[at]))
            wrong += 1
    return wrong


def main():
    tilec, tile_run = sys.argv[1:3]
    first, count = int(sys.argv[3]) if len(sys.argv) > 3 else 1, int(sys.argv[4]) if len(sys.argv) > 4 else 40
    wrong = 0
    for start in range(first, first + count, KERNELS_IN_A_FILE):
        wrong += check(tilec, tile_run, range(start, min(start + KERNELS_IN_A_FILE, first + count)))
    print("%d programs, %d wrong" % (count, wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
