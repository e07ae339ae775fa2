#!/bin/sh
# A hand-written file has at most 800 lines.
cd "$1" || exit 2
find compiler runtime tests -type f \( -name '*.[chly]' -o -name '*.def' -o -name '*.py' -o -name '*.sh' -o -name '*.txt' \) -exec awk '
  FNR == 801 { print FILENAME ": over 800 lines"; bad = 1 }
  END { exit bad }' {} +
