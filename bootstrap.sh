#!/bin/sh
# From a bare machine to a tested build: installs what is missing (Debian 12, with apt), builds, and runs.
#   ./bootstrap.sh build             set-up and a release build; the programs are in build/bin/
#   ./bootstrap.sh demo              the same, then lang-examples/gemm.tile: compiled, run, compared with numpy
#   ./bootstrap.sh test [--asan] [--long]   the same, then every test; with sanitizers; with the long tier too
# Where everything is installed already, nothing is installed and any Linux will do.
set -eu
cd "$(dirname "$0")"

help() { sed -n '2,6s/^# *//p' "$0"; }
usage() { [ $# -eq 0 ] || printf 'bootstrap.sh: %s\n' "$*" >&2; help >&2; exit 2; }
say() { printf '==> %s\n' "$*"; }
fail() { printf 'bootstrap.sh: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# --- what is there ---------------------------------------------------------------------------------------------------

# A Python 3 that can import numpy; the first in PATH need not be the system's.
python_with_numpy() {
  for python in python3 /usr/bin/python3 "$PWD/build/python/bin/python3"; do
    if "$python" -c 'import numpy' >/dev/null 2>&1; then echo "$python"; return 0; fi
  done
  return 1
}

llvm_bin() {
  if have llvm-config-22; then llvm-config-22 --bindir
  elif [ -x /usr/lib/llvm-22/bin/llvm-config ]; then echo /usr/lib/llvm-22/bin
  elif have llvm-config && llvm-config --version | grep -q '^22\.'; then llvm-config --bindir
  else return 1
  fi
}

has_llvm_headers() { dir=$(llvm_bin) && [ -f "$("$dir/llvm-config" --includedir)/llvm-c/Core.h" ]; }
has_llvm_tools() { dir=$(llvm_bin) && [ -x "$dir/FileCheck" ] && [ -x "$dir/not" ] && [ -e "$dir/lit" ]; }

# The C library's headers come in a package of their own.
has_compiler() { have cc && echo '#include <stdio.h>' | cc -E -x c - >/dev/null 2>&1; }

# ptxas from CUDA 12.8 or later: the first that knows the PTX that we write.
good_ptxas() {
  [ -x "$1" ] || return 1
  "$1" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' | {
    read -r major minor && { [ "$major" -gt 12 ] || { [ "$major" -eq 12 ] && [ "$minor" -ge 8 ]; }; }
  }
}

find_ptxas() {
  for ptxas in "${CUDA_HOME:-/nonexistent}/bin/ptxas" "$(command -v ptxas || true)" /usr/local/cuda/bin/ptxas \
               "$PWD/build/tools/ptxas"; do
    if good_ptxas "$ptxas"; then echo "$ptxas"; return 0; fi
  done
  return 1
}

# Debian's names for what is missing, in `missing`.
list_missing() {
  missing=""
  need() { missing="$missing $*"; }
  has_compiler || need gcc libc6-dev
  have cmake || need cmake
  have ninja || need ninja-build
  have flex || need flex
  have bison || need bison
  have python3 || need python3
  has_llvm_headers || need llvm-22-dev
  has_llvm_tools || need llvm-22-tools
  python_with_numpy >/dev/null || need python3-numpy
  find_ptxas >/dev/null || python_with_pip >/dev/null || need python3-pip ca-certificates
}

# --- getting it ------------------------------------------------------------------------------------------------------

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"
  elif have sudo; then sudo "$@"
  else fail "root or sudo is needed to install:$missing"
  fi
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@"; }

apt_knows() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'; }

# LLVM 22 is in Debian 12's security archive, which minimal images sometimes leave out.
add_security_archive() {
  [ "${ID:-}" = debian ] && [ "${VERSION_CODENAME:-}" = bookworm ] ||
    fail "no LLVM 22 among this system's packages (${PRETTY_NAME:-unknown}); install LLVM 22 by hand, then run this again"
  say "adding Debian's security archive, where LLVM 22 is, to /etc/apt/sources.list.d/tilec-security.list"
  echo 'deb http://deb.debian.org/debian-security bookworm-security main' |
    as_root tee /etc/apt/sources.list.d/tilec-security.list >/dev/null
  apt_get update
}

can_install() { have apt-get && { [ "$(id -u)" -eq 0 ] || have sudo; }; }

# numpy alone needs no root.
fetch_numpy() {
  say "installing numpy into build/python/"
  python3 -m venv build/python && build/python/bin/python3 -m pip install -q numpy || fail "pip could not install numpy"
}

install_packages() {
  list_missing
  if [ "$missing" = " python3-numpy" ] && ! can_install; then fetch_numpy; list_missing; fi
  [ -n "$missing" ] || return 0
  if ! have apt-get; then
    fail "missing, by Debian's package names:$missing. This script installs only with apt; install these, then run it again"
  fi
  say "installing:$missing"
  [ ! -r /etc/os-release ] || . /etc/os-release
  apt_get update
  case "$missing" in *llvm-22*) apt_knows llvm-22-dev || add_security_archive ;; esac
  # shellcheck disable=SC2086  # a list of words
  apt_get install -y --no-install-recommends $missing || fail "apt-get could not install:$missing"
  list_missing
  [ -z "$missing" ] || fail "installed, but still not usable:$missing"
}

python_with_pip() {
  for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then echo "$python"; return 0; fi
  done
  return 1
}

# The assembler alone, out of NVIDIA's own wheel; into the build folder, where tilec looks last.
fetch_ptxas() {
  say "no ptxas of CUDA 12.8 or later: taking it from the PyPI package nvidia-cuda-nvcc into build/tools/"
  mkdir -p build/tools/wheel
  "$(python_with_pip)" -m pip download -q --no-deps --only-binary :all: -d build/tools/wheel 'nvidia-cuda-nvcc==13.0.*' ||
    fail "pip could not download nvidia-cuda-nvcc; install CUDA 12.8 or later, or set CUDA_HOME"
  python3 - <<'END'
import glob, os, shutil, zipfile
wheel = zipfile.ZipFile(glob.glob("build/tools/wheel/nvidia_cuda_nvcc-*.whl")[0])
member = next(name for name in wheel.namelist() if name.endswith("/bin/ptxas"))
with wheel.open(member) as source, open("build/tools/ptxas", "wb") as target:
    shutil.copyfileobj(source, target)
os.chmod("build/tools/ptxas", 0o755)
END
  rm -r build/tools/wheel
  good_ptxas build/tools/ptxas || fail "the ptxas in that package does not run here"
}

set_up() {
  install_packages
  find_ptxas >/dev/null || fetch_ptxas
  python=$(python_with_numpy)
  say "LLVM $("$(llvm_bin)/llvm-config" --version), ptxas $(find_ptxas), Python $python"
}

# --- building and running --------------------------------------------------------------------------------------------

# build PRESET FOLDER
build() {
  say "building preset '$1' in $2/"
  mkdir -p "$2"
  log="$2/configure.log"
  cmake --preset "$1" -DTILEC_PYTHON="$python" >"$log" 2>&1 || { cat "$log" >&2; fail "CMake failed"; }
  cmake --build "$2" -j "$(nproc)" || fail "the build failed"
  # A second build folder finds the fetched assembler too.
  if [ "$2" != build ] && [ -d build/tools ]; then ln -sfn ../build/tools "$2/tools"; fi
}

demo() {
  build release build
  mkdir -p build/demo
  say "tilec lang-examples/gemm.tile -o build/demo/gemm.cubin"
  build/bin/tilec lang-examples/gemm.tile -o build/demo/gemm.cubin
  ls -l build/demo/gemm.cubin
  say "C = A B^T for 512x512x512 in bfloat16, against numpy in double precision"
  "$python" tests/tools/gemm_reference.py --tile-run build/bin/tile-run --size 512 512 512 build/demo/gemm.cubin
}

run_tests() {
  preset=release folder=build tiers="-LE long"
  for option in "$@"; do
    case "$option" in
    --asan) preset=asan folder=build-asan; export TILE_TEST_SMALL=1 ;;
    --long) tiers=""; export TILE_TEST_LONG=1 ;;
    esac
  done
  build "$preset" "$folder"
  say "testing"
  # shellcheck disable=SC2086  # two words or none
  ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$(nproc)" $tiers
}

command=${1:-}
[ $# -eq 0 ] || shift
case "$command" in
build | demo) [ $# -eq 0 ] || usage "'$command' takes no '$1'" ;;
test)
  for option in "$@"; do
    case "$option" in --asan | --long) ;; *) usage "'test' takes --asan and --long, not '$option'" ;; esac
  done
  ;;
--help | -h | help) help; exit ;;
'') usage ;;
*) usage "there is no command '$command'" ;;
esac
set_up
case "$command" in
build) build release build; say "done: the programs are in build/bin/" ;;
demo) demo ;;
test) run_tests "$@" ;;
esac
say "the Python with numpy is $python"
