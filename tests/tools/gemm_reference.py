#!/usr/bin/env python3
"""Runs a GEMM kernel through tile-run on random bfloat16 inputs and compares C = A B^T with numpy in double precision.

The reference shares nothing with the compiler: inputs are rounded to bfloat16 here, and multiplied as doubles. Prints the
largest absolute and relative error; exit 1 when an element is off by more than atol + rtol * |reference|.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np


def to_bf16(values):
    """The bits (uint16) of float32 values rounded to the nearest bfloat16, ties to even. No NaN among them."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def read_result(path):
    """An array as doubles; bfloat16 comes as its bits, in uint16 or in two raw bytes."""
    array = np.load(path)
    if array.dtype == np.dtype("V2"):
        array = array.view(np.uint16)
    return (from_bf16(array) if array.dtype == np.uint16 else array).astype(np.float64)


def run(options, folder, extra):
    m, n, k = options.size
    random = np.random.default_rng(options.seed)
    a = to_bf16(random.uniform(-1, 1, (m, k)))
    b = to_bf16(random.uniform(-1, 1, (n, k)))
    a_path, b_path, c_path = (os.path.join(folder, name + ".npy") for name in "abc")
    np.save(a_path, a)
    np.save(b_path, b)
    command = [options.tile_run, options.file, "--in", "A=" + a_path, "--in", "B=" + b_path, "--out", "C=" + c_path]
    status = subprocess.run(command + extra).returncode
    if status:
        print("tile-run failed with status %d: %s" % (status, " ".join(command + extra)), file=sys.stderr)
        sys.exit(status)
    return read_result(c_path), from_bf16(a).astype(np.float64) @ from_bf16(b).astype(np.float64).T


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Options that are not listed go to tile-run.")
    parser.add_argument("file", help="a .tile, .ptx or .cubin with parameters A[M,K], B[N,K], C[M,N]")
    parser.add_argument("--tile-run", default="tile-run")
    parser.add_argument("--size", nargs=3, type=int, default=[512, 512, 512], metavar=("M", "N", "K"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rtol", type=float, default=1e-2)
    parser.add_argument("--atol", type=float, default=1e-2)
    options, extra = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        got, want = run(options, folder, extra)
    if got.shape != want.shape:
        print("C has shape %s, the reference %s" % (got.shape, want.shape), file=sys.stderr)
        sys.exit(1)
    error = np.abs(got - want)
    allowed = options.atol + options.rtol * np.abs(want)
    wrong = int(np.count_nonzero(~(error <= allowed)))
    worst = np.unravel_index(np.argmax(np.where(np.isnan(error), np.inf, error)), error.shape)
    print("%dx%dx%d: largest error %.3g at C[%d, %d] (%.6g instead of %.6g); largest |C| %.4g; %d of %d elements beyond "
          "rtol %g, atol %g" % (*options.size, error[worst], *worst, got[worst], want[worst], np.abs(want).max(), wrong,
                                error.size, options.rtol, options.atol))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
