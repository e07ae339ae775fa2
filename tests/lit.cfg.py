"""What every lit test may use. ctest runs lit on the build folder; `lit tests/syntax` in the source tree works too and
takes build/ (or --param build=DIR).

Substitutions: %tilec %tile-opt %tile-emu %tile-run %ptxas %python %unit %root %build %examples %gemm-reference %run-case %errors, besides lit's own. A test
starts in an empty folder of its own. Features: ptxas, cuda_h (and %cuda_include), numpy, pkg_config, gpu, asan, small (TILE_TEST_SMALL=1), long (TILE_TEST_LONG=1).
"""
import glob
import os
import re
import shutil
import subprocess

import lit.formats

if not hasattr(config, "tile_build"):
    build = os.path.abspath(lit_config.params.get("build", os.path.join(os.path.dirname(__file__), "..", "build")))
    site = os.path.join(build, "tests", "lit.site.cfg.py")
    if not os.path.exists(site):
        lit_config.fatal("no build in %s: run cmake --preset release && cmake --build build" % build)
    lit_config.load_config(config, site)
    raise SystemExit

tests = os.path.join(config.tile_source, "tests")
config.name = "tilec"
config.suffixes = [".tile", ".tir", ".ptx", ".test"]
config.excludes = ["Inputs", "unit", "lint", "bench", "tools"]
config.test_source_root = tests
config.test_exec_root = os.path.join(config.tile_build, "tests")
config.test_format = lit.formats.ShTest(
    execute_external=False, preamble_commands=["rm -rf %t.dir", "mkdir -p %t.dir", "cd %t.dir"])

binaries = os.path.join(config.tile_build, "bin")
config.environment["PATH"] = os.pathsep.join([binaries, config.tile_llvm_bin, os.environ.get("PATH", "")])
for name in ("CUDA_HOME", "TILE_TEST_SMALL", "TILE_TEST_LONG", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]


def assembler():
    """The ptxas that tilec would find, if it is from CUDA 12.8 or later."""
    places = [os.path.join(os.environ["CUDA_HOME"], "bin/ptxas")] if "CUDA_HOME" in os.environ else []
    places += [shutil.which("ptxas"), "/usr/local/cuda/bin/ptxas", os.path.join(config.tile_build, "tools/ptxas")]
    for path in places:
        if path and os.access(path, os.X_OK):
            text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            release = re.search(r"release (\d+)\.(\d+)", text)
            if release and (int(release[1]), int(release[2])) >= (12, 8):
                return path
    return None


def has_numpy():
    return subprocess.run([config.tile_python, "-c", "import numpy"], capture_output=True).returncode == 0


def cuda_include():
    """The folder of cuda.h, for the header that --header writes."""
    places = [os.path.join(os.environ[v], "include") for v in ("CUDA_HOME",) if v in os.environ]
    places += ["/usr/local/cuda/include", "/usr/local/include", "/usr/include"]
    return next((place for place in places if os.path.exists(os.path.join(place, "cuda.h"))), None)


def gpu_capability():
    try:
        command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:
        return ""


ptxas = assembler()
cuda_headers = cuda_include()
features = {
    "ptxas": ptxas,
    "cuda_h": cuda_headers,
    "numpy": has_numpy(),
    "pkg_config": shutil.which("pkg-config") and shutil.which("g++"),
    "gpu": glob.glob("/dev/nvidia[0-9]*"),
    "hopper": "9.0" in gpu_capability(),
    "asan": config.tile_sanitized,
    "small": os.environ.get("TILE_TEST_SMALL") == "1",
    "long": os.environ.get("TILE_TEST_LONG") == "1",
}
config.available_features.update(name for name, found in features.items() if found)

# The order matters: %errors is made of others, and %t would eat the start of %tilec (lit appends its own last).
config.substitutions += [
    ("%errors", "not %tilec --check %s 2>&1 | FileCheck %s --implicit-check-not='error['"),
    ("%run-case", "%s %s %s %s" % (config.tile_python, os.path.join(tests, "run/run_case.py"),
                                   os.path.join(binaries, "tilec"), os.path.join(binaries, "tile-run"))),
    ("%tilec", os.path.join(binaries, "tilec")),
    ("%tile-opt", os.path.join(binaries, "tile-opt")),
    ("%tile-emu", os.path.join(binaries, "tile-emu")),
    ("%tile-run", os.path.join(binaries, "tile-run")),
    ("%ptxas", ptxas or "ptxas"),
    ("%gemm-reference", "%s %s --tile-run %s" % (
        config.tile_python, os.path.join(tests, "tools/gemm_reference.py"), os.path.join(binaries, "tile-run"))),
    ("%cuda_include", cuda_headers or "cuda.h-is-missing"),
    ("%python", config.tile_python),
    ("%unit", os.path.join(config.tile_build, "tests", "unit")),
    ("%examples", os.path.join(config.tile_source, "lang-examples")),
    ("%root", config.tile_source),
    ("%build", config.tile_build),
]
