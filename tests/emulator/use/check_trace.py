"""Whether a trace is what readers of Chrome's trace-event format take, by the format's own rules and nothing looser:

- strict JSON: no key twice in an object, no NaN, one object with `traceEvents`;
- every event is of a kind that the format has, with exactly the fields of that kind and of their types; complete spans (X) have a
  duration, begins and ends (B, E) pair up by track; names of processes and tracks come once, before what they name is used;
- spans of one track nest or do not overlap;
- order: events stand in the order in which they ended, time starts at 0 and does not pass the number of instructions, and an
  operation of an engine begins at an instruction that issued one of that name on that line.

Prints how many spans of each category and name there are. Any mistake is a traceback.
"""
import collections
import json
import re
import sys

SPAN = {"ph": str, "cat": str, "name": str, "pid": int, "tid": int, "ts": int, "dur": int, "args": dict}
FIELDS = {
    "X": SPAN,
    "B": {key: kind for key, kind in SPAN.items() if key != "dur"},
    "E": {"ph": str, "pid": int, "tid": int, "ts": int},
    "i": {"ph": str, "name": str, "pid": int, "tid": int, "ts": int, "s": str},
    "M": {"ph": str, "name": str, "pid": int, "tid": int, "args": dict},
}
METADATA = {"process_name": ("name", str), "thread_name": ("name", str), "process_sort_index": ("sort_index", int), "thread_sort_index": ("sort_index", int)}


def unique(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), "a key twice: %s" % keys
    return dict(pairs)


def no_constant(text):
    raise AssertionError("%s is no JSON" % text)


def load(path):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, object_pairs_hook=unique, parse_constant=no_constant)
    assert set(trace) <= {"traceEvents", "displayTimeUnit", "otherData"}, list(trace)
    assert trace["displayTimeUnit"] in ("ns", "ms") and isinstance(trace["otherData"], dict) and isinstance(trace["traceEvents"], list)
    return trace


def check_fields(event):
    fields = FIELDS[event["ph"]]
    assert set(event) == set(fields), event
    for key, kind in fields.items():
        assert type(event[key]) is kind, event
    assert event["pid"] > 0 and event["tid"] > 0 and event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0, event
    if event["ph"] == "M":
        key, kind = METADATA[event["name"]]
        assert list(event["args"]) == [key] and type(event["args"][key]) is kind, event
    else:
        assert event.get("s", "g") in ("g", "p", "t") and all(type(value) is str for value in event.get("args", {}).values()), event


def check_names(events):
    """Names come once, and before the first event of what they name."""
    named = set()
    for event in events:
        process, track = event["pid"], (event["pid"], event["tid"])
        if event["ph"] == "M":
            what = (event["name"], process if event["name"].startswith("process") else track)
            assert what not in named, ("named twice", event)
            named.add(what)
        elif event["ph"] != "i":
            assert ("process_name", process) in named and ("thread_name", track) in named, ("no name before", event)


def spans_of(events):
    """Complete spans, and begins paired with their ends."""
    spans, open_ones = [], collections.defaultdict(list)
    for event in events:
        track = event["pid"], event["tid"]
        if event["ph"] == "X":
            spans.append(event)
        elif event["ph"] == "B":
            open_ones[track].append(event)
        elif event["ph"] == "E":
            begin = open_ones[track].pop()
            assert event["ts"] >= begin["ts"], (begin, event)
            spans.append({**begin, "dur": event["ts"] - begin["ts"]})
    assert not any(open_ones.values()), "begun and never ended"
    return spans


def check_nesting(spans):
    tracks = collections.defaultdict(list)
    for span in spans:
        tracks[span["pid"], span["tid"]].append((span["ts"], -span["dur"], span["name"]))
    for track in tracks.values():
        ends = []
        for begin, minus, name in sorted(track):
            while ends and ends[-1] <= begin:
                ends.pop()
            assert not ends or begin - minus <= ends[-1], (name, begin, minus, ends)
            ends.append(begin - minus)


def line_of(span):
    return re.match(r"line (\d+)", span["args"]["detail"])[1]


def check_order(spans, total):
    last = 0
    for span in spans:
        end = span["ts"] + span["dur"]
        assert end <= total + 1, (span, total)
        assert end >= last - 1, ("out of order: ended before", last, span)  # an issue lasts one instruction and is written at its begin
        last = max(last, end)
    issued = {(span["name"], line_of(span), span["ts"]) for span in spans if span["cat"] == "issue"}
    for span in spans:
        if span["cat"] == "operation":
            assert (span["name"], line_of(span), span["ts"]) in issued, ("nobody issued", span)


def check(path):
    trace = load(path)
    events = trace["traceEvents"]
    for event in events:
        check_fields(event)
    check_names(events)
    spans = spans_of(events)
    check_nesting(spans)
    check_order(spans, trace["otherData"]["instructions"])
    cuts = [event for event in events if event["ph"] == "i"]
    assert len(cuts) == ("cut" in trace["otherData"]) and (not cuts or events[-1] is cuts[0]), cuts
    return trace, collections.Counter((span["cat"], span["name"]) for span in spans)


trace, counts = check(sys.argv[1])
for (category, name), count in sorted(counts.items()):
    print("%s %s: %d" % (category, name, count))
print("cut:", trace["otherData"].get("cut"))
