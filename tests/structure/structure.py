"""What the compiler's output must look like to be fast, where no GPU is at hand to say so.

    structure.py ptxas TILEC PTXAS EXAMPLES ARCH        every example: no spill, no serialised wgmma, nothing before griddepcontrol.wait, registers and lines of PTX within limits.txt
    structure.py ptxas TILEC PTXAS EXAMPLES ARCH --update    writes that target's limits: what ptxas says now, a quarter more lines
    structure.py roles TILEC EXAMPLES ARCH              the products with roles: their rings, loops, descriptors, barriers and stores
The first form reads ptxas' report, the second the final tile IR and the PTX.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS = os.path.join(HERE, "limits.txt")
BYTES = {"f64": 8, "f32": 4, "i32": 4, "u32": 4, "bf16": 2, "f16": 2, "e4m3": 1, "e5m2": 1, "i8": 1, "u8": 1}
HEAD = """# What ptxas gives each example's entries at -O2 and how long their PTX may be: target, example, entry: registers, lines. `structure.py ptxas … --update`
# writes it; a number that grows is a slower kernel or a slower compiler, so read the difference.
"""
# Examples with roles: bytes of an operand's element, least stages, whether blocks take tile after tile, blocks of 64 rows that a warpgroup of sm_90a has.
WITH_ROLES = {"gemm": (2, 4, True, 1), "gemm_fp8": (1, 2, True, 2), "gemm_epilogue": (2, 2, False, 2), "gemm_batched": (2, 3, False, 2)}

failures = []


def check(holds, *what):
    if not holds:
        failures.append(" ".join(str(word) for word in what))


def compiled(tilec, example, arch, form):
    done = subprocess.run([tilec, example, "--arch", arch, "-O2", "--emit=" + form], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


# ---- ptxas

def entries_of(ptx):
    """{entry: its lines without comments, directives of debug information and empty lines}"""
    entries, name = {}, None
    for line in ptx.splitlines():
        text = line.split("//")[0].strip()
        begin = re.match(r"\.visible \.entry (\w+)\(", text)
        if begin:
            name = begin[1]
            entries[name] = []
        elif text == "}":
            name = None
        elif name and text and not text.startswith((".loc", "$L__tmp", "$L__func")):
            entries[name].append(text)
    return entries


def report_of(ptxas, ptx, arch):
    """{entry: registers}; spills and messages are failures."""
    done = subprocess.run([ptxas, "-v", "-arch=" + arch, "-", "-o", os.devnull], input=ptx, capture_output=True, text=True)
    text = done.stdout + done.stderr
    check(done.returncode == 0, "ptxas ends with", done.returncode, text[:500])
    for message in re.findall(r".*\(C7\d{3}\).*", text):
        check(False, message)
    names = re.findall(r"Function properties for (\w+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", text)
    for name, stack, stores, loads in names:
        check(int(stack) + int(stores) + int(loads) == 0, name, "spills: stack", stack, "stores", stores, "loads", loads)
    registers = re.findall(r"Used (\d+) registers", text)
    check(len(names) == len(registers), "a report of", len(names), "functions has", len(registers), "counts of registers")
    return {name[0]: int(count) for name, count in zip(names, registers)}


def check_grid_wait(entry, lines):
    """Exactly one, in front of everything that touches global memory and of the next kernel's start."""
    waits = [i for i, line in enumerate(lines) if line == "griddepcontrol.wait;"]
    check(len(waits) == 1, entry, "has", len(waits), "griddepcontrol.wait")
    touches = r"(@!?%p\d+ )?(ld\.global|st\.global|atom\.|red\.|cp\.async\.bulk\.|cp\.reduce|call|griddepcontrol\.launch)"
    first = next((i for i, line in enumerate(lines) if re.match(touches, line)), len(lines))
    check(waits and waits[0] < first, entry, "touches global memory before griddepcontrol.wait:", lines[first:first + 1])


def limits(arch):
    rows = {}
    with open(LIMITS) as file:
        for line in file:
            row = re.match(r"(\w+) (\w+) (\w+): (\d+) (\d+)", line)
            if row and row[1] == arch:
                rows[row[2], row[3]] = int(row[4]), int(row[5])
    return rows


def measured(tilec, ptxas, examples, arch):
    """{(example, entry): (registers, lines)} of the examples that the target takes."""
    rows = {}
    for file in sorted(os.listdir(examples)):
        if not file.endswith(".tile"):
            continue
        example, before = file[:-5], len(failures)
        ptx = compiled(tilec, os.path.join(examples, file), arch, "ptx")
        if ptx is None:
            continue
        entries = entries_of(ptx)
        for entry, count in report_of(ptxas, ptx, arch).items():
            rows[example, entry] = count, len(entries[entry])
            check_grid_wait(entry, entries[entry])
            check(not any(".local" in line for line in entries[entry]), entry, "has local memory")
        failures[before:] = ["%s: %s" % (example, text) for text in failures[before:]]
    return rows


def update(rows, arch):
    with open(LIMITS) as file:
        kept = [line for line in file if re.match(r"sm_\w+ ", line) and not line.startswith(arch + " ")]
    kept += ["%s %s %s: %d %d\n" % (arch, example, entry, count, lines * 5 // 4) for (example, entry), (count, lines) in rows.items()]
    with open(LIMITS, "w") as file:
        file.write(HEAD)
        file.writelines(sorted(kept))


def run_ptxas(tilec, ptxas, examples, arch, rewrite):
    rows = measured(tilec, ptxas, examples, arch)
    if rewrite:
        update(rows, arch)
    wanted = limits(arch)
    check(set(wanted) == set(rows), "limits.txt and the compiler differ about", sorted(set(wanted) ^ set(rows)))
    for key, (registers, lines) in rows.items():
        most = wanted.get(key, (0, 0))
        check(registers <= most[0] + 8, *key, "uses", registers, "registers, limits.txt says", most[0])
        check(lines <= most[1], *key, "is", lines, "lines of PTX, limits.txt says", most[1])


# ---- tile IR

class Op:
    """An op of tile IR text: its result, name, operands and attributes as text, its body and what it stands in."""

    def __init__(self, text, parent):
        head = re.match(r"(?:%([\w.]+)(?:, %[\w.]+)* = )?([\w]+)\s*(.*)", text)
        self.result, self.name, self.rest = head[1], head[2], head[3].removesuffix("{").strip()
        self.text, self.parent, self.body = text, parent, []

    def all(self):
        for op in self.body:
            yield op
            yield from op.all()

    def named(self, name):
        return [op for op in self.all() if op.name == name]

    def around(self, name):
        op = self.parent
        while op and op.name != name:
            op = op.parent
        return op

    def operands(self):
        return re.findall(r"%([\w.]+)", re.sub(r"\{.*?\}", "", self.rest).split(" : ")[0])

    def shape(self):
        found = re.findall(r": (\w+)\[([\d, ]+)\] \w+", self.text)
        return (found[-1][0], [int(n) for n in found[-1][1].split(",")]) if found else (None, [])

    def bytes(self):
        dtype, shape = self.shape()
        size = BYTES[dtype]
        for extent in shape:
            size *= extent
        return size


def kernel_of(text, variant):
    """The ops of a kernel's variant in a root op, and its header lines."""
    start = next(m.start() for m in re.finditer(r"^kernel .*", text, re.M) if "variant(%s)" % variant in m[0] or "variant(" not in m[0])
    lines = text[start:].split("\n}\n")[0].splitlines()
    root = Op("kernel", None)
    at, header = root, []
    for line in lines[1:]:
        line = line.strip()
        if line.startswith(("map ", "guard ", "shared ", "tmem ")):
            header.append(line)
        elif line.startswith("}"):
            at = at.parent if at.parent else at
        elif line and not line.endswith(":") and not line.startswith("grid"):
            op = Op(line, at)
            at.body.append(op)
            if line.endswith("{"):
                at = op
    return root, header


def by_result(root):
    return {op.result: op for op in root.all() if op.result}


def root_of(defs, name):
    """The allocation that a view shows a part of."""
    op = defs.get(name)
    while op and op.name == "view":
        op = defs.get(op.operands()[0])
    return op


def number(defs, name):
    literal = re.match(r"c(\d+)$", name)
    return int(literal[1]) if literal else int(re.search(r"bits = (\d+)", defs[name].rest)[1])


def roles_of(root):
    """The arms of the branch that splits the threads."""
    ops = [op for op in root.body if op.name == "role"]
    return [op for op, behind in zip(ops, ops[1:] + [None]) if "arm = true" in op.rest or (behind and "arm = true" in behind.rest)]


def threads_of(role):
    lo, hi = (int(n) for n in re.search(r"lo = (\d+), hi = (\d+)", role.rest).groups())
    return hi - lo


def check_maps(header, dtype_bytes):
    loads = [re.match(r"map \d+ %(\w+) box \[([\d, ]+)\] swizzle (\d+) load", line) for line in header]
    loads = [m for m in loads if m]
    check(len(loads) >= 2, "fewer than two maps are loaded through")
    for m in loads:
        inner = int(m[2].split(",")[-1])
        check(inner * dtype_bytes == 128 and m[3] == "128", "the box of", m[1], "is", inner * dtype_bytes, "bytes wide, swizzled over", m[3])


def check_stages(root, least):
    rings = [op for op in root.named("alloc") if re.search(r"@ shared \d+B", op.text) and len(op.shape()[1]) == 3]
    check(len(rings) >= 2, "no rings of stages")
    for op in rings:
        offset, stages = int(re.search(r"@ shared \d+B \+(\d+)", op.text)[1]), op.shape()[1][0]
        check(offset % 1024 == 0 and op.bytes() // stages % 1024 == 0, "stages of", op.result, "do not stand on 1024 bytes:", op.text)
        if "_shared" in op.result and not op.result.startswith("C"):
            check(stages >= least, op.result, "has", stages, "stages, not", least)


def check_bytes(root, defs):
    """What each stage announces is what its copies bring."""
    fills = [op for op in root.named("one_thread") if any("tma_load" in copy.rest for copy in op.body)]
    check(fills, "no TMA loads")
    for op in fills:
        brought = sum(defs[copy.operands()[1]].bytes() for copy in op.body if copy.name == "copy" and "tma_load" in copy.rest)
        told = sum(number(defs, tx.operands()[1]) for tx in op.body if tx.name == "mbar_expect_tx")
        check(brought == told, "a round brings", brought, "bytes and announces", told)


def arrivals(op):
    """How many arrive there together."""
    if op.name == "tcgen05_commit" or op.around("one_thread"):
        return 1
    role = op.around("role")
    return threads_of(role) // (32 if op.parent.name == "if" and threads_of(role) > 1 else 1)


def check_arrivals(root, defs):
    """Each place that gives a phase back does it with as many arrivals as the barrier counts."""
    seen = set()
    for op in root.all():
        if op.name not in ("mbar_arrive", "tcgen05_commit") and not (op.name == "mbar_expect_tx" and "arrive = false" not in op.rest):
            continue
        barrier = root_of(defs, op.operands()[0])
        count = int(re.search(r"\[(\d+)", barrier.rest)[1])
        seen.add(barrier.result)
        check(arrivals(op) == count, barrier.result, "counts", count, "but", arrivals(op), "arrive at:", op.text)
    check(len(seen) >= 2, "fewer than two barriers are arrived on")


def check_tmem(root, arch):
    allocs, frees = root.named("tmem_alloc"), root.named("tmem_dealloc")
    if arch == "sm_90a":
        return check(not allocs, "tensor memory on", arch)
    columns = [int(re.search(r"columns = (\d+)", op.rest)[1]) for op in allocs + frees]
    check(len(allocs) == len(frees) == 1 and len(set(columns)) == 1, "tensor memory taken and given back:", columns)
    check(columns and columns[0] <= 512 and columns[0] & (columns[0] - 1) == 0, "columns of tensor memory:", columns)
    check(frees and frees[0].parent is root, "tensor memory is not given back on every path")


def check_stores(root):
    """No store is waited for where it stands: a panel is waited for before it is filled again, and only its reading."""
    stores = [op for op in root.named("copy") if "tma_store" in op.rest]
    check(stores, "no TMA store")
    for op in stores:
        waits = [other for other in op.parent.body[op.parent.body.index(op):] if other.name == "bulk_wait"]
        check(all("pending = 1, read = true" in wait.rest for wait in waits), "a store is waited for at once")
    check(any("pending = 1, read = true" in wait.rest for wait in root.named("bulk_wait")), "no wait lets a store run on")


def check_persistent(root):
    for role in roles_of(root):
        counts = {op.result for op in role.named("block_count")}
        check(any(counts & set(op.operands()) for op in role.named("for")), "a role does not take tile after tile")


# ---- PTX

def blocks_of(lines):
    """Basic blocks as [lines, numbers of the blocks behind]; the first is the entry."""
    blocks, at, labels = [[[], []]], 0, {}
    for line in lines:
        if line.endswith(":"):
            if blocks[-1][0]:
                blocks.append([[], []])
            labels[line[:-1]] = len(blocks) - 1
            continue
        blocks[-1][0].append(line)
        if re.search(r"\bbra\b|^ret|^trap|^exit", line):
            blocks.append([[], []])
    for at, (body, behind) in enumerate(blocks):
        last = body[-1] if body else ""
        target = re.search(r"bra(?:\.uni)?\s+(\$\w+)", last)
        if target:
            behind.append(labels[target[1]])
        if at + 1 < len(blocks) and not re.match(r"(bra|ret|trap|exit)", last):
            behind.append(at + 1)
    return blocks


def dominators(blocks):
    before = [[] for _ in blocks]
    for at, (_, behind) in enumerate(blocks):
        for to in behind:
            before[to].append(at)
    above = [set(range(len(blocks))) for _ in blocks]
    above[0], changed = {0}, True
    while changed:
        changed = False
        for at in range(1, len(blocks)):
            new = set.intersection(*(above[b] for b in before[at])) | {at} if before[at] else {at}
            changed, above[at] = changed or new != above[at], new
    return before, above


def loops_of(blocks):
    """The sets of blocks of the natural loops."""
    before, above = dominators(blocks)
    loops = {}
    for at, (_, behind) in enumerate(blocks):
        for head in behind:
            if head not in above[at]:
                continue
            inside, work = loops.setdefault(head, {head}), [at]
            while work:
                block = work.pop()
                if block not in inside:
                    inside.add(block)
                    work += before[block]
    return list(loops.values())


def main_loops(lines, pattern):
    """Of each innermost loop with that instruction the lines of every round, and all lines."""
    blocks = blocks_of(lines)
    _, above = dominators(blocks)
    loops, found = loops_of(blocks), []
    for at, (body, _) in enumerate(blocks):
        around = [loop for loop in loops if at in loop]
        if around and any(re.search(pattern, line) for line in body):
            inner = min(around, key=len)
            if inner not in found:
                found.append(inner)
    pairs = []
    for loop in found:
        head = next(at for at in loop if all(at in above[other] for other in loop))
        ends = [at for at in loop if head in blocks[at][1]]
        always = [at for at in sorted(loop) if all(at in above[end] for end in ends)]
        pairs.append([[line for at in part for line in blocks[at][0]] for part in (always, sorted(loop))])
    return pairs


def check_main_loops(lines, arch):
    product = r"wgmma\.mma_async" if arch == "sm_90a" else r"tcgen05\.mma"
    for pattern in product, r"cp\.async\.bulk\.tensor\S*\.shared::c\w+\.global":
        loops = main_loops(lines, pattern)
        check(loops, "no loop with", pattern)
        for every_round, whole in loops:
            for line in every_round:
                check(not re.search(r"\b(bar\.sync|barrier|membar|fence\.proxy)", line), "in each round of a main loop:", line)
            for line in whole:
                check(not re.search(r"\b(trap|div\.|rem\.)|\.local|\bld\.global|\bst\.global", line), "in a main loop:", line)


def check_late_results(lines):
    """Results of a tile leave in the rounds of the next one's products, not in every round."""
    store = r"cp\.async\.bulk\.tensor\S*\.global\.shared"
    for every_round, whole in main_loops(lines, r"wgmma\.mma_async"):
        check(any(re.search(store, line) for line in whole), "no result leaves in the main loop")
        check(not any(re.search(store, line) for line in every_round), "a result leaves in every round")


def check_products(lines, arch, accumulators):
    if arch == "sm_90a":
        lists = {m[1] for line in lines for m in [re.search(r"wgmma\.mma_async[\w.]+ (\{[^}]*\})", line)] if m}
        check(len(lists) == accumulators, "products name", len(lists), "lists of registers for", accumulators, "accumulators")
    descriptors = [int(m[1]) for line in lines for m in [re.search(r"or\.b64\s+%rd\d+, %rd\d+, (\d{15,})", line)] if m]
    check(descriptors, "no descriptors")
    for value in descriptors:
        mode = value >> 62 if arch == "sm_90a" else value >> 61
        check(mode == (1 if arch == "sm_90a" else 2), "descriptor", hex(value), "does not say that rows are swizzled over 128 bytes")


def check_setmaxnreg(lines, threads):
    asked = [(m[1], int(m[2])) for line in lines for m in [re.search(r"setmaxnreg\.(dec|inc)\.sync\.aligned\.u32\s+(\d+)", line)] if m]
    if not asked:
        return
    entry = min(65536 // threads // 8 * 8, 255)
    groups = threads // 128
    check(len(asked) == 2, "setmaxnreg:", asked)
    total = sum(count * (1 if way == "dec" else groups - 1) for way, count in asked)
    check(total <= entry * groups, "setmaxnreg asks for", total, "of", entry * groups)


def check_example(tilec, example, arch):
    tir, ptx = compiled(tilec, example, arch, "tir"), compiled(tilec, example, arch, "ptx")
    check(tir and ptx, "does not compile")
    if not tir or not ptx:
        return
    root, header = kernel_of(tir, "tma")
    name = re.search(r"^kernel @(\w+)", tir, re.M)[1]
    lines = entries_of(ptx)[name]
    defs = by_result(root)
    threads = int(re.search(r"threads\((\d+)\)", tir)[1])
    element, stages, persistent, row_blocks = WITH_ROLES[name]
    check(len(roles_of(root)) == (2 if arch == "sm_90a" else 3), "has", len(roles_of(root)), "roles")
    check_maps(header, element)
    check_stages(root, stages)
    check_bytes(root, defs)
    check_arrivals(root, defs)
    check_tmem(root, arch)
    check_main_loops(lines, arch)
    check_products(lines, arch, row_blocks)
    check_setmaxnreg(lines, threads)
    if name == "gemm":
        check_stores(root)
    if persistent:
        check_persistent(root)
    if persistent and arch == "sm_90a":
        check_late_results(lines)
    if persistent and arch == "sm_100a":
        buffers = [op for op in root.named("alloc") if re.search(r"f32\[2, .*\] tmem", op.text)]
        check(buffers, "the accumulator has no second buffer in tensor memory")


def run_roles(tilec, examples, arch):
    for name in WITH_ROLES:
        before = len(failures)
        check_example(tilec, os.path.join(examples, name + ".tile"), arch)
        failures[before:] = ["%s: %s" % (name, text) for text in failures[before:]]


def main():
    arguments = sys.argv[1:]
    rewrite = "--update" in arguments
    arguments = [a for a in arguments if a != "--update"]
    if arguments[0] == "ptxas":
        run_ptxas(*arguments[1:5], rewrite)
    else:
        run_roles(*arguments[1:4])
    for text in failures:
        print(text)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
