"""blocks.py FILE.md: writes each code block that starts with `# NAME.tile` or `# NAME.py` to that file, and the first block
that defines a kernel without such a line to first.tile; the first block of C to first.c."""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
in_c = re.search(r"^```c\n(.*?)^```", text, re.M | re.S)
if in_c:
    with open("first.c", "w", encoding="utf-8") as file:
        file.write(in_c[1])
blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
for block in blocks:
    named = re.match(r"# (\w+\.(?:tile|py))\n", block)
    name = named[1] if named else "first.tile" if block.startswith("@kernel") else None
    if name:
        with open(name, "w", encoding="utf-8") as file:
            file.write(block)
