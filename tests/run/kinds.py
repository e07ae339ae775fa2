"""Matrix products of every kind (element types, storage orders, rows of an instruction) with small whole numbers, where every
result is exact.

    kinds.py TILE_RUN [--order ORDER] [--check LIST] [--pipelined STAGES] [NAME-PREFIX…]    pipelined: with warp roles
    kinds.py TILE_RUN --random COUNT [SEED]      valid products of random kinds, shapes, orders of storage and execution
With --arch sm_90a what that target lacks must be refused: tiles of 32 rows, 8-bit operands with M or N innermost, A in
registers unless of 16 bits, and parts of an accumulator.
The reference is computed by numpy in double precision and rounded to the type of C.
"""
import random
import subprocess
import sys

import numpy as np

import elementwise as types
from copies import DTYPES

TEXT = """
@kernel
def product(A: Tensor[({A}), {a}], B: Tensor[({B}), {b}], C: Tensor[(M, N), {c}]):
    with Kernel(ceildiv(N, {bn}), ceildiv(M, {bm}), threads={threads}) as (bx, by):
        A_shared = alloc_shared(({sa}), {a})
        B_shared = alloc_shared(({sb}), {b})
        {a_tmem}
        {allocate}
        for k in serial(ceildiv(K, {bk})):
            copy(A[{at}], A_shared)
            copy(B[{bt}], B_shared)
            {move}
            {gemm}
        {finish}
"""
# what becomes of the accumulator
FORMS = {
    # in registers by name, straight to C
    "fragment": ("acc = alloc_fragment(({bm}, {bn}), {d})\n        clear(acc)", "{product}", "copy(acc, C[by * {bm}, bx * {bn}])"),
    # in TMEM, through a fragment and shared memory
    "tmem": ("acc = alloc_tmem(({bm}, {bn}), {d})\n        part = alloc_fragment(({bm}, {bn}), {d})\n"
             "        C_shared = alloc_shared(({bm}, {bn}), {c})", "{first}",
             "copy(acc, part)\n        copy(part, C_shared)\n        copy(C_shared, C[by * {bm}, bx * {bn}])"),
    # computed on between and after the products
    "loop": ("acc = alloc_fragment(({bm}, {bn}), {d})\n        clear(acc)", "{product}",
             "for i, j in Parallel({bm}, {bn}):\n            acc[i, j] = acc[i, j] * 2 + cast(i % 4 - j % 3, {d})\n"
             "        copy(acc, C[by * {bm}, bx * {bn}])"),
}


class Case:
    def __init__(self, name, a, d, tile, size, b=None, c=None, form="tmem", threads=128, trans_a=False, trans_b=True, gemm=None,
                 a_in_tmem=False):
        self.name, self.a, self.b, self.d, self.c = name, a, b or a, d, c or d
        self.tile, self.size, self.form, self.trans_a, self.trans_b = tile, size, form, trans_a, trans_b
        bm, bn, bk = tile
        allocate, product, finish = FORMS[form]
        options = ", transpose_A=True" * trans_a + ", transpose_B=True" * trans_b
        fields = dict(bm=bm, bn=bn, bk=bk, threads=threads, a=DTYPES[self.a], b=DTYPES[self.b], c=DTYPES[self.c], d=DTYPES[d],
                      A="K, M" if trans_a else "M, K", B="N, K" if trans_b else "K, N",
                      sa="%d, %d" % ((bk, bm) if trans_a else (bm, bk)), sb="%d, %d" % ((bn, bk) if trans_b else (bk, bn)),
                      at=("k * {bk}, by * {bm}" if trans_a else "by * {bm}, k * {bk}").format(bm=bm, bk=bk),
                      bt=("bx * {bn}, k * {bk}" if trans_b else "k * {bk}, bx * {bn}").format(bn=bn, bk=bk),
                      a_tmem="A_tmem = alloc_tmem(({bm}, {bk}), {a})" if a_in_tmem else "", move="copy(A_shared, A_tmem)" if a_in_tmem else "",
                      product="gemm(%s, B_shared, acc%s)" % ("A_tmem" if a_in_tmem else "A_shared", options),
                      first="gemm(%s, B_shared, acc%s, clear_accum=k == 0)" % ("A_tmem" if a_in_tmem else "A_shared", options))
        fields["a_tmem"] = fields["a_tmem"].format(**fields)
        fields.update(allocate=allocate.format(**fields), gemm=(gemm or product).format(**fields), finish=finish.format(**fields))
        self.text = TEXT.format(**fields)

    def refused(self, options):
        """The code of the error that this is on Hopper; None: it must run."""
        if "sm_90a" not in options:
            return None
        if self.tile[0] == 32:
            return "E0505"
        if "gemm(A_tmem" in self.text and types.NUMPY[self.a] not in (np.uint16, np.float16):
            return "E0507"
        if types.NUMPY[self.a] in (np.uint8, np.int8) and (self.trans_a or not self.trans_b):
            return "E0506"
        return "E0507" if "acc[:, 0:16]" in self.text else None

    def reference(self, a, b):
        product = a @ b
        if self.form == "loop":
            bm, bn, _ = self.tile
            i, j = np.arange(len(a))[:, None] % bm, np.arange(b.shape[1]) % bn
            product = product * 2 + i % 4 - j % 3
        return product

    def run(self, tile_run, options):
        m, n, k = self.size
        rng = np.random.default_rng(1)
        low = {"u8": 0}
        a, b = rng.integers(low.get(self.a, -3), 4, (m, k)), rng.integers(low.get(self.b, -3), 4, (k, n))
        np.save("a.npy", held(self.a, a.T if self.trans_a else a))
        np.save("b.npy", held(self.b, b.T if self.trans_b else b))
        text, level = self.text, []
        if "--pipelined" in options:
            at = options.index("--pipelined")
            stages, options = options[at + 1], options[:at] + options[at + 2:]
            text = text.replace("for k in serial(ceildiv(K, %d))" % self.tile[2],
                                "for k in Pipelined(ceildiv(K, %d), num_stages=%s)" % (self.tile[2], stages))
            level = ["-O2"]
        with open("product.tile", "w") as file:
            file.write(text)
        done = subprocess.run([tile_run, "product.tile"] + level + ["--device", "emu", "--in", "A=a.npy", "--in", "B=b.npy", "--out", "C=c.npy"]
                              + options, capture_output=True, text=True)
        code = self.refused(options)
        if code:
            return None if done.returncode == 1 and "error[%s]" % code in done.stderr else "is not refused with " + code
        if done.returncode != 0:
            return "tile-run ends with %d: %s" % (done.returncode, done.stderr.strip()[:1500])
        want = self.reference(a.astype(np.float64), b.astype(np.float64))
        x, y = types.number(self.c, np.load("c.npy").view(types.NUMPY[self.c])), types.number(self.c, held(self.c, want))
        bad = np.argwhere(x != y)
        if len(bad) == 0:
            return None
        at = tuple(bad[0])
        return "%d of %d wrong; first at %s: %s, want %s" % (len(bad), x.size, at, x[at], y[at])


def held(dtype, values):
    """Whole numbers in memory, C-contiguous."""
    values = np.ascontiguousarray(values)
    return values.astype(types.NUMPY[dtype]) if dtype in types.INTS else types.hold(dtype, values.astype(np.float32))


ORDERS = [dict(trans_a=x, trans_b=y) for x in (False, True) for y in (False, True)]


def name_of(order):
    return ("t" if order["trans_a"] else "n") + ("t" if order["trans_b"] else "n")


def storage_orders():
    for order in ORDERS:
        yield Case("bf16_" + name_of(order), "bf16", "f32", (128, 64, 64), (136, 72, 136), form="fragment", **order)
    for n, k in ((16, 16), (32, 48), (80, 32), (320, 64), (256, 96), (272, 16)):  # panels of 32, 64 and 128 bytes, splits of N
        yield Case("f16_nn_%d_%d" % (n, k), "f16", "f32", (128, n, k), (130, n + 8, k + 8), trans_b=False)
    yield Case("bf16_tn_rows_256", "bf16", "f32", (256, 48, 32), (264, 56, 72), c="bf16", trans_a=True, trans_b=False)
    yield Case("bf16_tn_not_16_bytes", "bf16", "f32", (128, 64, 64), (131, 67, 65), form="fragment", trans_a=True, trans_b=False)
    yield Case("f16_tn_256_threads", "f16", "f32", (128, 64, 64), (136, 72, 72), form="loop", threads=256, trans_a=True, trans_b=False)
    cut = ("gemm(A_shared[0:32, :], B_shared[0:32, 0:16], acc[:, 0:16], transpose_A=True, clear_accum=k == 0)\n"
           "            gemm(A_shared[32:64, :], B_shared[32:64, 0:16], acc[:, 0:16], transpose_A=True)\n"
           "            gemm(A_shared, B_shared[:, 16:32], acc[:, 16:32], transpose_A=True, clear_accum=k == 0)\n"
           "            gemm(A_shared, B_shared[:, 64:96], acc[:, 64:96], transpose_A=True, clear_accum=k == 0)\n"
           "            gemm(A_shared, B_shared[:, 32:64], acc[:, 32:64], transpose_A=True, clear_accum=k == 0)\n"
           "            for s in serial(2):\n"
           "                gemm(A_shared[s * 32:s * 32 + 32, :], B_shared[s * 32:s * 32 + 32, 96:128], acc[:, 96:128],\n"
           "                     transpose_A=True, clear_accum=k == 0 and s == 0)")
    yield Case("bf16_tn_slices", "bf16", "f32", (128, 128, 64), (136, 136, 72), trans_a=True, trans_b=False, gemm=cut)


def half_lanes():
    """M = 64: 16 rows in each warp's lanes."""
    for order in ORDERS:
        yield Case("rows_64_" + name_of(order), "bf16", "f32", (64, 64, 64), (72, 72, 136), **order)
    for n in (8, 24, 128, 256, 264, 320):
        yield Case("rows_64_columns_%d" % n, "f16", "f32", (64, n, 32), (66, n + 8, 40), form="fragment")
    yield Case("rows_64_loop", "bf16", "f32", (64, 128, 32), (72, 136, 64), form="loop")
    yield Case("rows_64_256_threads", "bf16", "f32", (64, 128, 32), (72, 136, 64), c="bf16", form="loop", threads=256)
    yield Case("rows_64_int8", "i8", "i32", (64, 48, 32), (70, 56, 64), form="tmem")


def element_types():
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            yield Case("%s_%s" % (a, b), a, "f32", (128, 64, 64), (136, 80, 144), b=b, form="fragment")
    for order in ORDERS[:3]:
        yield Case("e4m3_" + name_of(order), "e4m3", "f32", (128, 96, 64), (144, 112, 80), c="bf16", **order)
        yield Case("u8_" + name_of(order), "u8", "i32", (128, 96, 64), (144, 112, 80), b="i8", **order)
    yield Case("e4m3_wide_nn", "e4m3", "f32", (128, 384, 32), (144, 400, 48), trans_b=False)
    yield Case("e4m3_f16", "e4m3", "f16", (128, 64, 96), (144, 80, 112), form="loop")
    yield Case("e5m2_to_e5m2", "e5m2", "f32", (64, 64, 32), (64, 64, 32), c="e5m2")
    for a in ("i8", "u8"):
        for b in ("i8", "u8"):
            yield Case("%s_%s" % (a, b), a, "i32", (128, 64, 64), (136, 80, 144), b=b, form="fragment")
    yield Case("i8_loop", "i8", "i32", (128, 320, 32), (136, 336, 48), form="loop", threads=256)
    yield Case("i8_to_f32", "i8", "i32", (128, 64, 32), (136, 80, 48), c="f32")
    yield Case("tf32", "f32", "f32", (128, 64, 32), (136, 72, 68))
    yield Case("tf32_loop", "f32", "f32", (256, 32, 40), (260, 40, 44), form="loop")
    yield Case("f16_f16", "f16", "f16", (128, 96, 64), (136, 104, 72))
    yield Case("f16_f16_fragment", "f16", "f16", (128, 64, 32), (136, 72, 40), form="fragment", trans_b=False)
    yield Case("f16_f16_loop", "f16", "f16", (64, 64, 32), (72, 72, 40), c="f32", form="loop", threads=256)


def warp_rows():
    """M = 32: every warp has all rows, and a quarter of the columns."""
    for n in (64, 128, 256):
        yield Case("rows_32_columns_%d" % n, "bf16", "f32", (32, n, 64), (40, n + 8, 72), form=["tmem", "loop", "fragment"][n // 100])
    yield Case("rows_32_tn", "f16", "f32", (32, 128, 32), (40, 136, 72), trans_a=True, trans_b=False)
    yield Case("rows_32_int8", "i8", "i32", (32, 64, 64), (48, 80, 80), threads=256)
    yield Case("rows_32_e4m3_f16", "e4m3", "f16", (32, 64, 32), (48, 80, 48), form="loop")
    yield Case("rows_32_tf32", "f32", "f32", (32, 64, 16), (36, 72, 20), c="bf16", form="loop", threads=256)


def first_operand_in_tmem():
    for m in (64, 128, 256):
        for a, d in (("bf16", "f32"), ("f16", "f16"), ("e4m3", "f32"), ("u8", "i32"), ("f32", "f32")):
            yield Case("ts_%d_%s_%s" % (m, a, d), a, d, (m, 96 if m < 256 else 32, 64), (m + 8, 112, 80), trans_b=a != "e4m3", a_in_tmem=True)
    yield Case("ts_mixed", "e5m2", "f16", (128, 64, 96), (128, 64, 112), b="e4m3", form="loop", a_in_tmem=True, threads=256)
    yield Case("ts_wide", "f16", "f32", (64, 328, 32), (64, 336, 48), form="fragment", a_in_tmem=True)
    yield Case("ts_depth_16", "bf16", "f32", (128, 16, 16), (128, 16, 24), form="fragment", a_in_tmem=True)


def depths():
    """K of a tile: any number of atoms, panels as wide as divide its rows."""
    for k in (16, 48, 80, 96, 160, 256):
        yield Case("depth_%d" % k, "bf16", "f32", (128, 32, k), (128, 32, k + 8), form="fragment")
    yield Case("depth_e4m3_96", "e4m3", "f32", (128, 32, 96), (128, 32, 112), form="fragment")
    yield Case("depth_i8_160", "i8", "i32", (128, 32, 160), (128, 32, 176), form="fragment")
    for k in (8, 24, 72):
        yield Case("depth_tf32_%d" % k, "f32", "f32", (128, 32, k), (128, 32, k + 4), form="fragment")
    yield Case("depth_nn_80", "f16", "f32", (128, 32, 80), (128, 32, 88), form="fragment", trans_b=False)


def warpgroups():
    """Hopper's own: N of 8 mod 16 (trap A04), blocks of rows dealt to warpgroups (trap A05)."""
    for bn, threads in ((24, 128), (48, 256), (8, 128), (40, 128)):
        yield Case("a04_%d_%d" % (bn, threads), "f16", "f32", (128, bn, 64), (128, bn + 8, 128), threads=threads)
    for bm, bn, threads in ((256, 64, 256), (256, 64, 128), (192, 64, 384), (128, 64, 256), (64, 64, 256), (64, 96, 512)):
        yield Case("a05_%d_%d_%d" % (bm, bn, threads), "f16", "f32", (bm, bn, 64), (bm + 8, bn, 72), form="loop", threads=threads)


# a, b, accumulator, elements of K in an instruction, whether operands may be stored either way round
KINDS = [("bf16", "bf16", "f32", 16, True), ("f16", "f16", "f32", 16, True), ("f16", "f16", "f16", 16, True), ("f32", "f32", "f32", 8, False)]
KINDS += [(a, b, d, 32, True) for a in types.FP8 for b in types.FP8 for d in ("f32", "f16")]
KINDS += [(a, b, "i32", 32, True) for a in ("i8", "u8") for b in ("i8", "u8")]
RESULTS = {"f32": ["f32", "bf16", "f16"], "f16": ["f16", "f32"], "i32": ["i32", "f32"]}


def random_product(rng, name):
    """A case, or None when the draw does not fit the machine."""
    a, b, d, atom, either = rng.choice(KINDS)
    trans_a, trans_b = (rng.random() < 0.5, rng.random() < 0.5) if either else (False, True)
    bm, bytes_of, a_in_tmem = rng.choice([32, 64, 64, 128, 128, 256]), 32 // atom, rng.random() < 0.3
    step = 16 if bm != 64 or d == "i32" or (atom == 32 and not trans_b) else 8
    step = step if trans_b else max(step, 32 // bytes_of)
    bn, bk = step * rng.randint(1, rng.choice([160, 160, 384]) // step), atom * rng.randint(1, 6)
    if bm == 32:
        bn, a_in_tmem = rng.choice([64, 128, 256]), False
    trans_a = trans_a and not a_in_tmem
    if a_in_tmem:  # rows of whole words for each thread
        bk = (bk * bytes_of + 31) // 32 * 32 // bytes_of
    threads = rng.choice([128, 128, 256])
    if threads == 256 and bn % (4 if bm == 64 else 2):
        threads = 128
    if (bm + bn) * bk * bytes_of + bm * bn * 4 > 200000 or max(bm // 128, 1) * (bn + a_in_tmem * bk * bytes_of // 4) > 256:
        return None
    size = (bm + rng.randint(0, 9), bn + rng.randint(0, 20), max(1, bk + rng.randint(-9, 20)))
    if rng.random() < 0.5:  # rows that TMA takes
        size = tuple((extent + 15) // 16 * 16 for extent in size)
    return Case(name, a, d, (bm, bn, bk), size, b=b, c=rng.choice(RESULTS[d]), form=rng.choice(list(FORMS)), threads=threads,
                trans_a=trans_a, trans_b=trans_b, a_in_tmem=a_in_tmem)


def run_random(tile_run, count, seed):
    rng, wrong, done = random.Random(seed), 0, 0
    while done < count:
        case = random_product(rng, "random")
        order = rng.choice(["fair", "lazy", "random:%d" % rng.randint(1, 9)])
        if case is None:
            continue
        done += 1
        problem = case.run(tile_run, ["--order", order, "--check", "all"])
        if problem:
            wrong += 1
            print("product %d of seed %d, size %s, order %s: %s\n%s" % (done, seed, case.size, order, problem, case.text))
    return count, wrong


GROUPS = [storage_orders, half_lanes, element_types, warp_rows, first_operand_in_tmem, depths]


def main():
    arguments = sys.argv[2:]
    options = []
    while arguments and arguments[0].startswith("--"):
        options, arguments = options + arguments[:2], arguments[2:]
    count = wrong = 0
    if "--random" in options:
        count, wrong = run_random(sys.argv[1], int(options[1]), int((arguments or [1])[0]))
    groups = GROUPS + ([warpgroups] if "sm_90a" in options else [])
    for group in groups if "--random" not in options else []:
        for case in group():
            if arguments and not any(case.name.startswith(p) for p in arguments):
                continue
            count += 1
            problem = case.run(sys.argv[1], options)
            if problem:
                wrong += 1
                print("%s: %s\n%s" % (case.name, problem, case.text))
    print("%d products, %d wrong" % (count, wrong))
    sys.exit(1 if wrong or not count else 0)


if __name__ == "__main__":
    main()
