#!/bin/sh
# The GPU suite, on a machine with a C compiler, CMake and (for a GPU) the CUDA driver:
#   run_suite.sh --cubins FOLDER|FILE.tar [--device both|cuda|emu] [--cases N] [--seed S] [--build FOLDER] [-j N] [--out FILE]
#                [--no-bench]
# Builds the runtime and the emulator (unless --build names a build folder), runs N random products (default 300) and
# every example on the GPU and in the emulator (--device emu: there alone), then tile-bench where it is built. Prints a
# table and writes the same to FILE (default gpu-suite.txt). Exit status 0: everything passed; 1: something failed; 2: usage.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
cubins="" device=both cases=300 seed=1 build="" jobs=$(nproc) out=gpu-suite.txt bench=1
usage() { sed -n '2,7s/^# *//p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
  --no-bench) bench=""; shift; continue ;;
  esac
  [ $# -ge 2 ] || usage
  case $1 in
  --cubins) cubins=$2 ;;
  --device) device=$2 ;;
  --cases) cases=$2 ;;
  --seed) seed=$2 ;;
  --build) build=$2 ;;
  -j) jobs=$2 ;;
  --out) out=$2 ;;
  *) usage ;;
  esac
  shift 2
done
[ -n "$cubins" ] || usage
[ -e "$cubins" ] || { echo "run_suite.sh: no $cubins; tests/gpu/build_cubins.sh makes it where tilec is" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

start=$(date +%s)
if [ -z "$build" ]; then
  build=$root/build-gpu
  { cmake -S "$root" -B "$build" -DTILEC_RUNTIME_ONLY=ON && cmake --build "$build" -j "$jobs"; } >"$work/build.log" 2>&1 ||
    { cat "$work/build.log" >&2; echo "run_suite.sh: the runtime does not build" >&2; exit 2; }
fi
suite=$build/bin/gpu_suite
[ -x "$suite" ] || { echo "run_suite.sh: no $suite" >&2; exit 2; }
case $cubins in
*.tar) mkdir "$work/cubins"; tar -C "$work/cubins" -xf "$cubins"; cubins=$work/cubins ;;
esac
products=$(ls "$cubins"/product_*.cubin | wc -l)
[ "$products" -gt 0 ] || { echo "run_suite.sh: no product_*.cubin in $cubins" >&2; exit 2; }
each=$(((cases + products - 1) / products))
few=$((each < 8 ? each : 8))

# One process for each cubin: a fault or a hang of one costs no other its result.
for cubin in "$cubins"/*.cubin; do
  name=$(basename "$cubin" .cubin)
  case $name in
  bench_*) ;;
  chain_*) echo "$name --chain 64" ;;
  fault_*) echo "$name --fault ${name#fault_}" ;;
  product_*) echo "$name --cases $each" ;;
  *) echo "$name --cases $few" ;;
  esac
done >"$work/list"
echo "run_suite.sh: seed $seed, device $device, $(wc -l <"$work/list") cubins, built in $(($(date +%s) - start)) s"
start=$(date +%s)
cat >"$work/one.sh" <<'ONE'
name=$1; shift
timeout -k 5 "$LIMIT" "$SUITE" "$CUBINS/$name.cubin" --device "$DEVICE" --seed "$SEED" "$@" >"$WORK/$name.out" 2>&1
status=$?
case $status in
0 | 1) ;;
124 | 137) echo "FAIL $name: not finished after $LIMIT s: the kernel hangs" >>"$WORK/$name.out" ;;
*) echo "FAIL $name: gpu_suite ended with status $status" >>"$WORK/$name.out" ;;
esac
grep -q '^ROW ' "$WORK/$name.out" || echo "ROW $name 0 0 0 0 1" >>"$WORK/$name.out"
ONE
export LIMIT=120 SUITE="$suite" CUBINS="$cubins" DEVICE="$device" SEED="$seed" WORK="$work"
xargs -P "$jobs" -L 1 sh "$work/one.sh" <"$work/list"

{
  printf '%-56s %6s %6s %6s %8s %6s\n' cubin cases GPU emu 'no TMA' failed
  cat "$work"/*.out | sed -n 's/^ROW //p' | while read -r name n gpu emu general failed; do
    printf '%-56s %6s %6s %6s %8s %6s\n' "$name" "$n" "$gpu" "$emu" "$general" "$failed"
  done
  cat "$work"/*.out | sed -n 's/^ROW //p' | awk '{ n += $2; g += $3; e += $4; v += $5; f += $6 }
    END { printf "%-56s %6d %6d %6d %8d %6d\n", "total", n, g, e, v, f }'
  cat "$work"/*.out | grep -v '^ROW ' || true
} >"$out"
cat "$out"
failed=$(cat "$work"/*.out | sed -n 's/^ROW //p' | awk '{ f += $6 } END { print f + 0 }')
ran=$(cat "$work"/*.out | sed -n 's/^ROW //p' | awk '{ n += $3 + $4 } END { print n + 0 }')
status=0
if [ "$failed" -ne 0 ] || [ "$ran" -eq 0 ]; then status=1; fi
echo "run_suite.sh: $ran runs, $failed failed, in $(($(date +%s) - start)) s (seed $seed); $out" | tee -a "$out"

# How fast, with what the machine has: cublasLt to compare with, or nothing.
if [ -n "$bench" ] && [ "$device" != emu ] && [ -x "$build/bin/tile-bench" ]; then
  set -- "$cubins"/bench_*.cubin --sizes 2048,4096,8192 --seconds 1 --no-zeros
  "$build/bin/tile-bench" "$@" >"$work/bench" 2>&1 || "$build/bin/tile-bench" "$@" --peer none >>"$work/bench" 2>&1 || status=1
  tee -a "$out" <"$work/bench"
fi
exit $status
