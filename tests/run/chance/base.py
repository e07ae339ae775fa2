"""What random kernels are made of: their text and inputs, choices, element types with the language's rules restated, expressions."""
import numpy as np

import elementwise as types
from elementwise import hold, number
from run_case import exactly

SPELLING = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "u32": "uint32", "i8": "int8", "u8": "uint8"}
DTYPES = list(SPELLING)
SPELLING.update(e4m3="float8_e4m3", e5m2="float8_e5m2")
BITS = {"f32": 32, "f16": 16, "bf16": 16, "i32": 32, "u32": 32, "i8": 8, "u8": 8, "bool": 8}
EXTENTS = [1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 65, 127, 129]


class Kernel:
    """The text of a kernel, its inputs and what it must give."""
    def __init__(self):
        self.parameters, self.grid, self.threads, self.body = [], "1", 128, []
        self.inputs, self.want, self.blocks = {}, {}, "bx"
        self.dims, self.options = {}, []  # names of sizes by tensor; options of tilec
        self.arch, self.sms = "sm_100a", None  # the target, and how many SMs the emulated device has
        self.random = None  # inputs of random numbers, C as it should be, and how far each element may be off

    def text(self):
        lines = ["@kernel", "def chance(%s):" % ", ".join(self.parameters),
                 "    with Kernel(%s, threads=%d) as %s:" % (self.grid, self.threads, self.blocks)]
        return "\n".join(lines + ["        " + line for line in self.body]) + "\n"

    def fix_sizes(self, rng):
        """Some kernels are compiled for sizes that are known."""
        sizes = {d: n for name, array in {**self.inputs, **self.want}.items() for d, n in zip(self.dims[name], array.shape)}
        level = int(rng.integers(3))
        chosen = [d for d in sizes if level == 2 or (level == 1 and rng.integers(2))]
        self.options = ["-D%s=%d" % (d, sizes[d]) for d in chosen]

    def approximate(self, rng, dtypes, result, dtype):
        """Random numbers for two operands, beside the whole ones. `result` is linear in their product."""
        inputs = {name: hold(held, rng.standard_normal(self.inputs[name].shape).astype(np.float32)) for name, held in dtypes.items()}
        x, y = (number(held, inputs[name]).astype(np.float64) for name, held in dtypes.items())
        want, size = result(x, y), np.abs(result(np.abs(x), np.abs(y)))
        unit = {"f32": 2.0 ** -20, "bf16": 2.0 ** -8, "f16": 2.0 ** -10}[dtype]
        step = 2.0 ** -16 if dtype == "f32" or dtype == "bf16" else 2.0 ** -9  # f16 may also be what is accumulated in
        self.random = (inputs, want, unit * np.abs(want) + step * size + 1e-6)

    def tensor(self, name, dims, dtype):
        self.dims[name] = dims
        self.parameters.append("%s: Tensor[(%s,), %s]" % (name, ", ".join(map(str, dims)), SPELLING[dtype]))


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def whole_numbers(rng, dtype, shape, reach=9):
    return exactly(dtype, rng.integers(0 if dtype in ("u8", "u32") else -reach, reach + 1, shape))


# ---- element types: the language's rules (docs/language.md), restated

def promote(a, b):
    floats = [d for d in (a, b) if d in types.FLOATS]
    if a == b:
        return a
    if len(floats) == 1:
        return floats[0]
    if BITS[a] != BITS[b] and not (len(floats) == 0 and "bool" in (a, b)):
        return a if BITS[a] > BITS[b] else b
    if len(floats) == 2:
        return "f32"
    if "bool" in (a, b):
        return b if a == "bool" else a
    return a if a[0] == "u" else b


def as_type(value, target):
    source, array = value
    return (target, array if source == target else types.convert(source, target)(array.reshape(-1)).reshape(array.shape))


class Elements:
    """Expressions over the elements of arrays: text, and the value that numpy gives."""
    def __init__(self, rng, leaves):
        self.rng, self.leaves = rng, leaves  # leaves: (text, (dtype, array))

    def leaf(self):
        return pick(self.rng, self.leaves)

    def arithmetic(self, depth):
        (x, a), (y, b) = self.expression(depth - 1), self.expression(depth - 1)
        dtype = promote(a[0], b[0])
        dtype = "i32" if dtype == "bool" else dtype
        op = pick(self.rng, ["+", "-", "*", "min", "max"])
        p, q = as_type(a, dtype)[1], as_type(b, dtype)[1]
        name = {"+": "add", "-": "sub", "*": "mul"}.get(op, op)
        rule = types.float_binary(name, dtype) if dtype in types.FLOATS else types.int_binary(name, dtype)
        value = rule(p.reshape(-1), q.reshape(-1)).reshape(p.shape)
        return ("%s(%s, %s)" % (op, x, y) if op in ("min", "max") else "(%s %s %s)" % (x, op, y)), (dtype, value)

    def constant(self, depth):
        x, (dtype, array) = self.expression(depth - 1)
        if dtype == "bool":
            return x, (dtype, array)
        op, k = pick(self.rng, ["+", "-", "*", "//", "%"]), int(self.rng.integers(1, 8))
        if dtype in types.FLOATS:
            op = pick(self.rng, ["+", "-", "*"])
            value = types.float_binary({"+": "add", "-": "sub", "*": "mul"}[op], dtype)(array, exactly(dtype, np.full(array.shape, k)))
        else:
            name = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "floormod"}[op]
            value = types.int_binary(name, dtype)(array.reshape(-1), np.full(array.size, k)).reshape(array.shape)
        return "(%s %s %d)" % (x, op, k), (dtype, value)

    def cast(self, depth):
        x, value = self.expression(depth - 1)
        dtype = pick(self.rng, DTYPES)
        form = pick(self.rng, ["cast(%s, %s)", "(%s).astype(%s)"])
        return form % (x, SPELLING[dtype]), as_type(value, dtype)

    def compare(self, depth):
        (x, a), (y, b) = self.expression(depth - 1), self.expression(depth - 1)
        dtype = promote(a[0], b[0])
        dtype = "i32" if dtype == "bool" else dtype
        p, q = (number(dtype, as_type(v, dtype)[1]) for v in (a, b))
        op = pick(self.rng, ["<", "<=", ">", ">=", "==", "!="])
        rule = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}[op]
        return "(%s %s %s)" % (x, op, y), ("bool", rule(p, q).astype(np.uint8))

    def choose(self, depth):
        (c, flag), (x, a), (y, b) = self.compare(depth - 1), self.expression(depth - 1), self.expression(depth - 1)
        dtype = promote(a[0], b[0])
        value = np.where(flag[1] != 0, as_type(a, dtype)[1], as_type(b, dtype)[1])
        form = pick(self.rng, ["if_then_else(%s, %s, %s)" % (c, x, y), "(%s if %s else %s)" % (x, c, y)])
        return form, (dtype, value)

    def negated(self, depth):
        x, (dtype, array) = self.expression(depth - 1)
        if dtype == "bool":
            return x, (dtype, array)
        if dtype in types.FLOATS:
            return "(-%s)" % x, (dtype, hold(dtype, -number(dtype, array)))
        return "(-%s)" % x, (dtype, types.wrap(dtype, [-int(v) for v in array.reshape(-1)]).reshape(array.shape))

    def expression(self, depth):
        if depth <= 0:
            return self.leaf()
        rules = [self.arithmetic, self.arithmetic, self.constant, self.cast, self.compare, self.choose, self.negated]
        return pick(self.rng, rules)(depth)


def shifted(array, at):
    """What a read of array[index + at] gives at every index: zeros outside."""
    out = np.zeros_like(array)
    source = tuple(slice(max(s, 0), max(min(n, n + s), 0)) for s, n in zip(at, array.shape))
    target = tuple(slice(max(-s, 0), max(min(n, n - s), 0)) for s, n in zip(at, array.shape))
    if all(s.start < s.stop for s in source):
        out[target] = array[source]
    return out


def tiling(rng, kernel, shape):
    """Tile sizes, and the grid that covers `shape`; the first dimension of four is a loop's. Gives (tile, starts, loop)."""
    rank = len(shape)
    dims = ["MNKL"[i] for i in range(rank)]
    tile = [int(pick(rng, [1, 2, 3, 4, 8, 16, 20, 32, 33, 64])) for _ in shape]
    while np.prod(tile) > 4096:
        tile[int(np.argmax(tile))] //= 2
    gridded = list(range(rank))[-3:]
    names = {d: "b" + "xyz"[rank - 1 - d] for d in gridded}
    kernel.grid = ", ".join("ceildiv(%s, %d)" % (dims[d], tile[d]) for d in reversed(gridded))
    kernel.blocks = names[rank - 1] if rank == 1 else "(%s)" % ", ".join(names[d] for d in reversed(gridded))
    starts = ["%s * %d" % (names[d], tile[d]) if d in names else "o * %d" % tile[d] for d in range(rank)]
    loop = "for o in %s(ceildiv(M, %d)):" % (pick(rng, ["serial", "range"]), tile[0]) if rank == 4 else None
    return dims, tile, starts, loop


def random_shape(rng, limit=30000):
    rank = pick(rng, [1, 2, 2, 2, 3, 3, 4])
    shape = [int(pick(rng, EXTENTS if rank < 4 else EXTENTS[:9])) for _ in range(rank)]
    while np.prod(shape) > limit:
        shape[int(np.argmax(shape))] //= 2
    return shape
