#!/bin/sh
# twins.sh EMU PTXAS-or-nothing FileCheck FILE.ptx [flags]: the program FILE must be noticed in every order, with the text that its
# CHECK lines say; its twin must run clean. The twin has the lines that start with //+ , and lacks those that end in //- .
emu=$1 ptxas=$2 filecheck=$3 file=$4
shift 4
sed -e 's,^//+,,' -e '/\/\/-$/d' "$file" > twin.ptx
target=$(sed -n 's/^\.target \([a-z0-9_]*\).*/\1/p' "$file")
for text in "$file" twin.ptx; do
  if [ -n "$ptxas" ] && ! "$ptxas" -arch="$target" "$text" -o /dev/null; then
    echo "ptxas refuses $text"
    exit 1
  fi
done
for order in fair lazy random:1; do
  if "$emu" "$file" "$@" --order $order > report 2>&1; then
    echo "$order: nothing is noticed"
    exit 1
  fi
  "$filecheck" "$file" --input-file report || exit 1
  if ! "$emu" twin.ptx "$@" --order $order; then
    echo "$order: the twin is not clean"
    exit 1
  fi
done
