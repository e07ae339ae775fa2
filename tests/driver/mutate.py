"""Feeds tilec with damaged programs: it must answer each with exit status 0 or 1, and never with a crash, a hang or another tool's text.

    mutate.py TILEC [--count N] [--seed S] PROGRAM…
Programs are cut off, lose, gain and repeat pieces, get other numbers, other names and bytes of any kind. A program that breaks tilec
is written to broken-N.tile.
"""
import argparse
import os
import random
import re
import subprocess
import sys

NUMBERS = ["0", "1", "-1", "2", "3", "7", "8", "16", "24", "31", "32", "63", "64", "100", "127", "128", "129", "256", "512", "1024", "65536",
           "2147483647", "2147483648", "-2147483648", "4294967296", "9223372036854775807", "9223372036854775808", "1e308", "0.5", "1e400",
           "0x7fffffffffffffff", "True", "None", "''", "()", "[]", "M", "K", "bx", "k", "k + 1", "A", "A_shared", "float32", "int8"]
PIECES = ["(", ")", "[", "]", ",", ":", "=", "==", "**", "//", "%", "*", "-", "not ", "lambda: ", "if ", " else ", " for x in ", "\n", "\t", " ",
          "    ", "#", '"', "'''", "\\", "@", ".", "...", "\0", "\x80", "\u00e9", "->", ":=", "return ", "pass", "while True:", "def f():", "{", "}",
          "clear(acc)", "copy(A, A)", "alloc_tmem((128, 64), float32)", "alloc_shared((64, 64), float16)", "alloc_barrier(1)",
          "for i, j in Parallel(64, 64):\n", "if bx == 0:\n", "A[0, 0]", "[0:64]", "[:, 0:0]", ".shape", ".dtype", "range(10**9)"]
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\s+|.", re.S)


def change(rng, text):
    """One change of `text`."""
    kind = rng.randrange(10)
    tokens = TOKEN.findall(text)
    if not tokens:
        return rng.choice(PIECES)
    i, j = sorted(rng.randrange(len(tokens)) for _ in range(2))
    if kind == 0:
        return text[:rng.randrange(len(text))]
    if kind == 1:
        return "".join(tokens[:i] + tokens[i + 1:])
    if kind == 2:
        return "".join(tokens[:i] + [rng.choice(PIECES)] + tokens[i:])
    if kind == 3:
        return "".join(tokens[:i] + [tokens[j]] + tokens[i + 1:])
    if kind == 4:
        return "".join(tokens[:j] + tokens[i:min(j, i + 40)] + tokens[j:])
    lines = text.splitlines(True)
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    if kind == 5:
        lines[a], lines[b] = lines[b], lines[a]
        return "".join(lines)
    if kind == 6:
        return "".join(lines[:a] + lines[a + 1:])
    if kind == 7:
        return "".join(lines[:a] + [lines[b]] + lines[a:])
    places = [n for n, t in enumerate(tokens) if t[0].isdigit()] if kind == 8 else [n for n, t in enumerate(tokens) if t[0].isalpha()]
    if not places:
        return text
    spot = rng.choice(places)
    other = rng.choice(NUMBERS) if kind == 8 else rng.choice([tokens[n] for n in places] + NUMBERS)
    return "".join(tokens[:spot] + [other] + tokens[spot + 1:])


def problem(tilec, path):
    """What is wrong with tilec's answer."""
    form = ["--check"], ["--emit=ptx"]
    for options in form:
        try:
            done = subprocess.run([tilec, path] + options, capture_output=True, timeout=60)
        except subprocess.TimeoutExpired:
            return "no answer within a minute"
        said = done.stderr.decode(errors="replace")
        if done.returncode not in (0, 1):
            return "%s ends with %d: %s" % (options[0], done.returncode, said[-1500:])
        if (done.returncode == 1) != ("error[" in said):
            return "%s ends with %d but says: %s" % (options[0], done.returncode, said[-500:])
        if re.search(r"LLVM ERROR|Assertion|runtime error:|Sanitizer|Cannot select|ptxas", said):
            return "%s says: %s" % (options[0], said[-1500:])
        if done.returncode == 1:
            return None
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tilec")
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--count", type=int, default=20, help="damaged variants of each program")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    runs = broken = 0
    for path in options.programs:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for i in range(options.count):
            rng = random.Random("%d %s %d" % (options.seed, os.path.basename(path), i))
            damaged = text
            for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
                damaged = change(rng, damaged)
            with open("damaged.tile", "wb") as file:
                file.write(damaged.encode("utf-8", "surrogateescape"))
            runs += 1
            said = problem(options.tilec, "damaged.tile")
            if said:
                os.replace("damaged.tile", "broken-%d.tile" % broken)
                print("broken-%d.tile, from %s, number %d: %s" % (broken, path, i, said), flush=True)
                broken += 1
    print("%d damaged programs, %d broke tilec" % (runs, broken))
    sys.exit(1 if broken or not runs else 0)


if __name__ == "__main__":
    main()
