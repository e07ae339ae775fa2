"""Expectations for copies.cu."""
import numpy as np
from harness import case, rng, to_bf16, from_bf16

SPAN = {0: 0, 32: 32, 64: 64, 128: 128}


def tile_bytes(array, corner, box, swizzle, fill=0):
    """The shared-memory image of a box (outermost first) cut out of an array at `corner`; zeros, or the bytes `fill`, outside."""
    size = array.dtype.itemsize
    cut = np.zeros(box, array.dtype)
    if fill:
        cut.view(np.uint8).reshape(-1)[:] = np.frombuffer(fill * (cut.nbytes // len(fill)), np.uint8)
    for index in np.ndindex(*box):
        at = tuple(c + i for c, i in zip(corner, index))
        if all(0 <= a < n for a, n in zip(at, array.shape)):
            cut[index] = array[at]
    rows = cut.reshape(-1, box[-1]).view(np.uint8)
    span = SPAN[swizzle]
    pitch = span or box[-1] * size
    image = np.full(len(rows) * pitch, 0xEE, np.uint8)
    mask = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    for r, row in enumerate(rows):
        for unit in range(0, len(row), 16):
            a = r * pitch + unit
            a ^= (a >> 7 & mask) << 4
            image[a:a + 16] = row[unit:unit + 16]
    return image


def load(c, array, dtype, corner, box, swizzle, **more):
    image = tile_bytes(array, corner, box, swizzle, b'\xf7\x7f' if more.get('oob') == 'nan' and array.dtype.itemsize == 2 else 0)
    c.tma('a', array, box, dtype, swizzle, **more)
    c.out('out', image)
    c.scalar('i32', image.size)
    c.scalar('i32', int(np.prod(box)) * array.dtype.itemsize)
    for x in corner[::-1]:
        c.scalar('i32', x)
    c.options = {'shared': image.size + 1024}


@case('copies_sm90.ptx', block=64)
def load1(c):
    load(c, rng().integers(0, 2**32, 300, dtype=np.uint32), 'u32', (200,), (128,), 0)


@case('copies_sm90.ptx', 'load2', block=64)
def load2_plain_negative_corner(c):
    load(c, rng().integers(0, 2**16, (40, 64), dtype=np.uint16), 'u16', (-3, -8), (16, 32), 0)


@case('copies_sm90.ptx', 'load2', block=64)
def load2_swizzle_32(c):
    load(c, rng().integers(0, 256, (40, 64), dtype=np.uint8), 'u8', (5, 16), (24, 32), 32)


@case('copies_sm90.ptx', 'load2', block=64)
def load2_swizzle_64_narrow(c):
    load(c, to_bf16(rng().standard_normal((40, 64))), 'bf16', (30, 48), (16, 24), 64)


@case('copies_sm90.ptx', 'load2', block=64)
def load2_swizzle_128_out_of_bounds(c):
    load(c, rng().standard_normal((40, 64)).astype(np.float16), 'f16', (20, 32), (32, 64), 128)


@case('copies_sm90.ptx', 'load2', block=64)
def load2_nan_fill(c):
    load(c, rng().standard_normal((20, 64)).astype(np.float16), 'f16', (10, 32), (16, 64), 128, oob='nan')


@case('copies_sm90.ptx', block=64)
def load3(c):
    load(c, rng().standard_normal((5, 20, 32)).astype(np.float32), 'f32', (3, 15, 8), (3, 8, 16), 64)


@case('copies_sm90.ptx', block=64)
def load4(c):
    load(c, rng().integers(0, 2**32, (3, 4, 9, 32), dtype=np.uint32).view(np.int32), 'i32', (1, -1, 4, 16), (2, 3, 4, 32), 128)


@case('copies_sm90.ptx', block=64)
def load5(c):
    load(c, rng().integers(0, 2**63, (3, 2, 4, 6, 8), dtype=np.uint64), 'u64', (1, 0, 2, 3, 2), (2, 2, 2, 4, 4), 32)


def stored(base, tile, corner, fn):
    want = base.copy()
    for (r, x), v in np.ndenumerate(tile):
        y, z = corner[0] + r, corner[1] + x
        if y < base.shape[0] and z < base.shape[1]:
            want[y, z] = fn(want[y, z], v)
    return want


def through_map(c, base, tile, dtype, corner, fn, swizzle=0):
    c.inout('a', base, stored(base, tile, corner, fn), tma=dict(box=tile.shape, dtype=dtype, swizzle=swizzle))
    image = tile_bytes(tile, (0, 0), tile.shape, swizzle)
    c.input('tile', image)
    c.scalar('i32', image.size)
    c.scalar('i32', corner[1])
    c.scalar('i32', corner[0])
    c.options = {'shared': image.size + 1024}


@case('copies_sm90.ptx', block=64)
def store2(c):
    r = rng()
    through_map(c, r.integers(0, 2**16, (24, 64), dtype=np.uint16), r.integers(0, 2**16, (16, 32), dtype=np.uint16), 'u16', (12, 40), lambda old, new: new, 64)


def reduction(name, dtype, make, fn):
    def run(c):
        r = rng(7)
        through_map(c, make(r, (20, 32)), make(r, (16, 16)), dtype, (8, 8), fn)
    run.__name__ = f'reduce_{name}_{dtype}'
    case('copies_sm90.ptx', f'reduce_{name}', block=64)(run)


u32s = lambda r, shape: r.integers(0, 2**32, shape, dtype=np.uint32)
s32s = lambda r, shape: r.integers(-2**31, 2**31, shape, dtype=np.int32)
u64s = lambda r, shape: r.integers(0, 2**64, shape, dtype=np.uint64)
few = lambda r, shape: r.integers(0, 12, shape, dtype=np.uint32)
halves = lambda r, shape: (r.integers(-64, 64, shape) / 4).astype(np.float16)
with np.errstate(all='ignore'):
    reduction('add', 'f32', lambda r, s: r.standard_normal(s).astype(np.float32), lambda a, b: np.float32(a + b))
    reduction('add', 'u32', u32s, lambda a, b: np.uint32((int(a) + int(b)) % 2**32))
    reduction('add', 'u64', u64s, lambda a, b: np.uint64((int(a) + int(b)) % 2**64))
    reduction('add', 'f16', halves, lambda a, b: a + b)
    reduction('add', 'bf16', lambda r, s: to_bf16(r.integers(-64, 64, s) / 4), lambda a, b: to_bf16(from_bf16(a) + from_bf16(b)))
    reduction('min', 'i32', s32s, min)
    reduction('min', 'f16', halves, min)
    reduction('max', 'u32', u32s, max)
    reduction('max', 'bf16', lambda r, s: to_bf16(r.integers(-64, 64, s) / 4), lambda a, b: a if from_bf16(a) > from_bf16(b) else b)
    reduction('max', 'i64', lambda r, s: r.integers(-2**63, 2**63, s, dtype=np.int64), max)
    reduction('inc', 'u32', few, lambda a, b: np.uint32(0 if a >= b else a + 1))
    reduction('dec', 'u32', few, lambda a, b: np.uint32(b if a == 0 or a > b else a - 1))
    reduction('and', 'u32', u32s, lambda a, b: a & b)
    reduction('or', 'u64', u64s, lambda a, b: a | b)
    reduction('xor', 'u32', u32s, lambda a, b: a ^ b)


@case('copies_sm90.ptx', block=64, grid=4)
def multicast(c):
    a = rng().integers(0, 256, (64, 128), dtype=np.uint8)
    c.tma('a', a, (8, 64), 'u8')
    c.out('out', np.tile(a[16:48, 32:96].reshape(1, -1), (4, 1)).astype(np.uint32))
    c.scalar('i32', 32)
    c.scalar('i32', 16)


@case('copies_sm90.ptx', block=64, shared=2048)
def bulk_round(c):
    a = c.input('a', rng().integers(0, 256, 1008, dtype=np.uint8))
    c.out('out', a ^ 0x5A)
    c.scalar('i32', a.size)


@case('copies_sm90.ptx', block=64, grid=4)
def bulk_ring(c):
    a = c.input('a', rng().integers(0, 2**32, (4, 64), dtype=np.uint32))
    c.out('out', np.roll(a, 1, 0))


@case('copies_sm90.ptx', block=64, grid=2)
def bulk_multicast(c):
    a = c.input('a', rng().integers(0, 2**32, 64, dtype=np.uint32))
    c.out('out', np.stack([a, a]))


def bulk(name, make, fn):
    def run(c):
        a, b = make(rng(3), 64), make(rng(4), 64)
        c.input('a', a)
        c.inout('out', b, fn(b, a))
        c.scalar('i32', a.nbytes)
    run.__name__ = f'bulk_{name}'
    case('copies_sm90.ptx', block=64, shared=2048)(run)


bulk('add_f32', lambda r, n: r.standard_normal(n).astype(np.float32), lambda a, b: a + b)
bulk('add_f64', lambda r, n: r.standard_normal(n), lambda a, b: a + b)
bulk('add_f16', lambda r, n: r.standard_normal(n).astype(np.float16), lambda a, b: a + b)
bulk('add_bf16', lambda r, n: to_bf16(r.standard_normal(n)), lambda a, b: to_bf16(from_bf16(a) + from_bf16(b)))
bulk('min_s32', s32s, np.minimum)
bulk('max_u64', u64s, np.maximum)
bulk('xor_b32', u32s, np.bitwise_xor)


@case('copies_sm90.ptx', grid=2)
def bulk_add_peer(c):
    a = c.input('a', rng().integers(0, 2**32, (2, 32), dtype=np.uint32))
    c.out('out', (a.astype(np.uint64).sum(0) + 1000).astype(np.uint32))


@case('copies_sm90.ptx', shared=3072)
def device_map(c):
    a = c.input('a', to_bf16(rng().standard_normal((20, 48))))
    image = tile_bytes(a, (8, 0), (16, 64), 128, b'\xf7\x7f')
    c.input('scratch', np.zeros(16, np.uint64))
    c.out('out', image)
    for v in (48, 20, image.size):
        c.scalar('i32', v)
