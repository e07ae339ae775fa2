#!/bin/sh
# Words that belong to one place (comments are free to name anything):
# - a target's name, sm_<n>: the target table, that target's emitters, the emulator's arch/;
# - llvm.nvvm.: the typed wrappers, codegen/nvvm*.c;
# - names of tile ops: not in passes, which read an op's definition and path.
cd "$1" || exit 2
status=0

# forbid PATTERN WHY FILE…
forbid() {
  pattern=$1 why=$2
  shift 2
  [ $# -gt 0 ] || return 0
  awk -v pattern="$pattern" -v why="$why" '
    { line = $0; sub(/\/\/.*/, "", line) }
    line ~ pattern { print FILENAME ":" FNR ": " why ": " $0; bad = 1 }
    END { exit bad }' "$@" || status=1
}

sources() { find "$@" -type f \( -name '*.[chly]' -o -name '*.def' \) 2>/dev/null; }

# shellcheck disable=SC2046  # our file names have no spaces
forbid 'sm_[0-9]' 'a target by name' $(sources compiler runtime |
  grep -v -e '^compiler/target/' -e '^compiler/codegen/sm[0-9]*a/' -e '^runtime/emulator/arch/')
forbid 'llvm\\.nvvm\\.' 'an intrinsic by name' $(sources compiler runtime | grep -v '^compiler/codegen/nvvm[a-z_]*\.c$')
ops=$(sed -n 's/^[A-Z_]*(\([a-z_0-9]*\)[,)].*/\1/p' compiler/ops/tile.def | tr '\n' '|' | sed 's/|$//')
[ -n "$ops" ] || { echo "compiler/ops/tile.def: no rows read"; exit 1; }
forbid "(OP_($ops)([^a-z_0-9]|\$))|\"($ops)\"" 'a tile op by name' $(sources compiler/passes)
exit $status
