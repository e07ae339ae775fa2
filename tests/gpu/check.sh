#!/bin/sh
# check.sh TILEC BUILD: the GPU suite as CI can run it: without a GPU, a few cases; then a kernel that is wrong, which must
# be noticed; and the configuration that needs no LLVM. Skipped (77) where there is no ptxas.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tilec=$1 build=$2
cases=64
[ -z "${TILE_TEST_SMALL:-}" ] || cases=16
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "check.sh: $*" >&2; exit 1; }

"$tilec" "$here/asserts.tile" --arch sm_90a -o "$work/asserts.cubin" 2>"$work/message" || {
  cat "$work/message" >&2
  grep -q ptxas "$work/message" && exit 77
  exit 1
}
"$here/build_cubins.sh" --tilec "$tilec" --few -o "$work/cubins.tar"
"$here/run_suite.sh" --cubins "$work/cubins.tar" --device emu --build "$build" --cases "$cases" --out "$work/suite.txt"

# Wrong in the sums, wrong around the result: both must be found.
mkdir "$work/wrong"
sed 's/clear(acc)/fill(acc, 1)/' "$here/product.tile" >"$work/sums.tile"
sed 's/copy(tile, B/copy(A[0, 0], tile); copy(tile, B/' "$here/../../lang-examples/copy.tile" >"$work/tiles.tile"
"$tilec" "$work/sums.tile" --arch sm_90a -o "$work/wrong/product_sums.cubin"
"$tilec" "$work/tiles.tile" --arch sm_90a -o "$work/wrong/tiles.cubin"
if "$here/run_suite.sh" --cubins "$work/wrong" --device emu --build "$build" --cases 8 --out "$work/wrong.txt" >/dev/null; then
  fail "wrong kernels pass"
fi
for name in product_sums tiles; do
  grep -q "^FAIL $name --seed 1 --only [0-9]*: .*emulator: .*should be" "$work/wrong.txt" || fail "$name is not reported"
done
if "$build/bin/gpu_suite" "$work/wrong/product_sums.cubin" --device emu --chain 3 >/dev/null; then
  fail "a wrong chain passes"
fi
"$build/bin/gpu_suite" "$work/asserts.cubin" --device emu --fault assert >/dev/null || fail "a device_assert is not reported"

cmake -S "$here/../.." -B "$work/runtime-only" -DTILEC_RUNTIME_ONLY=ON -DLLVM_CONFIG=/nonexistent >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; fail "TILEC_RUNTIME_ONLY does not configure"; }
cmake --build "$work/runtime-only" --target help >"$work/targets"
grep -q gpu_suite "$work/targets" || fail "no gpu_suite with TILEC_RUNTIME_ONLY"
