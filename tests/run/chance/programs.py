"""Programs of several statements, loops and branches over a few tiles in all spaces."""
import numpy as np

from chance.base import SPELLING, Elements, Kernel, as_type, pick, whole_numbers
from elementwise import number
from run_case import exactly


class Buffer:
    def __init__(self, name, space, dtype):
        self.name, self.space, self.dtype = name, space, dtype


class Program:
    """Statements over tiles of one shape, and what they leave in each tile of every block."""
    def __init__(self, rng, kernel, blocks):
        self.rng, self.blocks, self.vectors = rng, blocks, 0
        kernel.threads = int(pick(rng, [32, 64, 128, 128, 128, 256, 512]))
        self.m, self.n = pick(rng, [(128, 64), (128, 64), (128, 32), (64, 64), (16, 16), (33, 7), (1, 64)])
        small_block = self.m * self.n // kernel.threads > 64
        self.reduces = not small_block  # through registers
        spaces = ["shared", "shared", "fragment"] if not small_block else ["shared"]
        if kernel.threads % 128 == 0 and self.m == 128:
            spaces += ["tmem", "fragment"]
        self.buffers, fragments = [], 0
        if (self.m, self.n) == (128, 64) and "tmem" in spaces:
            self.buffers = [Buffer("x", "shared", pick(rng, ["bf16", "f16"])), Buffer("y", "tmem", "f32")]
        for i in range(len(self.buffers), len(self.buffers) + int(rng.integers(2, 5))):
            space = pick(rng, spaces)
            fragments += space == "fragment"
            space = "shared" if space == "fragment" and fragments * self.m * self.n > 100 * kernel.threads else space
            dtype = "f32" if space == "tmem" else pick(rng, ["f32", "bf16", "bf16", "f16", "i32", "i8"])
            self.buffers.append(Buffer("xyzuvw"[i], space, dtype))

    def start(self, kernel):
        """Each tile holds its part of an input; gives the lines and the state."""
        lines, state = [], []
        for b in self.buffers:
            lines.append("%s = alloc_%s((%d, %d), %s)" % (b.name, b.space, self.m, self.n, SPELLING[b.dtype]))
            name = b.name.upper()
            kernel.tensor(name, ["M", "N"], b.dtype)
            kernel.inputs[name] = whole_numbers(self.rng, b.dtype, [self.m * self.blocks, self.n], 4)
            state.append(kernel.inputs[name].reshape(self.blocks, self.m, self.n))
        place = "%s[bx * %d, 0]"
        lines += ["copy(%s, %s)" % (place % (b.name.upper(), self.m), b.name) for b in self.buffers]
        return lines, state

    def element(self, state, avoid):
        """An element of some tile at the loop's place or, in shared memory, at another one."""
        which = [i for i, b in enumerate(self.buffers) if b.space != "tmem"]
        if not which:
            return "3", ("i32", np.full(state[0].shape, 3, np.int32))
        i = pick(self.rng, which)
        b, value = self.buffers[i], state[i]
        kind = self.rng.integers(4) if b.space == "shared" and i != avoid else 3
        if kind == 0:
            by = int(self.rng.integers(1, self.m + 1))
            return "%s[(i + %d) %% %d, j]" % (b.name, by, self.m), (b.dtype, np.roll(value, -by, axis=1))
        if kind == 1:
            return "%s[%d - i, j]" % (b.name, self.m - 1), (b.dtype, value[:, ::-1])
        if kind == 2 and self.m == self.n:
            return "%s[j, i]" % b.name, (b.dtype, value.swapaxes(1, 2))
        return "%s[i, j]" % b.name, (b.dtype, value)

    def statement(self, state, depth):
        """Lines, and a function that takes the state (and the rounds of the loops around) to the next."""
        kinds = ["copy", "copy", "fill", "elements", "elements", "elements", "part", "reduction"]
        kinds += ["loop", "branch"] if depth < 2 else []
        kinds += ["gemm"] * 4 if (self.m, self.n) == (128, 64) else []
        return getattr(self, pick(self.rng, kinds))(state, depth)

    def copy(self, state, depth):
        x, y = (int(self.rng.integers(len(self.buffers))) for _ in range(2))
        if x == y:
            return self.fill(state, depth)
        source, target = self.buffers[x], self.buffers[y]
        step = lambda s, r: replaced(s, y, as_type((source.dtype, s[x]), target.dtype)[1])
        return ["copy(%s, %s)" % (source.name, target.name)], step

    def fill(self, state, depth):
        y, value = int(self.rng.integers(len(self.buffers))), int(self.rng.integers(-3, 4))
        target = self.buffers[y]
        step = lambda s, r: replaced(s, y, exactly(target.dtype, np.full(s[y].shape, value)))
        return ["fill(%s, %d)" % (target.name, value)], step

    def part(self, state, depth):
        """A copy of some rows, between shared tiles."""
        which = [i for i, b in enumerate(self.buffers) if b.space == "shared"]
        if len(which) < 2 or self.m < 4:
            return self.copy(state, depth)
        x, y = (int(i) for i in self.rng.permutation(which)[:2])
        rows = int(self.rng.integers(1, self.m // 2 + 1))
        a, b = (int(self.rng.integers(0, self.m - rows + 1)) for _ in range(2))
        source, target = self.buffers[x], self.buffers[y]

        def step(s, r):
            value = s[y].copy()
            value[:, b:b + rows] = as_type((source.dtype, s[x]), target.dtype)[1][:, a:a + rows]
            return replaced(s, y, value)
        return ["copy(%s[%d:%d, :], %s[%d:%d, :])" % (source.name, a, a + rows, target.name, b, b + rows)], step

    def elements(self, state, depth):
        which = [i for i, b in enumerate(self.buffers) if b.space != "tmem"]
        if not which:
            return self.copy(state, depth)
        y = pick(self.rng, which)
        target, seed = self.buffers[y], int(self.rng.integers(1 << 30))

        def make(s):  # the same choices for every state
            outer, self.rng = self.rng, np.random.default_rng(seed)
            leaves = [self.element(s, y) for _ in range(2)]
            text, value = Elements(self.rng, leaves).expression(int(self.rng.integers(0, 3)))
            self.rng = outer
            value = as_type(value, target.dtype)[1]
            low, high = (0, 8) if target.dtype[0] == "u" else (-8, 8)
            bound = number(target.dtype, value)
            return "max(min(cast(%s, %s), %d), %d)" % (text, SPELLING[target.dtype], high, low), exactly(
                target.dtype, np.clip(np.where(np.isnan(bound), 8, bound), low, high))
        text, _ = make(state)
        lines = ["for i, j in Parallel(%d, %d):" % (self.m, self.n), "    %s[i, j] = %s" % (target.name, text)]
        return lines, lambda s, r: replaced(s, y, make(s)[1])

    def gemm(self, state, depth):
        operands = [i for i, b in enumerate(self.buffers) if b.space == "shared" and b.dtype in ("bf16", "f16")]
        sums = [i for i, b in enumerate(self.buffers) if b.space == "tmem"]
        if not operands or not sums:
            return self.elements(state, depth)
        x, c = pick(self.rng, operands), pick(self.rng, sums)
        y = pick(self.rng, [i for i in operands if self.buffers[i].dtype == self.buffers[x].dtype])
        a, b, acc = self.buffers[x], self.buffers[y], self.buffers[c]
        clear, start = bool(self.rng.integers(2)), int(pick(self.rng, [0, 8, 64]))
        limit = ["for i, j in Parallel(128, 64):", "    %s[i, j] = max(min(%s[i, j], 4), -4)"]
        lines = [line.replace("%s", o.name) for o in ([a, b] if x != y else [a]) for line in limit]
        lines.append("gemm(%s, %s[%d:%d, :], %s, transpose_B=True%s)" % (
            a.name, b.name, start, start + 64, acc.name, ", clear_accum=True" if clear else ""))

        def step(s, r):
            s = list(s)
            for i in {x, y}:
                values = number(self.buffers[i].dtype, s[i])
                s[i] = exactly(self.buffers[i].dtype, np.clip(values, -4, 4))
            p, q = (number(self.buffers[i].dtype, s[i]).astype(np.float64) for i in (x, y))
            total = p @ q[:, start:start + 64].swapaxes(1, 2) + (0 if clear else s[c].astype(np.float64))
            s[c] = total.astype(np.float32)
            return s
        return lines, step

    def block(self, state, depth):
        steps, lines = [], []
        for _ in range(int(self.rng.integers(1, 4))):
            more, step = self.statement(state, depth)
            lines += ["    " + line for line in more]
            steps.append(step)

        def run(s, r):
            for step in steps:
                s = step(s, r)
            return s
        return lines, run

    def reduction(self, state, depth):
        """A tile less its rows' or columns' extreme."""
        which = [i for i, b in enumerate(self.buffers) if b.space != "tmem"]
        if not which or not self.reduces:
            return self.copy(state, depth)
        y, dim, op = pick(self.rng, which), int(self.rng.integers(2)), pick(self.rng, ["max", "min", "absmax"])
        target = self.buffers[y]
        self.vectors += 1
        name, length, place = "r%d" % self.vectors, (self.n, self.m)[dim], pick(self.rng, ["fragment", "fragment", "shared"])

        def step(s, r):
            value = number(target.dtype, s[y]).astype(np.float64)
            extreme = {"max": value.max, "min": value.min, "absmax": np.abs(value).max}[op](axis=1 + dim, keepdims=True)
            return replaced(s, y, exactly(target.dtype, np.clip(value - extreme, -8, 8)))
        return ["%s = alloc_%s((%d,), %s)" % (name, place, length, SPELLING[target.dtype]), "reduce_%s(%s, %s, dim=%d)" % (op, target.name, name, dim),
                "for i, j in Parallel(%d, %d):" % (self.m, self.n),
                "    %s[i, j] = max(min(%s[i, j] - %s[%s], 8), -8)" % (target.name, target.name, name, "ji"[dim])], step

    def loop(self, state, depth):
        """Perhaps with a round that is left in the middle, or the last."""
        rounds, name = int(self.rng.integers(0, 4)), "kq"[depth]
        lines, run = self.block(state, depth + 1)
        head = pick(self.rng, ["serial(%d)", "range(%d)", "serial(M // %d * %%d)" % (self.m * self.blocks), "Pipelined(%d, num_stages=2)"])
        jump, at, rest = pick(self.rng, [None, None, "break", "continue"]), int(self.rng.integers(3)), None
        if jump:
            more, rest = self.block(state, depth + 1)
            lines = lines + ["    if %s == %d:" % (name, at), "        " + jump] + more

        def step(s, r):
            for k in range(rounds):
                s = run(s, r + [k])
                if jump and k == at:
                    if jump == "break":
                        break
                elif jump:
                    s = rest(s, r + [k])
            return s
        return ["for %s in %s:" % (name, head % rounds)] + lines, step

    def branch(self, state, depth):
        first, run = self.block(state, depth + 1)
        second, otherwise = self.block(state, depth + 1)
        two = self.rng.integers(2) == 0
        value = int(self.rng.integers(2))

        def step(s, r):
            yes, no = run(s, r), otherwise(s, r) if two else s
            taken = (np.arange(self.blocks) == value)[:, None, None]
            return [np.where(taken, a, b) for a, b in zip(yes, no)]
        return ["if bx == %d:" % value] + first + (["else:"] + second if two else []), step


def replaced(state, i, value):
    return state[:i] + [value] + state[i + 1:]


def programs(rng):
    """Statements, loops and branches over a few tiles in all spaces; every tile is written out at the end."""
    kernel, blocks = Kernel(), 2
    program = Program(rng, kernel, blocks)
    body, state = program.start(kernel)
    for _ in range(int(rng.integers(2, 7))):
        lines, step = program.statement(state, 0)
        body += lines
        state = step(state, [])
    for b, value in zip(program.buffers, state):
        out = "OUT_" + b.name.upper()
        kernel.tensor(out, ["M", "N"], b.dtype)
        kernel.want[out] = value.reshape(program.m * blocks, program.n)
        body.append("copy(%s, %s[bx * %d, 0])" % (b.name, out, program.m))
    kernel.grid, kernel.body = str(blocks), body
    return kernel
