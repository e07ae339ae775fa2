"""Mutates the examples and compiles what comes out: whatever the text, tilec ends by itself with exit status 0 or 1, has
said why when it is 1, and never reports a fault of its own.

    python3 mutate.py TILEC EXAMPLES-FOLDER COUNT [SEED]
"""
import pathlib
import random
import re
import subprocess
import sys

TOKEN = re.compile(r"[A-Za-z_]\w*|\d+|[^\w\s]|\n *")
SPICE = ["0", "1", "-1", "2147483648", "99999999999999999999", "3", "48", "128", "(", ")", "[", "]", ":", ",", "=", "*", "**", "//", "%",
         "None", "True", "1.5", "'x'", "k", "bx", "A", "C", "A_shared", "C_local", "float32", "bfloat16", "e4m3", "int8", "bool",
         "if", "else", "for", "in", "range", "copy", "gemm", "fill", "clear", "alloc_shared", "alloc_fragment", "alloc_tmem",
         "alloc_var", "Parallel", "serial", "exp2", "cast", "and", "not", "\n        ", "\n    ", "lambda", "@"]


def mutate(text, rng):
    tokens = [(m.start(), m.end()) for m in TOKEN.finditer(text)]
    begin, end = tokens[rng.randrange(len(tokens))]
    kind = rng.randrange(5)
    if kind == 0:
        return text[:begin] + text[end:]
    if kind == 1:
        return text[:begin] + rng.choice(SPICE) + text[end:]
    if kind == 2:
        return text[:begin] + rng.choice(SPICE) + " " + text[begin:]
    if kind == 3:
        other = tokens[rng.randrange(len(tokens))]
        return text[:begin] + text[other[0]:other[1]] + text[end:]
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines)), lines[rng.randrange(len(lines))])
    return "\n".join(lines)


def problem(tilec, path):
    try:
        run = subprocess.run([tilec, path, "--emit=ptx"], capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "more than 60 s"
    if run.returncode not in (0, 1):
        return "exit status %d" % run.returncode
    if run.returncode == 1 and b"error[" not in run.stderr:
        return "no error reported"
    if b"internal error" in run.stderr or b"E0603" in run.stderr:
        return "a fault of its own"
    return None


def main():
    tilec, examples, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    sources = [path.read_text() for path in sorted(pathlib.Path(examples).glob("*.tile"))]
    failed = 0
    for i in range(count):
        text = rng.choice(sources)
        for _ in range(rng.randrange(1, 4)):
            text = mutate(text, rng)
        path = "mutant.tile"
        pathlib.Path(path).write_text(text)
        wrong = problem(tilec, path)
        if wrong:
            failed += 1
            keep = "mutant-%d.tile" % i
            pathlib.Path(keep).write_text(text)
            print("%s: %s" % (keep, wrong))
    print("%d mutants, %d failed" % (count, failed))
    return failed > 0


sys.exit(main())
