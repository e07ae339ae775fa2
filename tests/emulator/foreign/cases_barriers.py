"""Expectations for barriers.cu."""
import numpy as np
from harness import case, rng


@case('barriers_sm90.ptx', block=64)
def mbarrier_counts(c):
    c.out('out', np.array([1] * 64 + [48, 8, 0, 1, 0, 1], np.uint32))


@case('barriers_sm90.ptx', grid=2)
def mbarrier_ping_pong(c):
    rounds, values = 9, [1, 1]
    for i in range(rounds):
        values[1] = values[0] * 3 % 2**32
        values[0] = (values[1] * 3 + 1) % 2**32
    c.out('out', np.array([values[0]], np.uint32))
    c.scalar('i32', rounds)


@case('barriers_sm90.ptx', grid=2)
def st_async(c):
    want = []
    for peer in (1, 0):
        me = peer * 1000 + np.arange(32)
        words = np.full(256, 0xAAAA, np.uint32)
        words[0:32] = me
        words[32:96] = (me.astype(np.uint64) << np.uint64(33)).view(np.uint32)
        words[96:224] = np.stack([me + 0.5, me + 1.5, -1.0 * me, me * 0 + 0.25], 1).astype(np.float32).reshape(-1).view(np.uint32)
        want.append(words)
    c.out('out', np.stack(want))


@case('barriers_sm90.ptx', grid=4)
def red_async(c):
    me = np.arange(128)
    words = np.zeros(10, np.uint32)
    words[0] = me.sum()
    words[1] = 5
    words[2] = 127 - 50
    words[3] = 128 % 100
    words[4] = 0xFFFFFF00
    words[5] = 0xFFFF
    words[6] = np.bitwise_xor.reduce(me.astype(np.uint32) * 0x01010101)
    words[8:10] = np.array([1 + (int(me.sum()) << 30)], np.uint64).view(np.uint32)
    c.out('out', words)


def facts(c, grid, cluster):
    want = np.zeros((grid[1], grid[0], 16), np.uint32)
    for y in range(grid[1]):
        for x in range(grid[0]):
            cx, cy = x % cluster[0], y % cluster[1]
            rank = cx + cluster[0] * cy
            want[y, x] = [rank, cluster[0] * cluster[1], cx, cy, x // cluster[0], y // cluster[1], grid[0] // cluster[0], cluster[0], 1, rank,
                          1 << 24, 1, 1, 0, 1, 1]
    c.out('out', want)


@case('barriers_sm90.ptx', 'cluster_facts', grid='8,2', cluster='4,2')
def cluster_facts_8(c):
    facts(c, (8, 2), (4, 2))


@case('barriers_sm90.ptx', 'cluster_facts', grid='32,1', cluster='16,1')
def cluster_facts_16(c):
    facts(c, (32, 1), (16, 1))


def cluster_total(c, size):
    a = c.input('a', rng().integers(-8, 9, 1000).astype(np.float32))
    ranks = np.arange(size, dtype=np.float32)
    c.out('out', np.tile(a.sum() + ranks, 2).astype(np.float32))
    c.scalar('i32', a.size)


# both clusters of the grid sum all of the array: thread_rank is within the cluster
@case('barriers_sm90.ptx', 'cluster_sum', grid=16, cluster='8', block=64)
def cluster_sum_8(c):
    cluster_total(c, 8)


@case('barriers_sm90.ptx', 'cluster_sum', grid=32, cluster='16', block=64)
def cluster_sum_16(c):
    cluster_total(c, 16)


@case('barriers_sm90.ptx', block=64)
def named_barriers(c):
    total = np.zeros(32, np.uint64)
    for i in range(7):
        total = (total * np.uint64(7) + np.uint64(i * 100) + np.arange(32, dtype=np.uint64)) % np.uint64(2**32)
    c.out('out', total.astype(np.uint32))
    c.scalar('i32', 7)


@case('barriers_sm90.ptx', block=96)
def barrier_votes(c):
    a = c.input('a', rng().integers(-4, 8, 96).astype(np.int32))
    c.out('out', np.full(96, (a > 2).sum() * 100 + 10 + (a == 7).any(), np.int32))


@case('barriers_sm90.ptx')
def cp_async_kinds(c):
    a = c.input('a', rng().integers(0, 256, 2048, dtype=np.uint8))
    want = np.zeros(2048, np.uint8)
    want[:128] = a[:128]
    for t in range(32):
        n = t % 9
        want[128 + t * 8:128 + t * 8 + n] = a[128 + t * 8:128 + t * 8 + n]
        if t % 2:
            want[1024 + t * 16:1040 + t * 16] = a[1024 + t * 16:1040 + t * 16]
        if not t & 4:
            want[1536 + t * 16:1552 + t * 16] = a[1536 + t * 16:1552 + t * 16]
    want[512:1024] = a[512:1024]
    c.out('out', want)
