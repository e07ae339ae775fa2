#!/usr/bin/env python3
"""Prints PTX with launch information in it: the text of the second file as the constant __tile_launch_info, right after the
.address_size line. Without a second file: what launch information a PTX text holds."""
import re
import sys

ptx = open(sys.argv[1]).read()
if len(sys.argv) == 2:
    values = re.search(r"__tile_launch_info\[\d+\]\s*=\s*\{([^}]*)\}", ptx)[1]
    sys.stdout.write(bytes(int(value, 0) for value in values.split(",")).decode())
    sys.exit()
info = open(sys.argv[2], "rb").read()
constant = ".visible .const .align 1 .b8 __tile_launch_info[%d] = {%s};\n" % (len(info), ", ".join(map(str, info)))
sys.stdout.write(re.sub(r"(\.address_size 64\n)", lambda found: found[1] + constant, ptx, count=1))
