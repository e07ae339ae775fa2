#!/usr/bin/env python3
"""The gallery of messages, docs/gallery.md: what the compiler says to the programs of the tests that are named after a code.

    gallery.py --tilec build/bin/tilec            exit 1, with a diff, when the gallery is not what the tests give
    gallery.py --tilec build/bin/tilec --update   writes it
    gallery.py --tilec build/bin/tilec --missing  lists messages of the sources that no test of that kind shows

Messages that differ in nothing but names and numbers are shown once. Places are left out, so that a line more in a test changes nothing.
"""
import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GALLERY = ROOT / "docs/gallery.md"
HEAD = """# Gallery of messages

Every diagnostic as a program meets it, by code; what a code means and what to do is in [diagnostics.md](diagnostics.md). This file is made from the tests
that are named after a code by `python3 tests/tools/gallery.py --tilec build/bin/tilec --update`; `ctest -R docs/gallery` says when it is stale.
"""
PLACE = re.compile(r"^(?:[^\s:]+:\d+:\d+|[^\s:]+): (?=error|warning|note|remark)")
START = re.compile(r"^(?:\S+: )?(error|warning)\[(E\d+)\]: (.*)")


def commands(path):
    """The compiler's command lines in the RUN lines, without what surrounds them."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for line in re.findall(r"RUN: *(.*)", text):
        if "%errors" in line:
            yield ["%tilec", "--check", "%s"]
            continue
        found = re.search(r"(%tilec|%tile-opt)\b([^|>&;]*)", line)
        if not found or "$" in found[0] or "'" in found[0]:
            continue
        words = shlex.split(re.sub(r"2$", "", found[0]))
        if "-o" in words:
            at = words.index("-o")
            words[at:at + 2] = ["--check"] if words[0] == "%tilec" else []
        if any(w.startswith("%") and w not in ("%tilec", "%tile-opt", "%s") and "Inputs" not in w and "%root" not in w for w in words):
            continue
        yield words


def prepare(path, folder):
    """Runs the lines that make a program of another one for the compiler's."""
    for line in re.findall(r"RUN: *(sed .*>.*)", path.read_text(encoding="utf-8", errors="replace")):
        line = line.replace("%%", "\0").replace("%S", str(path.parent)).replace("%s", str(path)).replace("%examples", str(ROOT / "lang-examples"))
        subprocess.run(["sh", "-c", line.replace("\0", "%")], cwd=folder, check=True)


def run(words, path, tilec, folder):
    binaries = {"%tilec": tilec, "%tile-opt": os.path.join(os.path.dirname(tilec), "tile-opt")}
    line = []
    for word in words:
        word = binaries.get(word, word)
        made = os.path.join(folder, word)
        line.append(made if os.path.exists(made) else word.replace("%s", path.name).replace("%S/", "").replace("%root/tests", "..").replace("%root", "../.."))
    done = subprocess.run(line, capture_output=True, text=True, errors="replace", cwd=path.parent, timeout=120)
    return done.stderr


def blocks(text):
    """Diagnostics: (code, message, lines)."""
    current = None
    for line in text.splitlines():
        start = START.match(line)
        if start:
            if current:
                yield current
            current = (start[2], start[3], [PLACE.sub("", line)])
        elif current and (PLACE.match(line) or line.startswith(("  ", "note:"))):
            shown = re.sub(r"^ *\d+ \|", "      |", PLACE.sub("", line))
            current[2].append(shown)
        elif current:
            current[2].append(line)
    if current:
        yield current


def kind_of(message):
    """The message without what differs from program to program."""
    message = re.sub(r"'[^']*'", "'…'", message)
    message = re.sub(r"\b[A-Za-z_][A-Za-z_0-9]*(?:\[[^]]*\])? is (?=-?\d|\?)", "… is ", message)
    return re.sub(r"-?\d+(?:\.\d+)?|\b[fiu]\d+\b", "N", message)


def tests():
    for path in sorted((ROOT / "tests").glob("*/**/E[0-9][0-9][0-9][0-9]-*")):
        if path.suffix in (".tile", ".tir", ".test") and "Inputs" not in path.parts:
            yield path


def collect(tilec):
    found = {}
    for path in tests():
        with tempfile.TemporaryDirectory() as folder:
            prepare(path, folder)
            for words in commands(path):
                for code, message, lines in blocks(run(words, path, tilec, folder)):
                    found.setdefault(code, {}).setdefault(kind_of(message), (message, lines))
    return found


def summaries():
    table = (ROOT / "compiler/base/diag.def").read_text(encoding="utf-8")
    return {code: (name, summary) for code, name, summary in re.findall(r'DIAG\((E\d+), (\w+), "([^"]*)"\)', table)}


def gallery(found):
    out = [HEAD]
    for code, (name, summary) in sorted(summaries().items()):
        if code not in found:
            continue
        out.append("\n## %s %s\n\n%s.\n" % (code, name, summary[0].upper() + summary[1:]))
        for _, lines in found[code].values():
            out.append("\n```\n%s\n```\n" % "\n".join(line.rstrip() for line in lines[:24]))
    return "".join(out)


def formats():
    """The sentences of the sources: (place, format)."""
    call = re.compile(r"diag_(?:error|warning)\(\s*[^;]*?((?:\"(?:[^\"\\]|\\.)*\"(?:\s*PRI\w+)?\s*)+)", re.S)
    for path in sorted((ROOT / "compiler").glob("*/**/*.c")):
        for match in call.finditer(path.read_text(encoding="utf-8")):
            yield path.relative_to(ROOT), "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1]))


def missing(found):
    shown = [message for kinds in found.values() for message, _ in kinds.values()]
    for path, text in formats():
        pieces = re.split(r"%(?:\.\*)?[-0-9]*(?:ll|l|z)?[sducgxf]?", text.replace("%%", "\0"))
        pattern = re.compile(".*".join(re.escape(piece.replace('\\"', '"').replace("\0", "%")) for piece in pieces))
        if not any(pattern.match(message) for message in shown):
            print("%s: %s" % (path, text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilec", default=str(ROOT / "build/bin/tilec"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    found = collect(os.path.abspath(options.tilec))
    if options.missing:
        missing(found)
        return 0
    text, old = gallery(found), GALLERY.read_text(encoding="utf-8") if GALLERY.exists() else ""
    if options.update:
        GALLERY.write_text(text, encoding="utf-8")
        return 0
    if text == old:
        return 0
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), "docs/gallery.md", "what the tests give"))
    print("docs/gallery.md is stale: python3 tests/tools/gallery.py --tilec %s --update" % options.tilec)
    return 1


if __name__ == "__main__":
    sys.exit(main())
