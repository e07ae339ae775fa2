"""Copies on every path among global memory, shared memory and fragments, with casts, ragged sizes, slices and ranks 1 to 3.

    copies.py TILE_RUN [NAME-PREFIX…]
Each case is a kernel that moves A to B through the named places; B must equal A converted by numpy, and what the kernel must not
touch must keep its value.
"""
import os
import subprocess
import sys

import numpy as np

import elementwise as types

DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "u32": "uint32", "i8": "int8", "u8": "uint8",
          "e4m3": "float8_e4m3", "e5m2": "float8_e5m2"}


class Case:
    def __init__(self, name, shape, source, target, steps, tile, threads, reference=None):
        self.name, self.shape, self.source, self.target = name, shape, source, target
        self.steps, self.tile, self.threads, self.reference = steps, tile, threads, reference

    def text(self):
        rank = len(self.shape)
        dims = "MNK"[:rank]
        lines = ["@kernel", "def moves(A: Tensor[(%s,), %s], B: Tensor[(%s,), %s]):" %
                 (", ".join(dims), DTYPES[self.source], ", ".join(dims), DTYPES[self.target])]
        blocks = ["ceildiv(%s, %d)" % (d, t) for d, t in zip(dims, self.tile)]
        names = ["i%d" % i for i in range(rank)]
        grid, indices = ", ".join(reversed(blocks)), ", ".join(reversed(names))
        lines.append("    with Kernel(%s, threads=%d) as %s:" % (grid, self.threads, "(%s)" % indices if rank > 1 else indices))
        at = ", ".join("%s * %d" % (n, t) for n, t in zip(names, self.tile))
        lines += ["        " + line.replace("@", at).replace("TILE", str(tuple(self.tile))) for line in self.steps]
        return "\n".join(lines) + "\n"

    def run(self, tile_run):
        with open("moves.tile", "w") as file:
            file.write(self.text())
        count = int(np.prod(self.shape))
        flat = np.resize(types.inputs(self.source, 1), count)
        a = flat.reshape(self.shape)
        np.save("a.npy", a)
        with np.errstate(all="ignore"):
            want = self.reference(a) if self.reference else expected(self.source, self.target, flat).reshape(self.shape)
        done = subprocess.run([tile_run, "moves.tile", "--device", "emu", "--in", "A=a.npy", "--out", "B=b.npy"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return "tile-run ends with %d: %s" % (done.returncode, done.stderr.strip()[:1000])
        got = np.load("b.npy").view(types.NUMPY[self.target])
        x, y = types.number(self.target, got.reshape(-1)), types.number(self.target, want.reshape(-1))
        same = x == y
        if self.target in types.FLOATS:
            same |= np.isnan(x) & np.isnan(y)
        bad = np.flatnonzero(~same)
        if len(bad) == 0:
            return None
        at = tuple(int(i) for i in np.unravel_index(bad[0], self.shape))
        return "%d of %d wrong; first at %s: %s, want %s" % (len(bad), count, at, x[bad[0]], y[bad[0]])


def expected(source, target, array):
    return array if source == target else types.convert(source, target)(array)


def through(source, target):
    """Ways from A to B; the cast happens in different places."""
    s, t = DTYPES[source], DTYPES[target]
    return {
        "shared": ["S = alloc_shared(TILE, %s)" % t, "copy(A[@], S)", "copy(S, B[@])"],
        "shared_first": ["S = alloc_shared(TILE, %s)" % s, "copy(A[@], S)", "copy(S, B[@])"],
        "fragment": ["F = alloc_fragment(TILE, %s)" % s, "copy(A[@], F)", "copy(F, B[@])"],
        "shared_fragment": ["S = alloc_shared(TILE, %s)" % s, "F = alloc_fragment(TILE, %s)" % t, "copy(A[@], S)", "copy(S, F)",
                            "copy(F, B[@])"],
        "fragment_shared": ["F = alloc_fragment(TILE, %s)" % t, "S = alloc_shared(TILE, %s)" % t, "copy(A[@], F)", "copy(F, S)",
                            "copy(S, B[@])"],
        "two_fragments": ["F = alloc_fragment(TILE, %s)" % s, "G = alloc_fragment(TILE, %s)" % t, "copy(A[@], F)", "copy(F, G)",
                          "copy(G, B[@])"],
        "two_shared": ["S = alloc_shared(TILE, %s)" % s, "R = alloc_shared(TILE, %s)" % t, "copy(A[@], S)", "copy(S, R)",
                       "copy(R, B[@])"],
    }


def all_ways():
    for source, target in (("f32", "f32"), ("bf16", "bf16"), ("i8", "i8"), ("f32", "bf16"), ("f16", "f32"), ("i32", "bf16")):
        for way, steps in through(source, target).items():
            for shape, tile, threads in (((100, 72), (32, 32), 64), ((64, 64), (64, 64), 128), ((33, 35), (16, 24), 32)):
                name = "%s_%s_%s_%dx%d" % (way, source, target, *shape)
                yield Case(name, shape, source, target, steps, tile, threads)


def ranks():
    for way in ("shared", "fragment", "fragment_shared"):
        steps = through("f32", "f32")[way]
        for n in (63, 64, 1000, 1):
            yield Case("%s_1d_%d" % (way, n), (n,), "f32", "f32", steps, (256,), 64)
        for n in (1000, 1023):
            yield Case("%s_1d_f16_%d" % (way, n), (n,), "f16", "f16", through("f16", "f16")[way], (256,), 64)
        for shape in ((3, 20, 36), (2, 16, 32), (5, 1, 7)):
            name = "%s_3d_%s" % (way, "x".join(map(str, shape)))
            yield Case(name, shape, "bf16", "bf16", through("bf16", "bf16")[way], (2, 16, 32), 128)


def padded(a):
    return a


def slices():
    # a sub-block of a padded shared tile; the padding is filled before and must still be there after
    steps = ["S = alloc_shared((64, 72), float16)", "fill(S, 5.0)", "copy(A[i0 * 64, i1 * 64], S[:, 0:64])",
             "if i1 == 0:", "    copy(S[:, 64:72], B[i0 * 64, 64])", "copy(S[:, 0:64], B[i0 * 64, 0])"]
    def reference(a):
        want = np.full(a.shape, 5, np.float16)
        want[:, :64] = a[:, :64]
        return want
    case = Case("padded_shared", (64, 72), "f16", "f16", steps, (64, 72), 128, reference)
    yield case
    # columns that do not start on 16 bytes, constant and known only at run time
    steps = ["S = alloc_shared((32, 32), int32)", "copy(A[0, 0], S)", "copy(S, B[0, 1])", "copy(A[0:32, 0:1], B[0:32, 0:1])"]
    def shifted(a):
        want = np.zeros_like(a)
        want[:, 1:33] = a[:, :32]
        want[:, 0] = a[:, 0]
        return want
    yield Case("odd_column", (32, 33), "i32", "i32", steps, (32, 33), 64, shifted)
    # one row at a time, its dimension dropped
    steps = ["S = alloc_shared((64,), float32)", "for r in serial(M):", "    copy(A[r, 0:64], S)", "    copy(S, B[r, 0:64])"]
    yield Case("rows", (7, 64), "f32", "f32", steps, (8, 64), 32)
    # fills of tiles, slices and fragments; a negative number in every lane
    steps = ["S = alloc_shared(TILE, int32)", "F = alloc_fragment(TILE, int32)", "fill(S, -5)", "fill(S[8:16, 0:3], 7)", "copy(S, F)",
             "copy(F, B[@])"]
    def filled(a):
        want = np.full(a.shape, -5, np.int32)
        want[8:16, 0:3] = 7
        return want
    yield Case("fills", (16, 40), "i32", "i32", steps, (16, 40), 64, filled)
    steps = ["F = alloc_fragment(TILE, int8)", "fill(F, -5)", "copy(F, B[@])"]
    yield Case("fill_i8", (33, 35), "i8", "i8", steps, (16, 24), 32, lambda a: np.full_like(a, -5))
    steps = ["clear(B[i0 * 16:i0 * 16 + 16, i1 * 24:i1 * 24 + 24])"]
    yield Case("clear_global", (33, 35), "f32", "f32", steps, (16, 24), 32, np.zeros_like)


def main():
    tile_run, prefixes = sys.argv[1], sys.argv[2:]
    count = wrong = 0
    step = 5 if os.environ.get("TILE_TEST_SMALL") == "1" else 1
    for group in (all_ways, ranks, slices):
        for case in list(group())[::step]:
            if prefixes and not any(case.name.startswith(p) for p in prefixes):
                continue
            count += 1
            problem = case.run(tile_run)
            if problem:
                wrong += 1
                print("%s: %s\n%s" % (case.name, problem, case.text()))
    print("%d kernels, %d wrong" % (count, wrong))
    sys.exit(1 if wrong or not count else 0)


if __name__ == "__main__":
    main()
