#!/usr/bin/env python3
"""How long a bf16 GEMM takes in the emulator, without checks and with all of them, beside OpenBLAS's sgemm of the same size on the
same cores (and numpy's float32 product, whatever BLAS that has). Medians over several runs, in shuffled order, so that what the machine does meanwhile hits all arms alike; the
emulator's times are those of the whole process, files included. `cpu` is processor time of all threads.

    python3 tests/bench/emulator.py [--build build] [--size 1024 1024 1024] [--runs 7] [--dir DIR] [--blas LIBRARY]

The kernel is that of lang-examples/gemm.tile. DIR may hold another compiler's: mm_tma_bf16_sm100.ptx, with a .json beside it
that tells entry, shared bytes, block sizes and the boxes of the tensor maps. Every result is compared with numpy's.
OpenBLAS is Debian's libopenblas0, or the LIBRARY named; when there is none the benchmark says so and does without.

Goal for 1024 x 1024 x 1024 on two cores: about one second without checks, under ten with all.
"""
import argparse
import ast
import contextlib
import ctypes
import ctypes.util
import io
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOREIGN = "mm_tma_bf16_sm100"


def to_bf16(values):
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def own_command(options, folder):
    """Our compiler's kernel: compiled once, then launched by tile-run from its PTX."""
    ptx = os.path.join(folder, "gemm.ptx")
    subprocess.run([options.build / "bin/tilec", ROOT / "lang-examples/gemm.tile", "-o", ptx], check=True)
    return [str(options.build / "bin/tile-run"), ptx, "--device", "emu", "--in", "A=%s/a.npy" % folder, "--in",
            "B=%s/b.npy" % folder, "--out", "C=%s/c.npy" % folder]


def foreign_command(options, folder):
    ptx = options.dir / (FOREIGN + ".ptx")
    spec = json.loads((options.dir / (FOREIGN + ".json")).read_text())
    m, n, k = options.size
    maps = ast.literal_eval(spec["meta"]["tensordesc_meta"])
    tiles = int(spec["const"]["BM"]), int(spec["const"]["BN"])
    threads = re.search(r"\.(?:reqntid|maxntid)\s+(\d+)", ptx.read_text()).group(1)
    command = [str(options.build / "bin/tile-emu"), str(ptx), "--entry", spec["meta"]["name"], "--grid",
               "%d,%d" % (-(-m // tiles[0]), -(-n // tiles[1])), "--block", threads, "--shared", spec["meta"]["shared"]]
    arrays = [("a", "in:a=%s/a.npy" % folder, (m, k)), ("b", "in:b=%s/b.npy" % folder, (n, k)),
              ("c", "out:c=%s/c.npy:bf16:%dx%d" % (folder, m, n), (m, n))]
    for (name, clause, shape), tensor_map in zip(arrays, maps):
        box = "x".join(str(extent) for extent in tensor_map["block_size"])
        swizzle = (0, 32, 64, 128)[tensor_map["swizzle"]]
        command += ["--arg", "%s;tma:%s,dtype=bf16,box=%s,swizzle=%d" % (clause, name, box, swizzle)]
        for value in ("i32:%d" % shape[0], "i32:%d" % shape[1], "i64:%d" % shape[1], "i64:1"):
            command += ["--arg", value]
    for value in ("i32:%d" % m, "i32:%d" % n, "i32:%d" % k, "null", "null"):
        command += ["--arg", value]
    return command


def run(command):
    """Seconds of wall clock, of processor time, exit status. 1 is a check's finding: another compiler's kernel trips
    those that ask for what only the manual demands."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit("%s: exit %d" % (" ".join(command), process.returncode))
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, process.returncode


def check_result(folder, want):
    """C is rounded to bf16 once: at most half a unit of 8 significant bits off, and what the sum itself loses."""
    got = from_bf16(np.load(os.path.join(folder, "c.npy")).view(np.uint16))
    worst = np.max(np.abs(got - want) / (np.abs(want) + 1))
    if not worst < 2.0 ** -8:
        sys.exit("the result is wrong: relative error %g" % worst)


def product(a, b):
    begin, cpu = time.perf_counter(), time.process_time()
    a @ b.T
    return time.perf_counter() - begin, time.process_time() - cpu, 0


def find_openblas(path):
    """OpenBLAS as a ctypes library with all cores, or None."""
    multiarch = "/usr/lib/x86_64-linux-gnu/openblas-%s/libopenblas.so.0"
    for name in [path] if path else [ctypes.util.find_library("openblas"), multiarch % "pthread", multiarch % "openmp"]:
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError as error:
            if path:
                sys.exit("cannot load %s: %s" % (path, error))
            continue
        if library and hasattr(library, "openblas_set_num_threads"):
            library.openblas_set_num_threads(len(os.sched_getaffinity(0)))
            library.openblas_get_corename.restype = library.openblas_get_config.restype = ctypes.c_char_p
            return library
    return None


def sgemm(library, a, b, c):
    """c = a b^T by OpenBLAS: row-major, b as it lies."""
    (m, k), n = a.shape, b.shape[0]
    begin, cpu = time.perf_counter(), time.process_time()
    row_major, plain, transposed = 101, 111, 112
    pointer = lambda x: x.ctypes.data_as(ctypes.c_void_p)
    library.cblas_sgemm(row_major, plain, transposed, m, n, k, ctypes.c_float(1), pointer(a), k, pointer(b), k, ctypes.c_float(0), pointer(c), n)
    return time.perf_counter() - begin, time.process_time() - cpu, 0


def blas_name():
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        np.show_config()
    return "OpenBLAS" if re.search(r"openblas(?!\w*_info:\s+NOT AVAILABLE)", text.getvalue(), re.I) else "not OpenBLAS"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--dir", type=pathlib.Path)
    parser.add_argument("--size", nargs=3, type=int, default=[1024, 1024, 1024], metavar=("M", "N", "K"))
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--blas", metavar="LIBRARY", help="an OpenBLAS that is not installed")
    options = parser.parse_args()
    m, n, k = options.size
    generator = np.random.default_rng(1)
    a, b = (to_bf16(generator.standard_normal(shape)) for shape in ((m, k), (n, k)))
    with tempfile.TemporaryDirectory() as folder:
        np.save(folder + "/a.npy", a)
        np.save(folder + "/b.npy", b)
        a32, b32 = from_bf16(a), from_bf16(b)
        want = a32 @ b32.T
        commands = {"gemm.tile": own_command(options, folder)}
        if options.dir and (options.dir / (FOREIGN + ".ptx")).exists():
            commands[FOREIGN] = foreign_command(options, folder)
        arms = {"%s, %s" % (name, "all checks" if checks == "all" else "no checks"): command + ["--check", checks]
                for name, command in commands.items() for checks in ("none", "all")}
        openblas, c32 = find_openblas(options.blas), np.zeros((m, n), np.float32)
        samples = {name: [] for name in list(arms) + ["openblas"] * (openblas is not None) + ["numpy"]}
        product(a32, b32)
        if openblas:
            sgemm(openblas, a32, b32, c32)
            if not np.allclose(c32, want, rtol=1e-3, atol=1e-3 * k):
                sys.exit("OpenBLAS and numpy differ")
        for _ in range(options.runs):
            order = list(samples)
            random.shuffle(order)
            for name in order:
                if name == "numpy":
                    samples[name].append(product(a32, b32))
                    continue
                if name == "openblas":
                    samples[name].append(sgemm(openblas, a32, b32, c32))
                    continue
                samples[name].append(run(arms[name]))
                check_result(folder, want)
    print("%d x %d x %d, %d runs, %d cores, load %.1f, numpy %s (%s)" %
          (m, n, k, options.runs, len(os.sched_getaffinity(0)), os.getloadavg()[0], np.__version__, blas_name()))
    print("%-36s %10s %10s %10s" % ("seconds", "median", "fastest", "cpu"))
    labels = {"numpy": "numpy, float32 product", "openblas": "OpenBLAS, sgemm"}
    for name, times in samples.items():
        note = "  (with findings)" if any(status for _, _, status in times) else ""
        print("%-36s %10.3f %10.3f %10.3f%s" % (labels.get(name, name), statistics.median(t[0] for t in times),
                                                min(t[0] for t in times), statistics.median(t[1] for t in times), note))
    if openblas:
        print("OpenBLAS is %s, with kernels for %s" % (" ".join(openblas.openblas_get_config().decode().split()[:2]), openblas.openblas_get_corename().decode()))
    else:
        print("OpenBLAS, sgemm: NOT MEASURED, there is none (apt-get install libopenblas0, or --blas LIBRARY)")


if __name__ == "__main__":
    main()
