"""Expectations for tmem.cu, from the published maps of registers to lanes and columns."""
import numpy as np
from harness import case, rng

T, WARP = np.arange(32), np.arange(4)


def cells(shape, i, split=0):
    """Lane (within the warp's 32) and column of register i of the 32 threads."""
    return {'32x32b': lambda: (T, T * 0 + i),
            '16x64b': lambda: (T // 4 + 8 * (T % 2), T // 2 % 2 + 2 * i),
            '16x128b': lambda: (T // 4 + 8 * (i % 2), T % 4 + 4 * (i // 2)),
            '16x256b': lambda: (T // 4 + 8 * (i // 2 % 2), 2 * (T % 4) + i % 2 + 8 * (i // 4)),
            '16x32bx2': lambda: (T % 16, T // 16 * split + i)}[shape]()


def filled():
    return rng(11).integers(0, 2**32, (128, 128), dtype=np.uint32)


def expect_load(image, shape, n, lane0, column0, split, pack):
    out = np.zeros((128, n), np.uint32)
    for w in WARP:
        for i in range(n):
            if pack:  # two columns a register: the packed column is 2 * column, 2 * column + 1
                lane, column = cells(shape, i, split)
                low, high = (image[w * 32 + lane0 + lane, column0 + 2 * column + h] & 0xFFFF for h in (0, 1))
                out[w * 32:w * 32 + 32, i] = low | high << 16
            else:
                lane, column = cells(shape, i, split)
                out[w * 32:w * 32 + 32, i] = image[w * 32 + lane0 + lane, column0 + column]
    return out


def add(name, shape, n, lane0=0, column0=0, split=0, pack=False):
    @case('tmem_sm100.ptx', f'ld_{name}', block=128, name=f'ld_{name}')
    def load(c):
        image = c.input('image', filled())
        c.out('out', expect_load(image, shape, n, lane0, column0, split, pack))
        c.scalar('i32', lane0 << 16 | column0)

    def store(c, unpack=False):
        image = c.input('image', filled())
        values = c.input('values', rng(12).integers(0, 2**32, (128, n), dtype=np.uint32))
        want = image.copy()
        for w in WARP:
            for i in range(n):
                lane, column = cells(shape, i, split)
                v = values[w * 32:w * 32 + 32, i]
                if unpack:
                    want[w * 32 + lane0 + lane, column0 + 2 * column] = v & 0xFFFF
                    want[w * 32 + lane0 + lane, column0 + 2 * column + 1] = v >> 16
                else:
                    want[w * 32 + lane0 + lane, column0 + column] = v
        c.out('out', want)
        c.scalar('i32', lane0 << 16 | column0)
    if not pack:
        case('tmem_sm100.ptx', f'st_{name}', block=128, name=f'st_{name}')(store)
    else:
        case('tmem_sm100.ptx', f'st_{name.replace("pack", "unpack")}', block=128, name=f'st_{name.replace("pack", "unpack")}')(lambda c: store(c, True))


add('32x32b_x1', '32x32b', 1, column0=127)
add('32x32b_x2', '32x32b', 2, column0=3)
add('32x32b_x16', '32x32b', 16, column0=40)
add('16x64b_x1', '16x64b', 1, lane0=16, column0=9)
add('16x64b_x8', '16x64b', 8)
add('16x128b_x1', '16x128b', 2, lane0=16)
add('16x128b_x8', '16x128b', 16, column0=64)
add('16x256b_x1', '16x256b', 4)
add('16x256b_x4', '16x256b', 16, lane0=16, column0=32)
add('16x32bx2_x1', '16x32bx2', 1, split=5)
add('16x32bx2_x8', '16x32bx2', 8, lane0=16, column0=2, split=16)
add('32x32b_x8_pack', '32x32b', 8, pack=True)
add('16x64b_x4_pack', '16x64b', 4, pack=True)
add('16x128b_x4_pack', '16x128b', 8, pack=True)
add('16x256b_x2_pack', '16x256b', 8, pack=True)


def copied(image, source, rows, units, lanes, span=0, expand=0):
    """lanes(row): where a row goes; the source is K-major rows of 16-byte units."""
    want = image.copy()
    for row in range(rows):
        for unit in range(units):
            at = row % 8 * span + row // 8 * 8 * span + unit * 16 if span else row % 8 * 16 + row // 8 * units * 128 + unit * 128
            at ^= (at >> 7 & {0: 0, 32: 1, 64: 3, 128: 7}[span]) << 4
            data = source[at:at + 16]
            if expand:
                bits = int.from_bytes(data.tobytes(), 'little')
                code = [bits >> expand * i & (1 << expand) - 1 for i in range(16)]
                data = np.array([x << 2 if expand == 4 else x for x in code], np.uint8)
            for lane in lanes(row):
                want[lane, 8 + 4 * unit:12 + 4 * unit] = data.view(np.uint32)
    return want


def descriptor(units, span=0):
    sbo, code = (8 * span, {32: 6, 64: 4, 128: 2}[span]) if span else (units * 128, 0)
    return code << 61 | 1 << 46 | sbo >> 4 << 32 | (128 >> 4) << 16


def copy(name, rows, units, lanes, span=0, expand=0):
    @case('tmem_sm100.ptx', f'cp_{name}', block=128, name=f'cp_{name}' + (f'_swizzle_{span}' if span else ''))
    def run(c):
        image = c.input('image', rng(13).integers(0, 2**32, (128, 32), dtype=np.uint32))
        source = c.input('source', rng(14).integers(0, 256, 4096, dtype=np.uint8))
        c.out('out', copied(image, source, rows, units, lanes, span, expand))
        c.scalar('i64', descriptor(units, span))


def pair(name, change):
    """change(image, source): what becomes of one CTA's tensor memory."""
    @case('tmem_sm100.ptx', name, block=128, grid=2)
    def run(c):
        image = c.input('image', rng(15).integers(0, 2**32, (2, 128, 32), dtype=np.uint32))
        source = c.input('source', rng(16).integers(0, 256, (2, 4096), dtype=np.uint8))
        c.out('out', np.stack([change(image[i], source[i]) for i in range(2)]))
        c.scalar('i64', descriptor(2 if '256b' in name else 1))


SHAPES = {'128x256b': (128, 2, lambda r: [r]), '4x256b': (4, 2, lambda r: [32 * r]), '128x128b': (128, 1, lambda r: [r]), '64x128b_02_13': (64, 1, lambda r: [r, r + 64]),
          '64x128b_01_23': (64, 1, lambda r: [r, r + 32] if r < 32 else [r + 32, r + 64]), '32x128b_warpx4': (32, 1, lambda r: [r, r + 32, r + 64, r + 96])}
copy('128x256b', 128, 2, lambda r: [r], span=32)
for shape, form in SHAPES.items():
    copy(shape, *form)
    copy(shape + '_b4', *form, expand=4)
    copy(shape + '_b6', *form, expand=6)
    pair(f'cp_pair_{shape}', lambda image, source, form=form: copied(image, source, *form))


def shifted(image, quarters, times=1):
    """Columns 8 to 15 of those quarters, each row but the last one row further down; the first stays."""
    want = image.copy()
    for _ in range(times):
        for q in quarters:
            want[32 * q + 1:32 * q + 32, 8:16] = want[32 * q:32 * q + 31, 8:16].copy()
    return want


pair('shift_pair', lambda image, source: shifted(image, [1], 2))


@case('tmem_sm100.ptx', block=128)
def shift_down(c):
    image = c.input('image', rng(17).integers(0, 2**32, (128, 32), dtype=np.uint32))
    source = c.input('source', rng(18).integers(0, 256, 4096, dtype=np.uint8))
    c.out('out', copied(shifted(image, range(4)), source, *SHAPES['4x256b']))
    c.scalar('i64', descriptor(2))


@case('tmem_sm100.ptx', block=128)
def alloc_several(c):
    v = np.arange(128)[:, None] * 10 + np.arange(4)
    c.out('out', (v + (v + 5 << 16)).astype(np.uint32))
