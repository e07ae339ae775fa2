"""Kernels that the compiler may specialise, against their form in one role (-O0) and against numpy, on every target.

    specialised.py TILEC TILE_RUN PROGRAM… [--orders ORDER,…] [--arch NAME]     runs the cases of each PROGRAM
    specialised.py TILEC TILE_RUN PROGRAM… --update                             writes expected.txt to what the compiler does now
A PROGRAM holds cases as for run_case.py. Each case runs at -O0 in one order and at -O2 in all orders with all checks, on both targets: every
result equals the reference, and what -O2 leaves is bit for bit what -O0 leaves. Whether a kernel gets warp roles, or which remark says why not,
stands in expected.txt, a line a kernel; a line that is not true any more fails the test.
Besides the tools of run_case.py, cases have `devices`, numbers of SMs so that a persistent kernel's blocks get even and uneven shares of the
tiles, and some(…): all of these values with TILE_TEST_LONG=1, else every other one.
"""
import os
import re
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import run_case  # noqa: E402

TARGETS = ["sm_90a", "sm_100a"]
LONG = os.environ.get("TILE_TEST_LONG") == "1"
TABLE = os.path.join(HERE, "expected.txt")
REMARK = re.compile(r"remark: no warp roles for this loop: (.*)")
HEAD = """# Which kernels of this folder have warp roles at -O2, with the defaults of their parameters, and what --remarks says about the loops that have none.
#     kernel [target]: roles | REMARK; REMARK…     both targets where none is named; `roles; REMARK`: some loops have, others not
# specialised.py TILEC TILE_RUN PROGRAM… --update writes this file; read the difference before you commit it.
"""


class Pair(run_case.Program):
    """Runs each case of a program at -O0 and -O2 on the targets."""

    form = ".cubin" if LONG else ".ptx"

    def __init__(self, tilec, tile_run, path, orders, targets):
        super().__init__(tilec, tile_run, path, orders)
        self.all_orders, self.targets, self.baseline = orders, targets, False

    def case(self, options=(), **rest):
        for target in self.targets:
            for level in "-O0", "-O2":
                self.baseline = level == "-O0"
                self.orders = ["fair"] if self.baseline else self.all_orders
                before = self.wrong
                super().case(options=[level, "--arch", target] + list(options), **rest)
                if self.wrong > before:
                    print("    at %s on %s" % (level, target))
                    break

    def launch(self, command, want, tolerance, fails):
        problem = super().launch(command, want, tolerance, fails)
        for name in want if not problem else []:
            if self.baseline:
                os.replace("out_%s.npy" % name, "base_%s.npy" % name)
            elif np.load("out_%s.npy" % name).tobytes() != np.load("base_%s.npy" % name).tobytes():
                return "%s differs from that of -O0" % name
        return problem


def some(*values):
    return values if LONG else run_case.few(values[::2])


def kernels_of(path):
    with open(path) as file:
        return re.findall(r"^@kernel\ndef (\w+)", file.read(), re.M)


def outcome(tilec, path, kernel, target):
    done = subprocess.run([tilec, path, "--kernel", kernel, "--arch", target, "-O2", "--stop-after=roles", "--remarks"], capture_output=True, text=True)
    if done.returncode != 0:
        return "tilec ends with %d: %s" % (done.returncode, done.stderr.strip()[:300])
    said = ["roles"] if re.search(r"^\s*role\b", done.stdout, re.M) else []
    for remark in REMARK.findall(done.stderr):
        said += [remark] if remark not in said else []
    return "; ".join(said) or "nothing"


def lines_of(tilec, path, kernel, targets):
    """The lines of expected.txt about a kernel."""
    said = {target: outcome(tilec, path, kernel, target) for target in targets}
    if len(set(said.values())) == 1:
        return ["%s: %s" % (kernel, said[targets[0]])]
    return ["%s %s: %s" % (kernel, target, said[target]) for target in targets]


def table():
    with open(TABLE) as file:
        return [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]


def expect(rows, kernel, target):
    for row in rows:
        name, _, text = row.partition(": ")
        if name in (kernel, "%s %s" % (kernel, target)):
            return text
    return None


def check_table(tilec, path, targets):
    rows, wrong = table(), 0
    for kernel in kernels_of(path):
        for target in targets:
            want, got = expect(rows, kernel, target), outcome(tilec, path, kernel, target)
            if want != got:
                wrong += 1
                print("%s on %s: expected.txt says '%s', the compiler '%s'" % (kernel, target, want, got))
    return wrong


def run(tilec, tile_run, path, orders, targets):
    program = Pair(tilec, tile_run, path, orders, targets)
    with open(path) as file:
        lines = [line[2:].removeprefix(" ") if line.startswith("#=") else "\n" for line in file]
    with np.errstate(all="ignore"):
        exec(compile("".join(lines), path, "exec"), run_case.tools_of(program) | {"devices": [3, 1, 2, 148] if LONG else [3], "some": some})
    print("%s: %d launches, %d cases wrong" % (os.path.basename(path), program.count, program.wrong))
    return program.wrong or not program.count


def take(arguments, name):
    """The value of an option, removed from the arguments."""
    if name not in arguments:
        return None
    at = arguments.index(name)
    value = arguments[at + 1]
    del arguments[at:at + 2]
    return value


def main():
    arguments = sys.argv[1:]
    orders, target = take(arguments, "--orders"), take(arguments, "--arch")
    tilec, tile_run = (os.path.abspath(path) for path in arguments[:2])
    paths, targets = [path for path in arguments[2:] if path != "--update"], [target] if target else TARGETS
    if "--update" in arguments:
        with open(TABLE, "w") as file:
            file.write(HEAD)
            for path in sorted(paths):
                file.write("\n# %s\n" % os.path.basename(path))
                file.writelines(line + "\n" for kernel in kernels_of(path) for line in lines_of(tilec, path, kernel, targets))
        return 0
    wrong = 0
    for path in paths:
        wrong += check_table(tilec, path, targets) + run(tilec, tile_run, path, orders.split(",") if orders else run_case.ORDERS, targets)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
