#!/usr/bin/env python3
"""The examples from source to numbers: each is compiled to one cubin, which tile-run launches in the emulator at several sizes
and in several orders; results are compared with numpy.

    examples.py TILEC TILE_RUN FOLDER [--small] [--arch sm_90a] [--cuda] [NAME…]
--cuda: on the GPU here, each size once, and the source itself is given to tile-run. --arch: what that target lacks is left out.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from gemm_reference import from_bf16, to_bf16  # noqa: E402
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import elementwise as types  # noqa: E402

ORDERS = ["fair", "lazy"] + ["random:%d" % seed for seed in range(1, 6)]
GEMMS = [(512, 512, 512), (384, 640, 320), (129, 257, 72), (1, 8, 16), (130, 64, 0)]
MATRICES = [(256, 192), (65, 100), (1, 1), (70, 33)]  # rows of 16 bytes and not, tiles whole and cut


def matrix_inputs(random, size):
    values = random.standard_normal(size).astype(np.float32)
    flat = values.reshape(-1)
    special = np.array([np.inf, -np.inf, 0.0, -0.0, 1.00390625, 1.01171875, 3.4e38, 1e-40], np.float32)  # ties, overflow, subnormal
    flat[:min(flat.size, special.size)] = special[:flat.size]
    return {"A": values}


def vector_inputs(random, size):
    return {name: random.standard_normal(size).astype(np.float32) for name in "AB"}


def gemm_inputs(random, size):
    m, n, k = size
    return {"A": to_bf16(random.uniform(-1, 1, (m, k))), "B": to_bf16(random.uniform(-1, 1, (n, k)))}


def epilogue_inputs(random, size):
    return {**gemm_inputs(random, size), "bias": random.standard_normal(size[1]).astype(np.float32)}


def product(inputs):
    return from_bf16(inputs["A"]).astype(np.float64) @ from_bf16(inputs["B"]).astype(np.float64).T


def fp8_inputs(random, size):
    m, n, k = size
    held = {name: types.hold("e4m3", random.standard_normal((rows, k)).astype(np.float32)) for name, rows in (("A", m), ("B", n))}
    return {**held, "scale_A": random.uniform(0.5, 2, m).astype(np.float32), "scale_B": random.uniform(0.5, 2, n).astype(np.float32)}


def scaled_product(inputs):
    a, b = (types.number("e4m3", inputs[name]).astype(np.float64) for name in "AB")
    return a @ b.T * inputs["scale_A"][:, None].astype(np.float64) * inputs["scale_B"].astype(np.float64)


def int8_inputs(random, size):
    m, n, k = size
    return {"A": random.integers(-128, 128, (m, k)).astype(np.int8), "B": random.integers(-128, 128, (k, n)).astype(np.int8)}


def int8_product(inputs):
    return inputs["A"].astype(np.int32) @ inputs["B"].astype(np.int32)


def histogram_inputs(random, size):
    return {"values": random.integers(-3, 260, size).astype(np.int32), "counts": random.integers(0, 100, 256).astype(np.int32)}


def counted(inputs):
    values = inputs["values"]
    inside = values[(values >= 0) & (values < 256)]
    return inputs["counts"] + np.bincount(inside, minlength=256).astype(np.int32)


def ts_inputs(random, size):
    m, n, k = size
    return {"A": random.integers(-128, 128, (m, k)).astype(np.int8), "scale": random.uniform(0.5, 2, m).astype(np.float32) / 64,
            "B": to_bf16(random.uniform(-1, 1, (n, k)))}


def ts_product(inputs):
    return inputs["A"].astype(np.float64) @ from_bf16(inputs["B"]).astype(np.float64).T * inputs["scale"][:, None].astype(np.float64)


def batched_inputs(random, size):
    batch, m, n, k = size
    return {"A": to_bf16(random.uniform(-1, 1, (batch, m, k))), "B": to_bf16(random.uniform(-1, 1, (batch, n, k)))}


def batched_product(inputs):
    return from_bf16(inputs["A"]).astype(np.float64) @ from_bf16(inputs["B"]).astype(np.float64).transpose(0, 2, 1)


def gelu_of_product(inputs):
    x = product(inputs) + inputs["bias"].astype(np.float64)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def softmax_of_rows(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def row_inputs(random, size):
    return {"A": (random.standard_normal(size) * 4).astype(np.float32)}


def layernorm_inputs(random, size):
    return {"A": to_bf16(random.standard_normal(size) * 3 + 5), "gamma": random.standard_normal(size[1]).astype(np.float32),
            "beta": random.standard_normal(size[1]).astype(np.float32)}


def normalised(inputs):
    x = from_bf16(inputs["A"]).astype(np.float64)
    x -= x.mean(1, keepdims=True)
    return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * inputs["gamma"] + inputs["beta"]


def attention_inputs(random, size):
    heads, m, n, dim = size
    return {name: to_bf16(random.standard_normal((heads, rows, dim)) * 2) for name, rows in (("Q", m), ("K", n), ("V", n))}


def attended(inputs, causal=False):
    q, k, v = (from_bf16(inputs[name]).astype(np.float64) for name in "QKV")
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2])
    if causal:
        scores[:, ~np.tri(*scores.shape[1:], dtype=bool)] = -np.inf
    return softmax_of_rows(scores) @ v


def exact(got, want):
    """As bits: copies and conversions have one right answer."""
    return np.count_nonzero(got.view("u%d" % got.itemsize) != want.view("u%d" % want.itemsize))


def close(got, want):
    return np.count_nonzero(~(np.abs(got.astype(np.float64) - want) <= 1e-6 + 1e-5 * np.abs(want)))


def near(got, want, smallest=1e-2):
    error = np.abs(from_bf16(got).astype(np.float64) - want)
    return np.count_nonzero(~(error <= smallest + 1e-2 * np.abs(want)))


def near_on_hopper(got, want):
    """Its tensor core keeps 13 bits of sums of 8-bit floats."""
    return near(got, want, 8e-2)


# name and -D options: sizes, inputs, result, reference, wrong elements
EXAMPLES = {
    "copy": (MATRICES, matrix_inputs, "B", lambda inputs: inputs["A"], exact),
    "cast": (MATRICES, matrix_inputs, "B", lambda inputs: to_bf16(inputs["A"]), exact),
    "vector_add": ([(4096,), (1000,), (1,)], vector_inputs, "C", lambda inputs: inputs["A"] + inputs["B"], exact),
    "gemm": (GEMMS, gemm_inputs, "C", product, near),
    "gemm_ws": (GEMMS[:-1], gemm_inputs, "C", product, near),
    "gemm_async": (GEMMS, gemm_inputs, "C", product, near),
    "gemm_fp8": ([(256, 256, 256), (129, 257, 80), (1, 16, 16), (130, 64, 0)], fp8_inputs, "C", scaled_product, near),
    "gemm_int8": ([(256, 256, 256), (65, 144, 80), (1, 1, 1), (130, 64, 0)], int8_inputs, "C", int8_product, exact),
    "histogram": ([(20000,), (4096,), (1,)], histogram_inputs, "counts", counted, exact),
    "gemm_ts": ([(256, 256, 256), (129, 130, 80), (1, 8, 16), (64, 64, 0)], ts_inputs, "C", ts_product, near),
    "gemm_tiles": ([(512, 640, 256), (384, 300, 136), (129, 257, 72), (1, 8, 16), (130, 64, 0)], gemm_inputs, "C", product, near),
    "gemm_persistent": ([(512, 640, 256), (384, 300, 136), (129, 257, 584), (1, 8, 16), (700, 392, 320)], gemm_inputs, "C", product, near),
    "gemm_batched": ([(3, 256, 128, 128), (2, 129, 72, 80), (5, 1, 1, 1), (2, 64, 64, 0)], batched_inputs, "C", batched_product, near),
    "softmax": ([(16, 1000), (9, 256), (1, 1), (3, 2050)], row_inputs, "B", lambda inputs: softmax_of_rows(inputs["A"].astype(np.float64)), close),
    "layernorm": ([(8, 1024), (5, 1024)], layernorm_inputs, "B", normalised, near),
    "layernorm length=1000": ([(7, 1000)], layernorm_inputs, "B", normalised, near),
    "transpose": (MATRICES, matrix_inputs, "B", lambda inputs: np.ascontiguousarray(inputs["A"].T), exact),
    "attention_plain": ([(2, 128, 128, 64), (1, 200, 77, 64), (2, 1, 1, 64)], attention_inputs, "O", attended, near),
    "attention_plain causal=True dim=128": ([(1, 200, 200, 128), (1, 130, 300, 128)], attention_inputs, "O", lambda inputs: attended(inputs, True), near),
    "gemm_epilogue": (GEMMS, epilogue_inputs, "C", gelu_of_product, near),
}


# Persistent kernels: each run is on a device of another number of SMs, so that tiles divide among workers in many ways.
WORKERS = {"gemm_tiles": [1, 3, 4, 148], "gemm_persistent": [1, 3, 4, 148]}


# What Hopper lacks: asked for by name, or (attention) too many registers.
NOT_ON_HOPPER = ("gemm_ws", "gemm_async", "gemm_int8", "gemm_tiles", "gemm_persistent", "attention_plain")


def run(command, size, example, seed):
    """What is wrong with one run, or None."""
    _, make, result, reference, wrong = example
    inputs = make(np.random.default_rng(seed), size)
    command = command + ["--out", result + "=result.npy"]
    for name, array in inputs.items():
        np.save(name + ".npy", array)
        command += ["--in", "%s=%s.npy" % (name, name)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        return "status %d: %s" % (ran.returncode, ran.stderr)
    got, want = np.load("result.npy"), reference(inputs)
    if got.shape != want.shape:
        return "shape %s instead of %s" % (got.shape, want.shape)
    count = wrong(got, want)
    return "%d of %d elements are wrong" % (count, want.size) if count else None


def main():
    arguments = sys.argv[1:]
    arch = ["--arch", arguments.pop(arguments.index("--arch") + 1)] if "--arch" in arguments else []
    small, cuda = "--small" in arguments, "--cuda" in arguments
    arguments = [argument for argument in arguments if argument not in ("--small", "--cuda", "--arch")]
    tilec, tile_run, folder = (os.path.abspath(path) for path in arguments[:3])
    failed = runs = 0
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name in arguments[3:] or EXAMPLES:
            file, *options = name.split()
            source, cubin = os.path.join(folder, file + ".tile"), file + ".cubin"
            if "sm_90a" in arch and file in NOT_ON_HOPPER:
                continue
            options = ["-D" + option for option in options] + arch
            if not cuda:
                subprocess.run([tilec, source, "-o", cubin] + options, check=True)
            for seed, size in enumerate(EXAMPLES[name][0]):
                if small and len(size) >= 3 and max(size) > 300:
                    continue
                for number, order in enumerate(["GPU"] if cuda else ORDERS[:3] if small else ORDERS):
                    sms = WORKERS[name][(number + seed) % len(WORKERS[name])] if name in WORKERS and not cuda else 0
                    command = [tile_run, source, "--device", "cuda"] + options if cuda else [tile_run, cubin, "--device", "emu", "--order", order]
                    example = EXAMPLES[name]
                    if "sm_90a" in arch and file == "gemm_fp8":
                        example = (*example[:4], near_on_hopper)
                    trouble = run(command + (["--sms", str(sms)] if sms else []), size, example, seed)
                    runs += 1
                    if trouble:
                        failed += 1
                        print("%s %s %s%s: %s" % (name, "x".join(map(str, size)), order, " on %d SMs" % sms if sms else "", trouble))
    print("%d runs, %d failed" % (runs, failed))
    sys.exit(1 if failed or not runs else 0)


if __name__ == "__main__":
    main()
