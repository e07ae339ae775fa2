"""Expectations for threads.cu."""
import numpy as np
from harness import case, rng

FILES = ['threads_sm90.ptx', 'threads_sm100.ptx']


def low32(v): return (int(v) + 2**31) % 2**32 - 2**31
def div(a, b): return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
def rem(a, b): return a - b * div(a, b)


def like(m, n):
    for _ in range(m):
        n = low32(n * 2 + 3)
    return n


@case(FILES, block=32, grid=2)
def calls(c):
    a = c.input('a', rng().integers(-1000, 1000, 64).astype(np.int32))
    rows = []
    for t, x in enumerate(a.tolist()):
        m = like(t & 7, x)
        p = m + 1, m * 0.5
        rows.append([x + p[0], x * p[1]])
    c.out('out', np.array(rows, np.float64))


@case(FILES, block=64, grid=2)
def switches(c):
    a = c.input('a', rng(2).integers(-500, 5000, 128).astype(np.int32))
    want = []
    for x in a.tolist():
        r = 0
        for i in range(3):
            k = rem(x + i, 12)
            if k == 0: r += x
            elif k == 1: r ^= 77
            elif k == 2: r = r * 3 + i
            elif k == 3: r += 4
            elif k == 4: r += 9
            elif k == 5: r = bin(r & 0xFFFFFFFF).count('1')
            elif k == 6: r = min(r, x)
            elif k == 7: r = ~r
            elif k == 8: continue
            elif k == 9: r += like(i, x)
            else: r = r * 2 + 1
            r = low32(r)
            if r > 100000: break
        want.append(r)
    c.out('out', np.array(want, np.int32))


@case(FILES, block=96)
def collatz(c):
    a = c.input('a', rng(3).integers(1, 5000, 96).astype(np.uint32))
    want = []
    for n in a.tolist():
        steps = 0
        while n != 1 and steps < 300:
            n, steps = (3 * n + 1 if n & 1 else n // 2), steps + 1
        want.append(steps)
    c.out('out', np.array(want, np.uint32))


@case(FILES, block=32, grid=2)
def memories(c):
    a = c.input('a', rng(4).integers(0, 256, 64).astype(np.int32))
    primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
    table = [[1, 2, 3], [4.5, 5.5, 6.5], [-1, -2, -3], [0.25, 0.5, 0.75]]
    rows = []
    for x in a.tolist():
        local = [x * i + primes[i % 10] for i in range(16)]
        rows.append([sum(local[x * 7 + i * 3 & 15] * table[i & 3][x % 3] for i in range(8)), primes[x % 10]])
    c.out('out', np.array(rows, np.float32), tol=1e-6)


@case(FILES, block=32)
def vectors(c):
    a = c.input('a', rng(5).integers(-50, 50, (32, 4)).astype(np.float32))
    b = c.input('b', rng(6).integers(0, 256, (32, 4)).astype(np.uint8))
    s = c.input('s', rng(7).integers(-3000, 3000, (32, 2)).astype(np.int16))
    f = b.astype(np.float64)
    c.out('out', np.stack([a[:, 0] + f[:, 0] + s[:, 0], a[:, 1] * f[:, 1] - s[:, 1]], 1).astype(np.float64))
    c.out('out4', np.stack([a[:, 3], a[:, 2] * f[:, 2], a[:, 1] + f[:, 3], -a[:, 0]], 1).astype(np.float32))


@case(FILES, block=32)
def prints(c):
    c.scalar('i32', 7)
    c.stdout = 'thread 7 of 32: hello 10.500 123456789abc z\n'


@case(FILES, block=64)
def warp_votes(c):
    a = rng(8).integers(-40, 40, 64).astype(np.int32)
    a[32:] = rng(9).integers(0, 4, 32)
    c.input('a', a)
    rows = []
    for t in range(64):
        w = a[t // 32 * 32:][:32].tolist()
        lane, x = t % 32, int(a[t])
        ballot = sum((v > 0) << i for i, v in enumerate(w))
        xor = 0
        for v in w: xor ^= v & 0xFFFFFFFF
        odd = sum((w[i] > 0) << i for i in range(1, 32, 2)) ^ min(v & 1023 for v in w[1::2])
        up = w[lane - 3] if lane % 16 >= 3 else x
        rows.append([ballot, all(v > -100 for v in w), 3 in w, sum((v == x) << i for i, v in enumerate(w)), 0xFFFFFFFF, 1, sum(w), max(w), xor, w[lane * 5 + 3 & 31], up,
                     w[lane + 7] if lane < 25 else x, w[lane ^ 9], odd if lane & 1 else 0, 0xFFE00000 if lane > 20 else 0, 32])
    c.out('out', np.array([[int(v) % 2**32 for v in row] for row in rows], np.uint32))


@case(FILES, block=256)
def block_scan(c):
    a = c.input('a', rng(10).integers(-100, 100, 250).astype(np.int32))
    c.out('out', np.cumsum(a).astype(np.int32))
    c.scalar('i32', 250)


@case(FILES, block=128)
def bitonic(c):
    a = rng(11).integers(0, 2**32, 128, dtype=np.uint32)
    c.inout('a', a, np.sort(a))


@case(FILES, block=64, grid=3)
def atomics(c):
    a = c.input('a', rng(12).integers(-100, 100, 192).astype(np.int32))
    t, x = np.arange(192), a.astype(np.int64)
    i = np.array([5, 6, 7, 8], np.int32)
    c.inout('i', i, np.array([5 + x.sum(), 6 - x.sum(), min(7, x.min()), max(8, x.max())], np.int32))
    u = np.zeros(12, np.uint32)
    u[0] = 0xFFFFFFFF
    w = u.copy()
    w[0] = 0xFFFF0000
    w[1] = np.bitwise_or.reduce(1 << (x & 31))
    w[2] = np.bitwise_xor.reduce(a.view(np.uint32))
    w[3] = 192 % 11
    down = 0
    for _ in range(192): down = 6 if down == 0 or down > 6 else down - 1
    w[4] = down
    w[6] = 4321
    for k in range(4):
        parts = [sum(int(v) for v in x[b * 64:b * 64 + 64][k::4]) % 2**32 for b in range(3)]
        w[8 + k] = sum(parts) % 2**32
    c.inout('u', u, w, tol=None)
    c.wants[-1] = ('u', w, None, 0, lambda v: hide(v))
    c.inout('f', np.zeros(1, np.float32), x.sum(keepdims=True).astype(np.float32))
    c.inout('w', np.zeros(2, np.uint64), np.array([int(x.sum() << 20) % 2**64, int(a.view(np.uint32).max())], np.uint64))
    c.inout('d', np.zeros(1), x.sum(keepdims=True) * 0.5)
    c.inout('h', np.zeros(2, np.float16), np.array([192, -384], np.float16))


def hide(words):
    """Which thread wins the exchange is nobody's promise, nor how the mark in the first counter mixes with its sum."""
    words = words.copy()
    words[5] = words[8] = 0
    return words


@case(FILES, block=64, grid=5)
def last_block_sum(c):
    a = c.input('a', rng(13).integers(-9, 10, 1000).astype(np.float32))
    c.input('part', np.zeros(5, np.float32))
    c.out('out', a.sum(keepdims=True))
    c.scalar('i32', 1000)


@case(FILES, block=32, grid=6)
def handshake(c):
    want, v = [], 1
    for b in range(6):
        v = v * 2 + b if b else 2
        want.append(v)
    c.input('flags', np.zeros(6, np.int32))
    c.out('out', np.array(want, np.int32))


@case(FILES, block='16,16', grid='3,3')
def shared_matmul(c):
    a, b = (c.input(n, rng(k).integers(-5, 6, (40, 40)).astype(np.float32)) for k, n in ((14, 'a'), (15, 'b')))
    c.out('c', a @ b)
    c.scalar('i32', 40)
