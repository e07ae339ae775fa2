"""Runs a .tile program in the emulator, in every order, against the reference that stands in its own comments.

    run_case.py TILEC TILE_RUN PROGRAM [ORDER…] [--arch NAME]
Lines of PROGRAM that begin with `#=` are Python. They call case(), once for each launch that must be right:
    case(A=array, want={"B": array})                     B is exact; NaN fits any NaN
    case(A=array, want={"B": array}, tolerance=(rtol, atol), define={"block": 64}, kernel="name")
    case(A=array, pitch={"A": 72}, want=…)               rows of A are 72 elements apart, and nothing is written between them
    case(…, sms=4)                                       the emulated device has so many SMs
    case(…, only="name")                                 compiles and runs that kernel of the file alone
    case(…, options=["-O0"])                             compiles with these options
    case(A=array, fails="text of the fault")             the launch must end with a fault that says this; sync-check is left out
The lines see the target's name as `arch`. A result starts out as garbage, which untouched(dtype, shape) also gives to the reference. bf16 is held as its bits, in uint16.
"""
import os
import re
import subprocess
import sys

import numpy as np

import elementwise as types
from elementwise import convert, hold, to_bf16

SMALL = os.environ.get("TILE_TEST_SMALL") == "1"  # under sanitizers: fewer cases, one order
ORDERS = ["random:1"] if SMALL else ["fair", "lazy", "random:1"]
CHECKS = "all"
TARGET = "sm_100a"
TYPE_OF = {np.dtype(d): name for name, d in types.NUMPY.items() if name not in ("bool", "e4m3", "e5m2")}


def dtype_of(array):
    return TYPE_OF[array.dtype]


def as_f64(array):
    return types.number(dtype_of(array), array).astype(np.float64)


def untouched(dtype, shape):
    """What a result holds before the launch: no number that a kernel writes by chance."""
    size = np.dtype(types.NUMPY[dtype]).itemsize
    count = int(np.prod(shape))
    return np.resize(np.array([0xA7, 0xA5, 0xA5, 0xFF][4 - size:], np.uint8), count * size).view(types.NUMPY[dtype]).reshape(shape)


def small(dtype, shape, seed=1, low=-4, high=5):
    """Small whole numbers, on which sums and products are exact."""
    low = 0 if dtype in ("u8", "u32") else low
    return exactly(dtype, np.random.default_rng(seed).integers(low, high, shape))


def exactly(dtype, values):
    if dtype in types.FLOATS:
        return hold(dtype, np.asarray(values, np.float32))
    return np.asarray(values).astype(types.NUMPY[dtype])


def few(cases):
    """All of them; a handful where time is short."""
    cases = list(cases)
    return cases[::len(cases) // 4 or 1] if SMALL else cases


def random_floats(dtype, shape, seed=1):
    return hold(dtype, np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32))


class Program:
    form = ".cubin"  # what is compiled to; PTX where there is no ptxas

    def __init__(self, tilec, tile_run, path, orders, arch=TARGET):
        self.tilec, self.tile_run, self.path, self.orders, self.arch = tilec, tile_run, path, orders, arch
        self.binaries, self.count, self.wrong = {}, 0, 0

    def compile(self, define, only, broken, options):
        """The binary for these -D options."""
        options = (["--arch", self.arch] if "--arch" not in options else []) + list(options) + ["-D%s=%s" % item for item in sorted(define.items())]
        options += ["--kernel", only] if only else []
        options += ["--no-sync-check"] if broken else []
        key = " ".join(options)
        if key not in self.binaries:
            output = "case%d%s" % (len(self.binaries), self.form)
            done = subprocess.run([self.tilec, self.path, "-o", output] + options, capture_output=True, text=True)
            if done.returncode == 2:
                output = output.replace(".cubin", ".ptx")
                done = subprocess.run([self.tilec, self.path, "-o", output] + options, capture_output=True, text=True)
            if done.returncode != 0:
                print("tilec ends with %d (%s):\n%s" % (done.returncode, key, done.stderr))
                sys.exit(1)
            self.binaries[key] = output
        return self.binaries[key]

    def case(self, want=None, tolerance=None, define=None, kernel=None, only=None, fails=None, sizes=None, pitch=None, sms=None, options=(),
             **inputs):
        want = want or {}
        binary = self.compile(define or {}, only, fails, options)
        command = [self.tile_run, binary, "--device", "emu", "--check", CHECKS]
        command += ["--kernel", kernel] if kernel else []
        command += ["-D%s=%s" % item for item in (sizes or {}).items()]
        for item in (pitch or {}).items():
            command += ["--pitch", "%s=%d" % item]
        command += ["--sms", str(sms)] if sms else []
        for name, array in want.items():
            inputs.setdefault(name, untouched(dtype_of(array), array.shape))
            command += ["--out", "%s=out_%s.npy" % (name, name)]
        for name, array in inputs.items():
            np.save("in_%s.npy" % name, array)
            command += ["--in", "%s=in_%s.npy" % (name, name)]
        for order in self.orders:
            self.count += 1
            problem = self.launch(command + ["--order", order], want, tolerance, fails)
            if problem:
                self.wrong += 1
                shapes = ", ".join("%s%s" % (n, list(a.shape)) for n, a in inputs.items())
                print("%s %s (%s), order %s: %s" % (kernel or "", define or "", shapes, order, problem))
                break

    def launch(self, command, want, tolerance, fails):
        for name in want:
            if os.path.exists("out_%s.npy" % name):
                os.remove("out_%s.npy" % name)
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if fails:
            good = done.returncode in (1, 3) and re.search(fails, done.stderr)
            return None if good else "no fault '%s'; tile-run ends with %d: %s" % (fails, done.returncode, done.stderr[-1500:])
        if done.returncode != 0:
            return "tile-run ends with %d: %s" % (done.returncode, done.stderr.strip()[-1500:])
        problems = [compare(name, np.load("out_%s.npy" % name), array, tolerance) for name, array in want.items()]
        return "; ".join(p for p in problems if p)


def compare(name, got, want, tolerance):
    dtype = dtype_of(want)
    got = got.view(types.NUMPY[dtype]) if got.dtype != want.dtype else got
    if got.shape != want.shape:
        return "%s has shape %s, the reference %s" % (name, got.shape, want.shape)
    x, y = as_f64(got), as_f64(want)
    same = x == y
    if dtype in types.FLOATS:
        same |= np.isnan(x) & np.isnan(y)
    if tolerance:
        with np.errstate(invalid="ignore"):
            same |= np.abs(x - y) <= tolerance[1] + tolerance[0] * np.abs(y)
    bad = np.argwhere(~same)
    if len(bad) == 0:
        return None
    at = tuple(int(i) for i in bad[0])
    return "%d of %d of %s wrong; first at %s: %s, want %s" % (len(bad), x.size, name, at, x[at], y[at])


def tools_of(program):
    """What the Python lines of a program may use."""
    return {"np": np, "case": program.case, "arch": program.arch, "to_bf16": to_bf16, "hold": hold, "convert": convert,
            "number": types.number, "as_f64": as_f64, "untouched": untouched, "small": small, "exactly": exactly, "random_floats": random_floats, "few": few,
            "wrap": types.wrap, "truncated": types.truncated}


def main():
    tilec, tile_run, path = sys.argv[1:4]
    rest, arch = sys.argv[4:], TARGET
    if "--arch" in rest:
        arch = rest[rest.index("--arch") + 1]
        rest = rest[:rest.index("--arch")]
    program = Program(tilec, tile_run, path, rest or ORDERS, arch)
    with open(path) as file:
        lines = [line[2:].removeprefix(" ") if line.startswith("#=") else "\n" for line in file]
    with np.errstate(all="ignore"):
        exec(compile("".join(lines), path, "exec"), tools_of(program))
    print("%d launches, %d cases wrong" % (program.count, program.wrong))
    sys.exit(1 if program.wrong or not program.count else 0)


if __name__ == "__main__":
    main()
