#!/bin/sh
# No mutable globals: no object of ours has a variable in a writable section. Constant tables of pointers are relocated once
# and sit in .data.rel.ro; the one exception is bison's own yyloc_default.
cd "$2" || exit 2
objdump --version >/dev/null || exit 2
objects=$(find compiler runtime -name '*.o')
[ -n "$objects" ] || { echo "no objects in $2: build first"; exit 1; }
status=0
for object in $objects; do
  found=$(objdump -t "$object" | awk '
    NF < 5 { next }
    $(NF-2) ~ /^\.(data|bss|tdata|tbss)/ && $(NF-2) !~ /^\.data\.rel\.ro/ && $(NF-3) !~ /d/ && $NF != "yyloc_default" { print $NF }
    $(NF-2) == "*COM*" { print $NF }')
  [ -z "$found" ] && continue
  echo "$object: mutable:" $found
  status=1
done
exit $status
