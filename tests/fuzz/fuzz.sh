#!/bin/sh
# Coverage-guided fuzzing of the emulator with libFuzzer under address and undefined-behaviour sanitizers:
#   fuzz.sh FOLDER [RUNS] [JOBS]
# builds in FOLDER, starts from corpus/ and the emulator's tests, and stops after RUNS executions of each of JOBS processes (default:
# 100000, 1) or at the first failure, whose input is left in FOLDER. Needs clang with libFuzzer. Exit 77: there is none.
set -e
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${1:?a folder is needed} runs=${2:-100000} jobs=${3:-1}
for clang in "$CLANG" clang-22 clang clang-14; do
  [ -n "$clang" ] && command -v "$clang" >/dev/null && break
  clang=
done
[ -n "$clang" ] || exit 77
mkdir -p "$folder/found" "$folder/seeds"
flags="-std=c11 -g -O1 -D_GNU_SOURCE -ffp-contract=off -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined"
# Objects are compiled side by side; fuzz_ptx is older than a source: all of it anew.
sources="$here/fuzz_ptx.c $(find "$root/runtime/emulator" -name '*.c' ! -name 'emu_*.c') $(ls "$root"/compiler/base/*.c)"
if [ ! -f "$folder/fuzz_ptx" ] || [ -n "$(find $sources -newer "$folder/fuzz_ptx")" ]; then
  rm -rf "$folder/objects" && mkdir "$folder/objects"
  printf '%s\n' $sources | sed 's|.*/\([^/]*/[^/]*\)\.c$|& \1|; s|/\([^/]*\)$|-\1.o|' |
    xargs -P 2 -L 1 sh -c '"$0" $1 -DFUZZING -I"$2/runtime/emulator" -I"$2/compiler" -c "$4" -o "$3/objects/$5"' "$clang" "$flags" "$root" "$folder" || exit 77
  "$clang" $flags "$folder"/objects/*.o -o "$folder/fuzz_ptx" -lm -lpthread || exit 77
fi
# Small programs make good seeds; words of instructions make a dictionary.
find "$root/tests/emulator" -name '*.ptx' -size -6k -exec cp {} "$folder/seeds/" \;
{ sed -n 's/^MOD([a-zA-Z0-9_]*, \("[^"]*"\).*/\1/p' "$root/runtime/emulator/ptx/mods.def"
  grep -rhoE '\{(\.name = )?"[a-z0-9_.:]+"' "$root/runtime/emulator/exec" "$root/runtime/emulator/async" | grep -oE '"[^"]*"'; } |
  sort -u >"$folder/words.dict"
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:malloc_context_size=10
cd "$folder"
set --
i=0
while [ $i -lt "$jobs" ]; do
  ./fuzz_ptx -seed=$((i + 1)) -runs="$runs" -timeout=20 -rss_limit_mb=3000 -max_len=6000 -dict=words.dict -print_final_stats=1 -verbosity=0 \
    found seeds "$here/corpus" >"log.$i" 2>&1 &
  set -- "$@" $!
  i=$((i + 1))
done
status=0
for pid; do wait "$pid" || status=1; done
tail -n 25 log.*
exit $status
