#!/usr/bin/env python3
"""Breaks a correct kernel's protocol in one place per mutant, and asks whether the emulator notices.

  mutate.py --kernel FILE.tile --tilec TILEC --tile-run TILE_RUN [--define M=256 ...]   a kernel of ours, or its PTX
  mutate.py --conformance DIR --stem NAME --emu TILE_EMU [--size-name large]            one of a folder that has conformance.py
  mutate.py --foreign DIR --stem FILE [--entry NAME] [--only CASE] --emu TILE_EMU       a kernel of tests/emulator/foreign

A mutant is noticed when the run ends in a wrong result, a finding, a fault or a hang, in fair, lazy or one of the random orders;
with --also, on those sizes too. Prints the rate by kind and each survivor with its line. The unchanged kernel must pass first.

Compilers put in barriers and fences that nothing needs, so not every survivor is a hole. --survivors FILE is a table of those that
somebody has looked at, a line each: KERNEL | KIND #N | STATEMENT | WHY IT IS HARMLESS (N counts the mutants of a kind). Those leave
the rate, unless the reason begins with "not noticed:", a known limit. A survivor that is not in the table is an error, and so is a line that no survivor matches.
--together drops all survivors that dropped something, one after another, and tells which the kernel can do without all at once.
--every N takes each N-th mutant of a kind only; --atleast RATE makes a lower rate exit with 1.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

ORDERS = ["fair", "lazy", "random:1", "random:2", "random:3"]

# A statement: its guard, its mnemonic up to the first blank, its operands.
STATEMENT = re.compile(r"(?P<guard>@!?[%\w$]+\s+)?(?P<op>[a-z][\w.:]*\w)(?P<args>\s[^;{}]*(?:\{[^;{}]*\}[^;{}]*)*)?;")


class Statement:
    def __init__(self, match):
        self.start, self.end, self.text = match.start(), match.end(), match.group(0)
        self.guard, self.op, self.args = match.group("guard") or "", match.group("op"), (match.group("args") or "").strip()

    def operands(self):
        """Split at commas outside of brackets and braces."""
        parts, depth, part = [], 0, ""
        for c in self.args:
            depth += (c in "[{") - (c in "]}")
            if c == "," and depth == 0:
                parts.append(part.strip())
                part = ""
            else:
                part += c
        return parts + [part.strip()]

    def with_operand(self, index, value, before=""):
        parts = self.operands()
        parts[index] = value
        statement = "%s%s %s;" % (self.guard, self.op, ", ".join(parts))
        return "{ %s %s }" % (before, statement) if before else statement


def is_register(text):
    return re.fullmatch(r"%?[A-Za-z_$][\w$]*", text) is not None


def changed(statement, index, operation, constant, width="b32"):
    """The statement with one operand changed by an integer operation: in place for a constant, else through a new register."""
    value = statement.operands()[index]
    if re.fullmatch(r"-?(0x)?[0-9a-fA-F]+", value):
        number = int(value, 0)
        number = {"add": number + constant, "xor": number ^ constant, "shr": number >> constant, "shl": number << constant}[operation]
        return statement.with_operand(index, str(number))
    if not is_register(value):
        return None
    kind = {"add": width.replace("b", "u"), "shr": width.replace("b", "u")}.get(operation, width)
    before = ".reg .%s mutant_r; %s.%s mutant_r, %s, %d;" % (width, operation, kind, value, constant)
    return statement.with_operand(index, "mutant_r", before)


def moved(statement, index, bytes):
    """The statement with the address operand moved."""
    value = statement.operands()[index]
    inner = value.strip("[] ")
    return statement.with_operand(index, "[%s+%d]" % (inner, bytes)) if value.startswith("[") and "{" not in value else None


def passes_at_once(statement):
    predicate = statement.operands()[0]
    return "%ssetp.eq.u32 %s, 0, 0;" % (statement.guard, predicate)


def mutations(s):
    """(kind, replacement) for each way to break the statement."""
    op = s.op
    if op.startswith(("mbarrier.try_wait", "mbarrier.test_wait")):
        yield "drop a wait", passes_at_once(s)
        if ".parity" in op:
            yield "shift a parity", changed(s, 2, "xor", 1)
        yield "shift a stage", moved(s, 1, 8)
    elif op.startswith(("cp.async.bulk.wait_group", "cp.async.wait_group", "cp.async.wait_all", "wgmma.wait_group", "tcgen05.wait")):
        yield "drop a wait", ""
    elif op.startswith(("fence", "tcgen05.fence", "wgmma.fence")):
        yield "drop a fence", ""
    elif op.startswith("mbarrier.arrive"):
        yield "drop an arrive", "" if s.operands()[0] in "_" or s.operands()[0].startswith("%rd") else None
        yield "shift a stage", moved(s, 1, 8)
        if "expect_tx" in op:
            yield "shift a byte count", changed(s, 2, "shr", 1)
            yield "shift a byte count", changed(s, 2, "shl", 1)
    elif op.startswith(("tcgen05.commit", "cp.async.bulk.commit_group", "cp.async.commit_group", "wgmma.commit_group")):
        yield "drop a commit", ""
        if op.startswith("tcgen05.commit"):
            yield "shift a stage", moved(s, 0, 8)
    elif op.startswith(("bar.sync", "barrier.sync", "bar.cta.sync", "barrier.cta.sync")):
        yield "drop a barrier", ""
    elif op.startswith("barrier.cluster.wait"):
        yield "drop a barrier", ""
    elif op.startswith("mbarrier.init"):
        yield "drop an init", ""
        yield "shift an arrival count", changed(s, 1, "add", 1)
        if s.operands()[1] not in ("1",) and not is_register(s.operands()[1]):
            yield "shift an arrival count", changed(s, 1, "add", -1)
    elif op.startswith("cp.async.bulk.tensor") and "mbarrier" in op:
        yield "drop a copy", ""
        yield "shift a stage", moved(s, 0, 8192)
        yield "shift a stage", moved(s, 2, 8)
    elif op.startswith("cp.async.bulk.tensor"):
        yield "shift a stage", moved(s, 1, 8192)
    elif op.startswith("tcgen05.mma"):
        for bit in (1, 6, 34):  # start address, 32 and 1024 bytes; stride between groups of 8 rows
            for operand in (1, 2):
                if not s.operands()[operand].startswith("["):
                    yield "change a descriptor", changed(s, operand, "xor", 1 << bit, "b64")
        yield "change a descriptor", changed(s, 3, "xor", 1 << 17)  # N
        yield "change a descriptor", changed(s, 3, "xor", 1 << 16)  # B transposed
    elif op.startswith("wgmma.mma_async"):
        for bit in (1, 6, 34):
            for operand in (1, 2):
                if not s.operands()[operand].startswith("{"):
                    yield "change a descriptor", changed(s, operand, "xor", 1 << bit, "b64")
    elif op.startswith("tcgen05.dealloc"):
        yield "leak tensor memory", ""
    if s.guard and op.startswith(("tcgen05.mma", "tcgen05.commit", "cp.async.bulk.tensor", "mbarrier.arrive.expect_tx")):
        yield "many issuers", s.text[len(s.guard):]


def free_early(text, statements):
    """tcgen05.dealloc right before the first tcgen05.ld, and not at the end."""
    loads = [s for s in statements if s.op.startswith("tcgen05.ld")]
    frees = [s for s in statements if s.op.startswith("tcgen05.dealloc") and loads and s.start > loads[0].end]
    if not frees:
        return []
    load, free = loads[0], frees[0]
    predicate = "{ .reg .pred mutant_p; .reg .b32 mutant_t; mov.u32 mutant_t, %tid.x; setp.lt.u32 mutant_p, mutant_t, 32; @!mutant_p bra MUTANT_SKIP; "
    early = predicate + free.op + " " + free.args + "; MUTANT_SKIP: }\n\t"
    return [("free tensor memory early", load, text[:load.start] + early + text[load.start:free.start] + text[free.end:])]


def entry_span(text, entry):
    """The text of one entry function; without a name the first, which is the one that aligned tensors run."""
    start = re.search(r"\.entry\s+%s\b" % re.escape(entry) if entry else r"\.entry\b", text).start()
    following = text.find(".entry", start + 7)
    return start, following if following >= 0 else len(text)


def all_mutants(text, entry):
    start, end = entry_span(text, entry)
    code = re.sub(r"//[^\n]*|\.(?:loc|file|reg)\s[^\n;]*;?", lambda m: " " * len(m.group(0)), text)
    statements = [Statement(m) for m in STATEMENT.finditer(code, start, end)]
    found = []
    for s in statements:
        found += [(kind, s, text[:s.start] + new + text[s.end:]) for kind, new in mutations(s) if new is not None]
    return found + free_early(text, statements)


# ---- runs

def outcome(process):
    """None when all was well, else what was noticed."""
    if process.returncode == 0:
        return None
    text = process.stdout + process.stderr
    for word, name in (("finding[", "finding"), (": hang:", "hang"), (": fault:", "fault")):
        if word in text:
            return name
    return "wrong result" if process.returncode == 1 else "refused"


class Ours:
    """A kernel of ours under tile-run, on random arrays; what it writes unchanged is what it must write."""
    def __init__(self, options, folder):
        self.ptx = os.path.join(folder, "kernel.ptx")
        if options.kernel.endswith(".ptx"):
            shutil.copy(options.kernel, self.ptx)
        else:
            subprocess.run([options.tilec, options.kernel, "-o", self.ptx] + (["--arch", options.arch] if options.arch else []), check=True)
        self.text = open(self.ptx).read()
        self.commands = [self.prepare(options, folder, sizes) for sizes in [options.define] + [also.split() for also in options.also]]

    def prepare(self, options, folder, sizes):
        run = [options.tile_run, self.ptx, "--device", "emu", "--random", "3"] + (["--sms", str(options.sms)] if options.sms else [])
        for size in sizes:
            run += ["-D", size]
        if options.entry:
            run += ["--kernel", options.entry.split("__")[0]]
        want = "%s=%s/want-%s.npy" % (options.output, folder, "-".join(sizes))
        subprocess.run(run + ["--out", want], check=True, capture_output=True)
        return run + ["--rtol", "0", "--atol", "0", "--check", options.check, "--expect", want]

    def run(self, text, order):
        with open(self.ptx, "w") as file:
            file.write(text)
        for command in self.commands:
            process = subprocess.run(command + ["--order", order], capture_output=True, text=True, timeout=120)
            if process.returncode:
                break
        return process


class Foreign:
    """A kernel of a conformance folder. What the checks say about it unchanged does not count, so that they may all be on."""
    def __init__(self, options, folder):
        self.text = open(os.path.join(options.conformance, options.stem + ".ptx")).read()
        shutil.copy(os.path.join(options.conformance, options.stem + ".json"), folder)
        self.ptx = os.path.join(folder, options.stem + ".ptx")
        self.known = os.path.join(folder, "known-findings")
        wrapper = os.path.join(folder, "emulator")
        with open(wrapper, "w") as file:
            file.write("#!/bin/sh\nexec %s %s --wrap %s %s \"$@\"\n" % (sys.executable, os.path.abspath(__file__), self.known, options.emu))
        os.chmod(wrapper, 0o755)
        self.command = [sys.executable, os.path.join(options.conformance, "conformance.py"), "--emu", wrapper, "--dir", folder,
                        "--only", options.stem, "--size", options.size_name, "--", "--check", options.check]
        for order in ORDERS:
            with open(self.known, "a") as file:
                file.write("learn\n")
            self.run(self.text, order)
        with open(self.known) as file:
            known = sorted(set(file.read().splitlines()) - {"learn"})
        with open(self.known, "w") as file:
            file.write("".join(line + "\n" for line in known))

    def run(self, text, order):
        with open(self.ptx, "w") as file:
            file.write(text)
        return subprocess.run(self.command + ["--order", order], capture_output=True, text=True, timeout=300)


class Tested:
    """A kernel of tests/emulator/foreign, in a copy of that folder."""
    def __init__(self, options, folder):
        home = os.path.join(folder, "foreign")
        shutil.copytree(options.foreign, home)
        self.ptx = os.path.join(home, "ptx", options.stem + ".ptx")
        self.text = open(self.ptx).read()
        self.command = [sys.executable, os.path.join(home, "foreign.py"), "--emu", options.emu, "--check", options.check, "-j", "1",
                        "--only", "%s.ptx:%s" % (options.stem, options.only or "")]

    def run(self, text, order):
        with open(self.ptx, "w") as file:
            file.write(text)
        return subprocess.run(self.command + ["--orders", order], capture_output=True, text=True, timeout=300)


def findings_in(text):
    """check, line and the other side's line of each finding."""
    keys, inside = [], []
    for line in text.splitlines():
        found = re.match(r".*:(\d+): finding\[(\w+)\]", line)
        if found:
            inside = [found[2], found[1]]
            keys.append(inside)
        elif inside and re.match(r"  other side", line):
            inside.append("other")
        elif inside and inside[-1] == "other" and re.match(r"  \S+:(\d+): ", line):
            inside[-1] = re.match(r"  \S+:(\d+): ", line)[1]
    return [" ".join(key) for key in keys]


def wrap(known_path, command):
    """Runs the emulator; findings that the file knows are no findings. Under `learn` it writes them down."""
    process = subprocess.run(command, capture_output=True, text=True)
    with open(known_path) as file:
        known = file.read().splitlines()
    found = findings_in(process.stderr)
    if process.returncode == 1 and "learn" in known:
        with open(known_path, "a") as file:
            file.write("".join(key + "\n" for key in found))
        return 0
    fresh = [key for key in found if key not in known]
    sys.stderr.write("new finding[%s]\n" % fresh[0] if process.returncode == 1 and fresh else process.stderr)
    return 0 if process.returncode == 1 and not fresh else process.returncode


def notice(kernel, text):
    for order in ORDERS:
        try:
            seen = outcome(kernel.run(text, order))
        except subprocess.TimeoutExpired:
            seen = "no end"
        if seen:
            return seen
    return None


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def removed_together(kernel, text, survivors):
    """Which of the dropped barriers, fences and waits are not even needed when those before them in the list are gone too."""
    gone, never = [], []
    for survivor in survivors:
        kind, statement = survivor[0], survivor[1]
        if not kind.startswith("drop"):
            continue
        without = text
        for s in sorted(gone + [statement], key=lambda s: -s.start):
            without = without[:s.start] + without[s.end:]
        if notice(kernel, without) is None:
            gone.append(statement)
            never.append(survivor)
    return never


def read_table(path, kernel):
    """(kind, number) -> (statement, reason) of one kernel's lines."""
    rows = {}
    for line in open(path) if path else []:
        if line.strip() and not line.startswith("#"):
            name, site, statement, reason = [part.strip() for part in line.split(" | ", 3)]
            kind, _, number = site.rpartition(" #")
            if name == kernel:
                rows[kind, int(number)] = statement, reason
    return rows


def is_harmless(row, statement):
    """Whether a table's row is about this statement and says that it does no harm."""
    return row[0] == statement_of(statement) and not row[1].startswith("not noticed:")


def statement_of(statement):
    return " ".join(statement.text.split())[:60]


def report(kernel, survivors, table, together):
    """Prints the survivors; returns how many the table explains, and how many errors there are."""
    never = removed_together(kernel, kernel.text, [s[:3] for s in survivors]) if together else []
    explained = errors = 0
    for kind, s, text, number in survivors:
        statement, reason = table.pop((kind, number), (None, None))
        new = " ".join(text[s.start:len(text) - (len(kernel.text) - s.end)].split())[:100] or "nothing"
        known = statement == statement_of(s)
        explained += is_harmless((statement, reason), s)
        errors += not known
        note = reason if known else "NOT EXPLAINED" + ("; the table has: %s" % statement if statement else "")
        if together and kind.startswith("drop"):
            note += "; can go with all others" if any(row[1] is s for row in never) else "; not with all others"
        print("survives: %s #%d | %s | line %d -> %s: %s" % (kind, number, statement_of(s), line_of(kernel.text, s.start), new, note))
    return explained, errors


def main():
    if sys.argv[1:2] == ["--wrap"]:
        sys.exit(wrap(sys.argv[2], sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel")
    parser.add_argument("--entry")
    parser.add_argument("--tilec", default="tilec")
    parser.add_argument("--arch", help="with --tilec: the target")
    parser.add_argument("--tile-run", default="tile-run")
    parser.add_argument("--define", action="append", metavar="NAME=VALUE", help="a size of the kernel; default M=256 N=256 K=512")
    parser.add_argument("--output", default="C")
    parser.add_argument("--conformance")
    parser.add_argument("--foreign", help="the folder tests/emulator/foreign")
    parser.add_argument("--only", help="with --foreign: the case")
    parser.add_argument("--stem", default="mm_tma_bf16_sm100")
    parser.add_argument("--size-name", default="large")
    parser.add_argument("--emu", default="tile-emu")
    parser.add_argument("--check", help="default: all; for --foreign default,race")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--also", action="append", default=[], metavar="SIZES", help="with --kernel: further sizes, as 'M=128 N=256 K=0'")
    parser.add_argument("--sms", type=int, help="with --kernel: how many multiprocessors a persistent kernel finds")
    parser.add_argument("--survivors", metavar="FILE", help="the table of harmless ones")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--kind", help="only kinds that contain this")
    parser.add_argument("--atleast", type=float, default=0.0, metavar="RATE", help="per cent")
    options = parser.parse_args()
    options.check = options.check or ("default,race" if options.foreign else "all")
    options.define = options.define or ["M=256", "N=256", "K=512"]
    with tempfile.TemporaryDirectory() as folder:
        kernel = (Ours if options.kernel else Tested if options.foreign else Foreign)(options, folder)
        before = notice(kernel, kernel.text)
        if before:
            sys.exit("the unchanged kernel fails already: " + before)
        totals, killed, count = collections.Counter(), collections.Counter(), collections.Counter()
        how, survivors = collections.defaultdict(collections.Counter), []
        for kind, statement, text in all_mutants(kernel.text, options.entry):
            count[kind] += 1
            if (options.kind and options.kind not in kind) or (count[kind] - 1) % options.every:
                continue
            totals[kind] += 1
            seen = notice(kernel, text)
            if seen:
                killed[kind] += 1
                how[kind][seen] += 1
            else:
                survivors.append((kind, statement, text, count[kind]))
        name = os.path.basename(options.kernel) if options.kernel else options.stem
        table = read_table(options.survivors, name + (":" + options.entry if options.entry else ""))
        harmless = collections.Counter(kind for kind, statement, _, number in survivors if is_harmless(table.get((kind, number), ("", "")), statement))
        for kind in totals:
            print("%-26s %3d of %3d noticed, %3d harmless   %s" % (kind, killed[kind], totals[kind], harmless[kind],
                                                                    ", ".join("%s %d" % row for row in how[kind].most_common())))
        explained, errors = report(kernel, survivors, table, options.together)
        if options.every == 1 and not options.kind:
            for (kind, number), (statement, _) in table.items():
                errors += 1
                print("the table has %s #%d | %s, which was noticed or is no mutant" % (kind, number, statement))
        dead, all = sum(killed.values()), sum(totals.values())
        rate = 100.0 * dead / max(1, all - explained)
        print("all: %d of %d noticed (%.1f %%), %d harmless by the table: %.1f %% of the others" % (dead, all, 100.0 * dead / max(1, all), explained, rate))
    sys.exit(rate < options.atleast or bool(options.survivors) and errors > 0)


if __name__ == "__main__":
    main()
