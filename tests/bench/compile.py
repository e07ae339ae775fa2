#!/usr/bin/env python3
"""Compile time and memory: medians of tilec from source to PTX and to cubin, beside ptxas alone on the same PTX, all in
one run and in shuffled order, so that what the machine does meanwhile hits all arms alike. `cpu` is processor time, which another load disturbs less.

    python3 tests/bench/compile.py [--tilec build/bin/tilec] [--ptxas PATH] [--runs 15] [EXAMPLE.tile …]

Goals on two cores (for a GEMM): PTX in under 100 ms, cubin in under 200 ms, peak memory under 200 MB.
"""
import argparse
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def find_ptxas():
    places = [os.path.join(os.environ.get("CUDA_HOME", "/nonexistent"), "bin/ptxas"), shutil.which("ptxas"),
              "/usr/local/cuda/bin/ptxas", str(ROOT / "build/tools/ptxas")]
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


def run(command):
    """Seconds of wall clock, seconds of processor time (children included), peak resident megabytes."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    message = process.stderr.read().decode()
    process.stderr.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit("%s: exit %d\n%s" % (" ".join(command), process.returncode, message))
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(arms, runs):
    times = {name: [] for name in arms}
    cpus = {name: [] for name in arms}
    peaks = {name: 0.0 for name in arms}
    for command in arms.values():
        run(command)
    for _ in range(runs):
        order = list(arms)
        random.shuffle(order)
        for name in order:
            seconds, cpu, peak = run(arms[name])
            times[name].append(seconds)
            cpus[name].append(cpu)
            peaks[name] = max(peaks[name], peak)
    return times, cpus, peaks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilec", default=str(ROOT / "build/bin/tilec"))
    parser.add_argument("--ptxas", default=find_ptxas())
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("examples", nargs="*", default=[str(ROOT / "lang-examples/gemm.tile")])
    args = parser.parse_args()
    print("%-20s %-12s %9s %9s %9s %9s %9s" %
          ("example", "arm", "median", "fastest", "slowest", "cpu", "peak MB"))
    for example in args.examples:
        with tempfile.TemporaryDirectory() as folder:
            ptx, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
            arms = {"tilec ptx": [args.tilec, example, "-o", ptx]}
            if args.ptxas:
                arms["tilec cubin"] = [args.tilec, example, "-o", cubin, "--ptxas", args.ptxas]
                arms["ptxas alone"] = [args.ptxas, "-lineinfo", "-arch", "sm_100a", ptx, "-o", cubin]
            times, cpus, peaks = measure(arms, args.runs)
        for name in arms:
            values = times[name]
            print("%-20s %-12s %7.1fms %7.1fms %7.1fms %7.1fms %9.1f" %
                  (pathlib.Path(example).stem, name, 1e3 * statistics.median(values), 1e3 * min(values),
                   1e3 * max(values), 1e3 * statistics.median(cpus[name]), peaks[name]))


main()
