#!/bin/sh
# Includes point one way: a file may include its own room and rooms with a smaller rank in its table. Rooms of equal rank
# do not see each other. Rooms that a table does not list are for nobody.
cd "$1" || exit 2

# check TABLE PREFIX: TABLE is "room:rank ...", rooms are folders of PREFIX (or the prefix of its file's own names).
check() {
  find "$2" -name '*.[chly]' -exec awk -v table="$1" -v prefix="$2/" '
    BEGIN {
      n = split(table, rows, " ")
      for (i = 1; i <= n; i++) { split(rows[i], row, ":"); rank[row[1]] = row[2] + 0 }
    }
    FNR == 1 {
      room = substr(FILENAME, length(prefix) + 1)
      sub(room in rank ? "$^" : "/.*", "", room)
      if (!(room in rank)) { print FILENAME ": room \"" room "\" is in no layer"; bad = 1; nextfile }
    }
    match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]*"/) {
      split($0, quoted, "\"")
      other = quoted[2]
      sub(other in rank ? "$^" : "/.*", "", other)
      if (other == room) next
      if (!(other in rank) || rank[other] >= rank[room]) {
        print FILENAME ":" FNR ": \"" room "\" may not include \"" quoted[2] "\""
        bad = 1
      }
    }
    END { exit bad }' {} +
}

status=0
check "base:1 types:2 ops:3 syntax:4 tir:5 elab:6 target:7 passes:8 codegen:9 tile_launch_info.h:9 driver:10" compiler || status=1
if [ -d runtime/emulator ]; then
  # ptx sees mem: loading a module allocates its variables. emu_* are the tool.
  check "base:1 npy:1 ptxemu.h:1 arch:2 num:2 mem:3 ptx:4 event.h:5 machine.h:6 async:7 exec:8 check:9 trace:9 workers.h:10 workers.c:11 ptxemu.c:11
    emu_args.h:10 emu_file.h:10 emu_args.c:11 emu_file.c:11 emu_main.c:11" runtime/emulator || status=1
fi
for room in include core cuda emu bench; do
  [ ! -d "runtime/$room" ] && continue
  # The launcher's rooms: the public headers, then core, then the two backends; emu sees the emulator's public header.
  find "runtime/$room" -name '*.[ch]' -exec awk -v room="$room" '
    BEGIN { allowed["cuda core"] = allowed["emu core"] = allowed["bench core"] = allowed["bench cuda"] = 1 }
    match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]*"/) {
      split($0, quoted, "\"")
      other = quoted[2]
      if (other == "tile.h" || other == "tile_launch_info.h") next
      if (other == "ptxemu.h" && room == "emu") next
      if (other == "npy/npy.h" && FILENAME ~ /\/run_[a-z]*\.[ch]$/) next  # the tool, not the library
      sub("/.*", "", other)
      if (other == room || (room " " other) in allowed) next
      print FILENAME ":" FNR ": \"" room "\" may not include \"" quoted[2] "\""
      bad = 1
    }
    END { exit bad }' {} + || status=1
done
exit $status
