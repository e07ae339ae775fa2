#!/bin/sh
# clang-format decides layout. Versions differ in details, so that only the one of Debian 12 counts; without it: skipped (77).
# CUDA C++ of foreign kernels is left as it is.
cd "$1" || exit 2
for tool in clang-format-14 clang-format; do
  if "$tool" --version 2>/dev/null | grep -q 'version 14\.'; then
    find compiler runtime tests -name '*.[ch]' ! -path 'tests/emulator/foreign/*' -exec "$tool" --dry-run -Werror {} +
    exit
  fi
done
echo "clang-format 14 is not installed"
exit 77
