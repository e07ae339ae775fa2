#!/bin/sh
# The top of the tree is small and stays so: these names, and files whose names begin with a dot. What git tracks counts; without
# git: skipped (77).
cd "$1" || exit 2
tracked=$(git ls-files 2>/dev/null) && [ -n "$tracked" ] || { echo "no git, or nothing tracked"; exit 77; }
printf '%s\n' "$tracked" | sed 's|/.*||' | sort -u | awk '
  BEGIN {
    n = split("compiler runtime lang-examples tests docs CMakeLists.txt CMakePresets.json README.md CHANGELOG.md LICENSE bootstrap.sh", names, " ")
    for (i = 1; i <= n; i++) known[names[i]] = 1
  }
  /^\./ || $0 in known { next }
  { print $0 ": not one of the names at the top of the tree"; bad = 1 }
  END { exit bad }'
