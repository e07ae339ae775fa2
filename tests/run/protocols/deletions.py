#!/usr/bin/env python3
"""Two opinions on every synchronising line of an example's final tile IR: without the line, either sync-check refuses the kernel or
the emulator finds nothing with --check all, under several orders. So what sync-check lets pass is judged by what knows nothing of it.

usage: deletions.py TILEC TILE_OPT TILE_RUN EXAMPLE [-D NAME=VALUE]...
"""
import re
import subprocess
import sys
import tempfile

SYNC = re.compile(r"\s*(sync_threads|sync_warp|fence_|tcgen05_(fence|commit)|bulk_|mbar_|mbarrier_|tmem_dealloc)")
ORDERS = ("fair", "lazy")


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return -1, "no end after 300 s"
    return done.returncode, done.stdout + done.stderr


def first_kernel(tilec, example):
    status, text = run([tilec, example, "--emit=tir"])
    if status:
        sys.exit(text)
    kernel = [part for part in re.split(r"(?m)^(?=kernel )", text) if part.strip()][0]
    return re.sub(r"variant\(\w+\)", "variant(only)", kernel).split("\n")


def judge(tools, text, sizes, folder):
    """'refused', 'clean', or what the emulator finds in what sync-check lets pass."""
    tilec, tile_opt, tile_run = tools
    path, ptx = folder + "/mutant.tir", folder + "/mutant.ptx"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    status, said = run([tile_opt, path, "--pass=sync-check", "-o", folder + "/out.tir"])
    if status == 1 and "error[E04" in said:
        return "refused"
    status, said = run([tilec, path, "--no-sync-check", "-o", ptx])
    if status:
        return said
    for order in ORDERS:
        status, said = run([tile_run, ptx, "--device", "emu", "--check", "all", "--order", order, "--random", "1"] + sizes)
        if status:
            return "order %s: %s" % (order, said)
    return "clean"


def main():
    tools, example, sizes = sys.argv[1:4], sys.argv[4], sys.argv[5:]
    lines = first_kernel(tools[0], example)
    verdicts = {}
    with tempfile.TemporaryDirectory() as folder:
        whole = judge(tools, "\n".join(lines), sizes, folder)
        if whole != "clean":
            sys.exit("%s as it is: %s" % (example, whole))
        for i in range(lines.index("body:"), len(lines)):
            if SYNC.match(lines[i]):
                verdicts[i] = judge(tools, "\n".join(lines[:i] + lines[i + 1:]), sizes, folder)
    bad = [i for i in verdicts if verdicts[i] not in ("refused", "clean")]
    for i in bad:
        print("without line %d, %s: sync-check lets it pass, the emulator does not:\n%s" % (i + 1, lines[i].strip(), verdicts[i]))
    refused = sum(verdict == "refused" for verdict in verdicts.values())
    print("%d lines: %d needed, %d not, %d disputed" % (len(verdicts), refused, len(verdicts) - refused - len(bad), len(bad)))
    return 1 if bad or refused < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
