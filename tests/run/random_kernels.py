"""Random kernels that are legal, against numpy.

    random_kernels.py TILEC TILE_RUN [--count N] [--first I] [--seed S] [--kind KIND] [--jobs J]
Kernel number I depends on the seed and I alone; a wrong one is printed with its text and the command that makes it again. Each is compiled
once and run in the orders fair, lazy and random with all checks: on whole numbers, where every result is exact, and where it is a product on
random numbers too. Every fourth is assembled by ptxas; the emulator runs the PTX.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

import numpy as np

import elementwise as types
from chance import atomics, base, control, persistent, pipelines, programs, protocols, reductions, roles, tiles
from elementwise import number
from run_case import CHECKS, SMALL, untouched

KINDS = {"elements": tiles.elements, "moves": tiles.moves, "products": tiles.products, "forms": tiles.forms, "programs": programs.programs,
         "reductions": reductions.reductions, "control": control.control, "atomics": atomics.atomics, "protocols": protocols.protocols, "roles": roles.roles,
         "persistent": persistent.persistent, "pipelines": pipelines.pipelines}
HELD = base.DTYPES  # element types of results


def dtype_of(array):
    return next(d for d in HELD if types.NUMPY[d] == array.dtype)


def make(kind, seed, i):
    with np.errstate(all="ignore"):
        kernel = KINDS[kind](np.random.default_rng([seed, i]))
        kernel.fix_sizes(np.random.default_rng([seed, i, 1]))
    return kernel


def tool(command, what):
    """What is wrong, or None."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return "%s does not end" % what
    return "%s ends with %d: %s" % (what, done.returncode, done.stderr.strip()[-2000:]) if done.returncode else None


def launch(tile_run, kernel, inputs, order, compare):
    command = [tile_run, "chance.ptx", "--device", "emu", "--check", CHECKS, "--order", order] + (["--sms", str(kernel.sms)] if kernel.sms else [])
    for name, array in inputs.items():
        np.save("in_%s.npy" % name, array)
        command += ["--in", "%s=in_%s.npy" % (name, name)]
    for name, array in kernel.want.items():
        if name not in inputs:
            np.save("in_%s.npy" % name, untouched(dtype_of(array), array.shape))
            command += ["--in", "%s=in_%s.npy" % (name, name)]
        command += ["--out", "%s=out_%s.npy" % (name, name)]
    problem = tool(command, "order %s: tile-run" % order)
    if problem:
        return problem
    wrong = [text for text in (compare(name) for name in kernel.want) if text]
    return "order %s: %s" % (order, "; ".join(wrong)) if wrong else None


def result(name, want):
    return number(dtype_of(want), np.load("out_%s.npy" % name).view(want.dtype))


def first_wrong(name, got, want, bad):
    places = np.argwhere(bad)
    if len(places) == 0:
        return None
    at = tuple(int(i) for i in places[0])
    return "%d of %d of %s wrong; first at %s: %s, want %s" % (len(places), got.size, name, at, got[at], want[at])


def run(options, kernel, i):
    with open("chance.tile", "w") as file:
        file.write(kernel.text())
    compile_to = [options.tilec, "chance.tile"] + kernel.options + ["--arch", options.arch or kernel.arch]
    problem = tool(compile_to + ["-o", "chance.ptx"], "tilec")
    if not problem and options.ptxas and i % 4 == 0:
        problem = tool(compile_to + ["-o", "chance.cubin"], "tilec with ptxas")

    def exact(name):
        want = kernel.want[name]
        x, y = result(name, want), number(dtype_of(want), want)
        return first_wrong(name, x, y, ~((x == y) | ((x != x) & (y != y))))

    def close(name):
        got = result(name, kernel.want[name]).astype(np.float64)
        return first_wrong(name, got, kernel.random[1], ~(np.abs(got - kernel.random[1]) <= kernel.random[2]))
    for order in ["random:%d" % (i + 1)] if SMALL else ["fair", "lazy", "random:%d" % (i + 1)]:
        problem = problem or launch(options.tile_run, kernel, kernel.inputs, order, exact)
    if kernel.random and not problem:
        problem = launch(options.tile_run, kernel, kernel.random[0], "fair", close)
    return problem


def one(options, kind, i):
    """The report of a wrong kernel, or None."""
    again = "python3 %s %s %s --kind %s --seed %d --first %d --count 1" % (
        os.path.abspath(__file__), options.tilec, options.tile_run, kind, options.seed, i)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with np.errstate(all="ignore"):
            kernel = make(kind, options.seed, i)
            problem = run(options, kernel, i)
        os.chdir("/")
    if not problem:
        return None
    shapes = ", ".join("%s%s" % (n, list(a.shape)) for n, a in kernel.inputs.items())
    return "%s\n%s (%s): %s\n%s" % (again, kind, ", ".join([shapes, options.arch or kernel.arch, "%s SMs" % kernel.sms] + kernel.options), problem, kernel.text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilec", type=os.path.abspath)
    parser.add_argument("tile_run", type=os.path.abspath)
    parser.add_argument("--count", type=int, default=24 if SMALL else 120, help="kernels, of all kinds in turn")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--no-ptxas", dest="ptxas", action="store_false")
    parser.add_argument("--arch", help="the target; else each kernel's own")
    parser.add_argument("--show", action="store_true", help="print the text of each kernel instead of running it")
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else list(KINDS)
    numbers = [(kinds[i % len(kinds)], i) for i in range(options.first, options.first + options.count)]
    if options.show:
        for kind, i in numbers:
            print("# %s %d\n%s" % (kind, i, make(kind, options.seed, i).text()))
        return 0
    wrong = 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for report in pool.map(one, [options] * len(numbers), *zip(*numbers)):
            if report:
                wrong += 1
                print(report, flush=True)
    print("%d kernels, %d wrong" % (len(numbers), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
