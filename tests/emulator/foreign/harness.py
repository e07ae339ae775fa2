"""Cases of foreign kernels: what a kernel is given and what it must return.

A case is a function decorated with @case; it gets a Call, adds the kernel's parameters in order and says what the outputs must
hold. Expectations are numpy computations that share nothing with the emulator. CASES lists them in the order of definition.
"""
import numpy as np

CASES = []
NAMES = {'u1': 'u8', 'u2': 'u16', 'u4': 'u32', 'u8': 'u64', 'i1': 'i8', 'i2': 'i16', 'i4': 'i32', 'i8': 'i64', 'f2': 'f16', 'f4': 'f32', 'f8': 'f64'}


class Case:
    def __init__(self, function, ptx, entry, options):
        self.function, self.ptx, self.entry, self.options = function, ptx, entry, options
        self.name = f'{ptx.split("/")[-1]}:{options.get("name", function.__name__)}'
        self.arch = 100 if 'sm100' in ptx else 90


def case(ptx, entry=None, **options):
    """options: grid, block, cluster ('X,Y,Z'), shared, fails (text that must be in the error), check (a --check list), slow."""
    files = [ptx] if isinstance(ptx, str) else ptx

    def add(function):
        for file in files:
            CASES.append(Case(function, file, entry or function.__name__, options))
        return function
    return add


class Call:
    """Collects one launch: arguments as tile-emu takes them, arrays to be written, and expectations."""

    def __init__(self):
        self.args, self.inputs, self.wants, self.stdout, self.options = [], {}, [], None, {}

    def declare(self, name, array):
        self.inputs[name] = np.ascontiguousarray(array)
        return f'in:{name}={{dir}}/{name}.npy'

    def input(self, name, array):
        """A pointer to an array."""
        self.args.append(self.declare(name, array))
        return array

    def tma(self, name, array, box, dtype, swizzle=0, **more):
        """A tensor map over a read-only array; box has the outermost dimension first."""
        text = f'tma:{name},dtype={dtype},box={"x".join(map(str, box))},swizzle={swizzle}'
        text += ''.join(f',{k}={v}' for k, v in more.items())
        if array is not None:
            text = self.declare(name, array) + ';' + text
        self.args.append(text)
        return array

    def out(self, name, want, tol=None, atol=1e-30, tma=None, decode=None):
        """An output, bit for bit or within rtol `tol` and atol, of decode(codes) if given. With `tma` (a dict for tma()) only its tensor
        map is passed."""
        want = np.ascontiguousarray(want)
        self.wants.append((name, want, tol, atol, decode))
        text = f'out:{name}={{dir}}/{name}.out.npy:{NAMES[want.dtype.str[1:]]}:' + 'x'.join(map(str, want.shape))
        self._add(text, name, tma)

    def inout(self, name, start, want, tol=None, atol=1e-30, tma=None):
        """An array that the kernel changes in place."""
        self.inputs[name] = np.ascontiguousarray(start)
        self.wants.append((name, np.ascontiguousarray(want), tol, atol, None))
        self._add(f'inout:{name}={{dir}}/{name}.npy', name, tma)

    def _add(self, text, name, tma):
        if tma is not None:
            self.tma(name, None, **tma)
            text += ';' + self.args.pop()
        self.args.append(text)

    def scalar(self, kind, value):
        self.args.append(f'{kind}:{value}')

    def null(self):
        self.args.append('null')


def bits(x):
    return x.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[x.dtype.itemsize])


def difference(name, got, want, tol, atol, decode=None):
    if got.size != want.size or got.dtype.itemsize != want.dtype.itemsize:
        return f'{name}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}'
    got = np.ascontiguousarray(got).view(want.dtype).reshape(want.shape)
    if decode:
        got, want = decode(got), decode(want)
    if tol is None:
        bad = bits(got) != bits(want)
    else:
        with np.errstate(all='ignore'):
            g, w = got.astype(np.float64), want.astype(np.float64)
            bad = ~(np.abs(g - w) <= tol * np.abs(w) + atol) & ~(np.isnan(g) & np.isnan(w)) & ~(g == w)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    rows = sorted({int(i[0]) for i in np.argwhere(bad)})
    show = (lambda x: hex(int(x))) if want.dtype.kind == 'u' else repr
    return f'{name}: {int(bad.sum())} of {bad.size} wrong, first at {at}: got {show(got[at])}, want {show(want[at])}' + (f'; rows {rows[:20]}' if want.ndim > 1 else '')


# ---- number formats

def to_bf16(x):
    """Nearest bf16 as uint16, ties to even; an array or a number."""
    x = np.asarray(x, np.float32)
    u = np.atleast_1d(x).view(np.uint32).astype(np.int64)
    rounded = np.where(np.isnan(np.atleast_1d(x)), 0x7fff, (u + 0x7fff + (u >> 16 & 1)) >> 16).astype(np.uint16)
    return rounded.reshape(x.shape)[()]


def from_bf16(x):
    x = np.asarray(x)
    return (np.atleast_1d(x).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(x.shape)[()]


def decode(code, exponent_bits, mantissa_bits):
    """Finite values of a small signed float whose sign is the bit above exponent and mantissa."""
    width = exponent_bits + mantissa_bits
    bias = (1 << (exponent_bits - 1)) - 1
    code = np.asarray(code).astype(np.int64)
    e, m = (code >> mantissa_bits) & ((1 << exponent_bits) - 1), code & ((1 << mantissa_bits) - 1)
    value = np.where(e == 0, m * 2.0 ** (1 - bias - mantissa_bits), (1 + m / 2.0 ** mantissa_bits) * 2.0 ** (e - bias))
    return np.where(code >> width & 1, -value, value)


def e4m3(code):
    return decode(code, 4, 3)


def e5m2(code):
    return decode(code, 5, 2)


def e2m1(code):
    return decode(code, 2, 1)


def rng(seed=1):
    return np.random.default_rng(seed)


def small_ints(shape, low=-4, high=5, seed=1):
    """Integers as floats: their products and sums are exact in every MMA, whatever its order."""
    return rng(seed).integers(low, high, shape).astype(np.float32)
