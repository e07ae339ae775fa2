#!/usr/bin/env python3
"""A family of broken protocols: examples with one mistake each, and who must notice it.

usage: broken_protocols.py TILEC TILE_RUN EXAMPLES TABLE [--only TEXT] [--show]

TABLE is text, one case after another:

    == gemm_async.tile: nobody waits for the products
    -            mbarrier_wait_parity(done, k % 2)
    E0415

The first line names an example (in EXAMPLES or beside TABLE) and the mistake. Lines with '-' stand in the example, once, in a
row; those with '+' take their place. '...' separates two edits. The last line is what must come of it: a code of a
diagnostic at compile time, or, where that cannot be decided, 'emulator TEXT' with what tile-run --check all then says, under one of
the orders fair, lazy and random:1. What tile-run needs besides follows in 'run OPTIONS'.

Every example must itself compile without an error, and with --remarks without a remark of sync-check.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile


def read_table(path):
    cases = []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if line.startswith("== "):
            example, _, mistake = line[3:].partition(": ")
            cases.append({"example": example, "mistake": mistake, "edits": [([], [])], "line": number, "run": ""})
        elif not line.strip() or line.startswith("#"):
            continue
        elif line.startswith(("-", "+")):
            cases[-1]["edits"][-1]["-+".index(line[0])].append(line[1:])
        elif line == "...":
            cases[-1]["edits"].append(([], []))
        elif line.startswith("run "):
            cases[-1]["run"] = line[4:]
        else:
            cases[-1]["expect"] = line.strip()
    return cases


def find_example(args, name):
    for folder in (os.path.dirname(args.table), args.examples):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    sys.exit("%s: there is no example %s" % (args.table, name))


def broken_text(text, edits):
    """The example with all edits; None when one does not fit."""
    for old, new in edits:
        pattern = re.compile("^" + re.escape("\n".join(old)) + "$", re.M)
        if len(pattern.findall(text)) != 1:
            return None
        text = pattern.sub(lambda _: "\n".join(new), text)
    return text


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return -1, "no end after 120 s"
    return done.returncode, done.stdout + done.stderr


def check_compile(args, path, code):
    status, text = run([args.tilec, path, "--check"])
    found = re.findall(r"error\[(\w+)\]", text)
    good = status == 1 and found and found[0] == code and "note: " in text and "hint: " in text
    return good, text


def check_emulator(args, path, options, expected):
    status, text = run([args.tilec, path, "--check"])
    if status:
        return False, "expected to compile:\n" + text
    for order in ("fair", "lazy", "random:1"):
        status, text = run([args.tile_run, path, "--device", "emu", "--check", "all", "--order", order] + options.split())
        if status and expected in text:
            return True, text
    return False, text


def check_case(args, case, folder):
    text = broken_text(open(find_example(args, case["example"]), encoding="utf-8").read(), case["edits"])
    if text is None:
        return False, "an edit does not fit the example"
    path = os.path.join(folder, os.path.basename(case["example"]))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    expected = case["expect"]
    if expected.startswith("emulator "):
        return check_emulator(args, path, case["run"], expected[len("emulator "):])
    return check_compile(args, path, expected)


def check_example(args, name):
    status, text = run([args.tilec, find_example(args, name), "--check", "--remarks"])
    return status == 0 and "prove" not in text and "if the data" not in text, text


def main():
    parser = argparse.ArgumentParser()
    for name in ("tilec", "tile_run", "examples", "table"):
        parser.add_argument(name)
    parser.add_argument("--only", default="", help="cases whose text has this")
    parser.add_argument("--show", action="store_true", help="print what is said about each")
    args = parser.parse_args()
    cases = [case for case in read_table(args.table) if args.only in case["example"] + ": " + case["mistake"]]
    missed = 0
    for name in sorted({case["example"] for case in cases}):
        good, text = check_example(args, name)
        if not good:
            missed += 1
            print("%s is refused or not proved:\n%s" % (name, text))
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            good, text = check_case(args, case, folder)
            missed += not good
            if args.show or not good:
                print("%s:%d: %s: %s: %s: %s\n%s" % (args.table, case["line"], case["example"], case["mistake"],
                                                      case["expect"], "noticed" if good else "MISSED", text))
    compiled = sum(not case["expect"].startswith("emulator") for case in cases)
    print("%d broken protocols: %d to be refused, %d for the emulator, %d missed" % (
        len(cases), compiled, len(cases) - compiled, missed))
    return 1 if missed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
