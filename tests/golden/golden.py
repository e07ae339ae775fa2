#!/usr/bin/env python3
"""Golden output: for each lang-examples/NAME.tile the tile IR after the passes (NAME.tir) and the skeleton of the PTX
(NAME.ptx.skeleton: its tcgen05, TMA, mbarrier, fence, barrier, atomic and branch instructions in order, registers left out).

    python3 tests/golden/golden.py --tilec build/bin/tilec            compares; prints a unified diff; exit 1 when they differ
    python3 tests/golden/golden.py --tilec build/bin/tilec --update   rewrites the files to what the compiler does now
    … gemm copy                                                       only these examples
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KEPT = re.compile(r"(tcgen05|cp\.async|cp\.reduce|mbarrier|fence|bar|barrier|membar|elect|griddepcontrol|setmaxnreg|wgmma|atom|red|bra|ret|exit|trap)\b")
REGISTER = re.compile(r"%(?:r|rd|rs|f|fd|h|hh|b|p|q|SP|SPL)\d*\b")
LABEL = re.compile(r"\$L__(?:BB|func|tmp)\w*")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilec", default=str(ROOT / "build/bin/tilec"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("names", nargs="*", help="examples; all when none is named")
    return parser.parse_args()


def compile_to(tilec, name, form):
    source = "lang-examples/%s.tile" % name
    run = subprocess.run([str(pathlib.Path(tilec).resolve()), source, "--emit=" + form], cwd=ROOT, capture_output=True,
                         text=True)
    if run.returncode != 0:
        sys.exit("tilec %s --emit=%s: exit %d\n%s" % (source, form, run.returncode, run.stderr))
    return run.stdout


def shorten(instruction):
    """Registers become %; a list of more than four becomes its length."""
    text = REGISTER.sub("%", instruction)
    text = re.sub(r"\{(%(?:, *%){4,})\}", lambda m: "{%% x %d}" % (m[1].count(",") + 1), text)
    return re.sub(r"\s+", " ", text)


def ptx_skeleton(ptx):
    """One block an entry: `entry NAME`, then instructions, and `L1:` where a branch goes to."""
    out = []
    for entry, body in entries(ptx):
        wanted, names = set(), {}
        for text in body:
            if instruction(text)[1].startswith("bra"):
                wanted.update(LABEL.findall(text))
        for text in body:
            if text.endswith(":") and text[:-1] in wanted:
                names[text[:-1]] = "L%d" % (len(names) + 1)
        out.append("entry %s" % entry)
        for text in body:
            if text.endswith(":") and text[:-1] in names:
                out.append(names[text[:-1]] + ":")
                continue
            guard, rest = instruction(text)
            if KEPT.match(rest):
                out.append("  " + guard + LABEL.sub(lambda m: names.get(m[0], m[0]), shorten(rest)))
    return "\n".join(out) + "\n"


def instruction(text):
    """Guard ("@ " or "") and the instruction without it."""
    rest = re.sub(r"^@!?%\w+\s+", "", text)
    return ("@ " if rest != text else ""), rest


def entries(ptx):
    """(name, lines without comments) of each entry function."""
    name, body, inside = None, [], False
    for line in ptx.splitlines():
        text = line.split("//")[0].strip()
        begin = re.search(r"\.entry (\w+)", text)
        if begin:
            name, body = begin[1], []
        elif name and line.startswith("{"):
            inside = True
        elif name and inside and line.startswith("}"):
            yield name, body
            name, inside = None, False
        elif inside and text:
            body.append(text)


def check(path, wanted_now, update):
    """True when the golden file says the same, or was made to."""
    golden = path.read_text() if path.exists() else ""
    if golden == wanted_now:
        return True
    if update:
        path.write_text(wanted_now)
        print("updated %s" % path.relative_to(ROOT))
        return True
    name = str(path.relative_to(ROOT))
    diff = difflib.unified_diff(golden.splitlines(True), wanted_now.splitlines(True), name, name + " (now)", n=3)
    sys.stdout.writelines(diff)
    return False


def check_stale(names, update):
    """Golden files of examples that are gone."""
    ok = True
    for path in sorted(HERE.glob("*.tir")) + sorted(HERE.glob("*.ptx.skeleton")):
        if path.name.split(".")[0] in names:
            continue
        if update:
            path.unlink()
        ok = update
        print("%s %s: there is no such example" % ("removed" if update else "stale", path.relative_to(ROOT)))
    return ok


def main():
    args = parse_args()
    examples = sorted(path.stem for path in (ROOT / "lang-examples").glob("*.tile"))
    names = args.names or examples
    ok = check_stale(examples, args.update) if not args.names else True
    for name in names:
        ok = check(HERE / (name + ".tir"), compile_to(args.tilec, name, "tir"), args.update) and ok
        ok = check(HERE / (name + ".ptx.skeleton"), ptx_skeleton(compile_to(args.tilec, name, "ptx")), args.update) and ok
    if not ok:
        print("\nWhen the change is meant: python3 tests/golden/golden.py --tilec %s --update" % args.tilec)
    return 0 if ok and names else 1


sys.exit(main())
