"""Reads diagnostics in JSON, checks their keys, and prints each as a line: code, severity, place, message, notes, hints."""
import json
import os
import sys


def place(x):
    file = os.path.basename(x["file"]) if x["file"] else "-"
    if x["line"] is None:
        assert x["col"] is None and x["end"] is None
        return file + ":-"
    assert set(x["end"]) == {"line", "col"}
    return "%s:%d:%d-%d:%d" % (file, x["line"], x["col"], x["end"]["line"], x["end"]["col"])


for line in open(sys.argv[1], encoding="utf-8"):
    d = json.loads(line)
    assert list(d) == ["code", "severity", "file", "line", "col", "end", "message", "notes", "hints"], list(d)
    notes = ["%s %s" % (place(n), n["message"]) for n in d["notes"]]
    print(d["code"], d["severity"], place(d), d["message"], "|", "; ".join(notes), "|", "; ".join(d["hints"]))
