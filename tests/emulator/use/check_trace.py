"""Whether a trace is well-formed: JSON; every event has what its kind needs; spans of one track nest or do not overlap; every
track that is used has a name. Prints how many spans of each category and name there are."""
import collections
import json
import sys


def check(path):
    trace = json.load(open(path))
    named, spans = set(), collections.defaultdict(list)
    for event in trace["traceEvents"]:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and isinstance(event["name"], str), event
        if event["ph"] == "M":
            if event["name"] == "thread_name":
                named.add((event["pid"], event["tid"]))
            assert event["args"], event
        elif event["ph"] == "X":
            assert event["ts"] >= 0 and event["dur"] >= 0, event
            assert event["ts"] + event["dur"] <= trace["otherData"]["instructions"] + 1, event
            spans[event["pid"], event["tid"]].append((event["ts"], -event["dur"], event["cat"], event["name"]))
        else:
            assert event["ph"] == "i" and event["name"] == "the trace was cut here", event
    assert set(spans) <= named, set(spans) - named
    for track in spans.values():
        ends = []
        for begin, minus, _, name in sorted(track):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or begin - minus <= ends[-1], (name, begin, minus, ends)
            ends.append(begin - minus)
    return trace, collections.Counter((s[2], s[3]) for track in spans.values() for s in track)


trace, counts = check(sys.argv[1])
for (category, name), count in sorted(counts.items()):
    print("%s %s: %d" % (category, name, count))
print("cut:", trace["otherData"].get("cut"))
