"""Whether the excerpts of docs/roles.md are what the compiler prints: python3 excerpt.py ROLES.md NUMBER < tile IR.

A line of the excerpt holds words of a line of the output, in their order, and lines come in the order of the output. Numbers of
values do not count; '#' starts a comment; '\u2026' stands for what is left out.
"""
import re
import sys


def words(line):
    line = re.sub(r"#.*", "", line)
    return re.sub(r"%([A-Za-z_]\w*?)?(\.\d+|(?<=%)\d+)", lambda m: "%" + (m[1] or ""), line).split()


def holds(printed, wanted):
    rest = iter(printed)
    return all(word in rest for word in wanted)


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    example = text[text.index("## An example"):]
    excerpt = example.split("```\n")[1::2][int(sys.argv[2])]
    printed = iter([words(line) for line in sys.stdin])
    for line in excerpt.splitlines():
        wanted = words(line)
        if wanted and wanted != ["\u2026"] and not any(holds(line_printed, wanted) for line_printed in printed):
            sys.exit("docs/roles.md: not printed, or not here: " + line.strip())


main()
