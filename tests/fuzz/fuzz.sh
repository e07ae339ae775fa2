#!/bin/sh
# Coverage-guided fuzzing with libFuzzer under address and undefined-behaviour sanitizers:
#   fuzz.sh FOLDER [SECONDS] [JOBS] [TARGET…]
# builds the targets in FOLDER/build with clang, starts from corpus/ and the repository's own tests, and fuzzes each target in turn for
# SECONDS with JOBS processes (default: 60, 1, all but compile). A failing input is left in FOLDER/TARGET, and the exit status is 1.
# CLANG=…: which clang. Exit 77: there is none with libFuzzer.
set -e
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${1:?a folder is needed} seconds=${2:-60} jobs=${3:-1}
shift $(($# < 3 ? $# : 3))
[ $# -gt 0 ] || set -- ptx_run ptx_parse tile tir artifact npy tuning candidates
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
for clang in "$CLANG" clang-22 clang; do
  echo 'int LLVMFuzzerTestOneInput(const char *d, long n); int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' |
    "${clang:-none}" -x c -fsanitize=fuzzer - -o "$folder/probe" 2>/dev/null && break
  clang=
done
[ -n "$clang" ] || { echo "no clang with libFuzzer"; exit 77; }
cmake -G Ninja -S "$root" -B "$folder/build" -DCMAKE_C_COMPILER="$clang" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTILEC_FUZZ=ON \
  -DTILEC_WERROR=OFF >"$folder/build.log"
cmake --build "$folder/build" --target $(printf 'fuzz_%s ' "$@") >>"$folder/build.log" || { tail -n 20 "$folder/build.log"; exit 1; }

# Words of instructions and of the languages make dictionaries.
words() { sort -u | sed 's/.*/"&"/'; }
{ sed -n 's/^MOD([a-zA-Z0-9_]*, "\([^"]*\)".*/\1/p' "$root/runtime/emulator/ptx/mods.def"
  grep -rhoE '\{(\.name = )?"[a-z0-9_.:]+"' "$root/runtime/emulator/exec" "$root/runtime/emulator/async" | grep -oE '[a-z0-9_.:]+"' | tr -d '"'
} | words >"$folder/ptx.dict"
{ sed -n 's/^[A-Z_]*(\([a-z_0-9]*\)[,)].*/\1/p' "$root"/compiler/*/*.def
  grep -hoE '"[A-Za-z_.]+"' "$root"/compiler/elab/builtin*.c "$root"/compiler/syntax/lexer.l | tr -d '"'; } | words >"$folder/tile.dict"
cp "$folder/tile.dict" "$folder/tir.dict"

# seeds NAME EXTENSION FOLDER…: the small files of the tests.
seeds() {
  name=$1 extension=$2 to="$folder/seeds/$1"
  shift 2
  mkdir -p "$to"
  find "$@" -name "*.$extension" -size -12k -exec cp {} "$to/" \;
}
seeds ptx ptx "$root/tests/emulator"
seeds tile tile "$root/tests" "$root/lang-examples"
seeds tir tir "$root/tests"

status=0
for target; do
  reader=${target%%_*} pids=
  [ "$reader" = compile ] && reader=tile
  mkdir -p "$folder/$target/found" "$folder/seeds/$reader"
  cd "$folder/$target"
  i=0
  while [ $i -lt "$jobs" ]; do
    i=$((i + 1))
    dict="$folder/$reader.dict"
    [ -f "$dict" ] || dict=
    "$folder/build/tests/fuzz/fuzz_$target" -seed=$i -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2000 -max_len=4000 \
      ${dict:+-dict="$dict"} -print_final_stats=1 found "$folder/seeds/$reader" "$here/corpus/$reader" >"log.$i" 2>&1 &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || { status=1 && echo "$target: failed, see $PWD"; }; done
  cat log.* | awk -v target="$target" '
    /number_of_executed_units/ { units += $2 }
    / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:" && $(i + 1) > cov) cov = $(i + 1) }
    END { printf "%s: %d executions, %d edges\n", target, units, cov }'
done
exit $status
