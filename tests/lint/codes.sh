#!/bin/sh
# Every diagnostic code is that of one diagnostic, has a paragraph in docs/diagnostics.md and a test whose file name starts with the code.
cd "$1" || exit 2
status=0
for code in $(sed -n 's/^DIAG(\([EF][0-9]*\),.*/\1/p' compiler/base/diag.def); do
  grep -q "$code" docs/diagnostics.md || { echo "$code: not in docs/diagnostics.md"; status=1; }
  [ -n "$(find tests -name "$code-*" -print -quit)" ] || { echo "$code: no test named tests/*/$code-…"; status=1; }
done
for code in $(sed -n 's/^DIAG(\([EF][0-9]*\),.*/\1/p' compiler/base/diag.def | sort | uniq -d); do
  echo "$code: two diagnostics have it"
  status=1
done
exit $status
