"""Kernels that this file writes for instructions which forms.py cannot hold in a line: copies, mbarriers, barriers, tensor memory.
Each goes through every spelling that coverage.txt lists, and its expectation is worked out from the published rules."""
import numpy as np
from cases_tmem import cells
from harness import rng, to_bf16, from_bf16

KERNELS = []


class Kernel:
    def __init__(self, name, arch, text, run, options, entry=None):
        self.name, self.arch, self.text, self.run, self.options, self.entry = name, arch, text, run, options, entry or name


def kernel(name, arch, params, body, run, preamble='', **options):
    """params: names, u64 pointers unless they have a colon and a declaration behind it."""
    declared = ', '.join(p.partition(':')[2] + ' ' + p.partition(':')[0] if ':' in p else f'.param .u64 {p}' for p in params)
    text = f'.version 9.0\n.target sm_{arch}a\n.address_size 64\n{preamble}\n.visible .entry {name}({declared})\n{{\n{body}\n}}\n'
    KERNELS.append(Kernel(name, arch, text, run, options))


def wait(bar, parity=0, form='mbarrier.try_wait.parity.shared::cta.b64'):
    """Statements that wait for a phase; p is a predicate of the kernel."""
    wait.count += 1
    return f'W{wait.count}: {form} p, [{bar}], {parity}; @!p bra W{wait.count};'


wait.count = 0
THREAD = '.reg .pred p; .reg .b32 t; mov.u32 t, %tid.x;'


# ---- tensor memory: every shape, every count

REGISTERS = {'32x32b': 1, '16x64b': 1, '16x128b': 2, '16x256b': 4, '16x32bx2': 1}
COLUMNS = {'32x32b': 1, '16x64b': 2, '16x128b': 4, '16x256b': 8, '16x32bx2': 1}
MOST = {'32x32b': 128, '16x64b': 128, '16x128b': 64, '16x256b': 32, '16x32bx2': 128}
WIDTH = 256


def tmem_forms(shape, pack):
    """(count, registers, split) of the forms of a shape."""
    out, n = [], 1
    while n <= (4 if pack else MOST[shape]):
        out.append((n, n * REGISTERS[shape], n * (2 if pack else 1) if shape == '16x32bx2' else 0))
        n *= 2
    return out if not (pack and shape == '16x32bx2') else out[:2]


TMEM_START = f'''.shared .align 4 .b32 slot; .reg .pred p, q; .reg .b32 t, w, c, x, base, own, at; .reg .b32 r<260>; .reg .b64 in, out, g;
mov.u32 t, %tid.x; shr.u32 w, t, 5; setp.eq.u32 p, w, 0; mov.u32 x, slot;
@p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [x], 512;
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; ld.shared.u32 base, [slot]; shl.b32 own, w, 21; add.u32 own, own, base;
ld.param.u64 in, [image]; ld.param.u64 out, [results]; mul.wide.u32 g, t, {4 * WIDTH}; add.s64 in, in, g; mov.u32 c, 0;
FILL: ld.global.u32 x, [in]; add.s64 in, in, 4; add.u32 at, own, c; tcgen05.st.sync.aligned.32x32b.x1.b32 [at], {{x}}; add.u32 c, c, 1; setp.lt.u32 q, c, {WIDTH}; @q bra FILL;
tcgen05.wait::st.sync.aligned;'''
TMEM_END = '''tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync; @p tcgen05.dealloc.cta_group::1.sync.aligned.b32 base, 512; ret;'''


def braces(n): return '{' + ', '.join(f'r{i}' for i in range(n)) + '}'


def picture(): return rng(31).integers(0, 2**32, (128, WIDTH), dtype=np.uint32)


def tmem_loads(shape, pack):
    forms = tmem_forms(shape, pack)
    total = sum(f[1] for f in forms)
    body, extra = [TMEM_START, f'mul.wide.u32 g, t, {4 * total}; add.s64 out, out, g;'], '.pack::16b' if pack else ''
    done = 0
    for i, (count, n, split) in enumerate(forms):
        low = 16 if i % 2 and shape != '32x32b' else 0
        body.append(f'add.u32 at, own, {low << 16}; tcgen05.ld.sync.aligned.{shape}.x{count}{extra}.b32 {braces(n)}, [at]{f", {split}" if split else ""}; tcgen05.wait::ld.sync.aligned;')
        body += [f'st.global.u32 [out+{4 * (done + j)}], r{j};' for j in range(n)]
        done += n

    def run(c):
        image, want = c.input('image', picture()), np.zeros((128, total), np.uint32)
        done = 0
        for i, (count, n, split) in enumerate(forms):
            low = 16 if i % 2 and shape != '32x32b' else 0
            for j in range(n):
                lane, column = cells(shape, j, split)
                if pack and shape == '16x32bx2':
                    column = np.arange(32) // 16 * split + 2 * j
                elif pack:
                    column = 2 * column
                for w in range(4):
                    row = 32 * w + low + lane
                    want[32 * w:32 * w + 32, done + j] = image[row, column] & 0xFFFF | image[row, column + 1] << 16 if pack else image[row, column]
            done += n
        c.out('results', want)
    kernel(f'tmem_ld_{shape}{"_pack" if pack else ""}', 100, ['image', 'results'], '\n'.join(body + [TMEM_END]), run, block=128)


def tmem_stores(shape, unpack):
    forms = tmem_forms(shape, unpack)
    body, extra = [TMEM_START, f'mul.wide.u32 g, t, {4 * WIDTH}; add.s64 out, out, g;'], '.unpack::16b' if unpack else ''
    for i, (count, n, split) in enumerate(forms):
        low = 16 if i % 2 and shape != '32x32b' else 0
        body.append(f'shl.b32 x, t, 20; or.b32 x, x, {count << 10};')
        body += [f'or.b32 r{j}, x, {j};' for j in range(n)]
        body.append(f'add.u32 at, own, {low << 16}; tcgen05.st.sync.aligned.{shape}.x{count}{extra}.b32 [at]{f", {split}" if split else ""}, {braces(n)}; tcgen05.wait::st.sync.aligned;')
        body.append(f'mov.u32 c, 0; D{i}: add.u32 at, own, c; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{x}}, [at]; tcgen05.wait::ld.sync.aligned; st.global.u32 [out], x; add.s64 out, out, 4; add.u32 c, c, 1; '
                    f'setp.lt.u32 q, c, {WIDTH}; @q bra D{i}; add.s64 out, out, {4 * 127 * WIDTH};')

    def run(c):
        image = c.input('image', picture()).copy()
        want = np.zeros((len(forms), 128, WIDTH), np.uint32)
        for i, (count, n, split) in enumerate(forms):
            low = 16 if i % 2 and shape != '32x32b' else 0
            for j in range(n):
                lane, column = cells(shape, j, split)
                if unpack:
                    column = np.arange(32) // 16 * split + 2 * j if shape == '16x32bx2' else 2 * column
                for w in range(4):
                    row, value = 32 * w + low + lane, ((np.arange(32) + 32 * w) << 20 | count << 10 | j).astype(np.uint32)
                    image[row, column] = value & 0xFFFF if unpack else value
                    if unpack:
                        image[row, column + 1] = value >> 16
            want[i] = image
        c.out('results', want)
    kernel(f'tmem_st_{shape}{"_unpack" if unpack else ""}', 100, ['image', 'results'], '\n'.join(body + [TMEM_END]), run, block=128)


for shape in REGISTERS:
    for pack in (False, True):
        tmem_loads(shape, pack)
        tmem_stores(shape, pack)


def generic_allocation(group):
    """alloc and commit through generic addresses; a pair allocates together, the even CTA's thread commits for both."""
    pair = group == 2
    meet = 'barrier.cluster.arrive.relaxed; barrier.cluster.wait;' if pair else 'bar.sync 0;'
    body = f'''.shared .align 8 .b64 bar; .shared .align 4 .b32 slot; {THREAD} .reg .pred one; .reg .b32 base, rank; .reg .b64 a, b, out, g;
mov.u64 a, slot; cvta.shared.u64 a, a; mov.u64 b, bar; cvta.shared.u64 b, b; ld.param.u64 out, [results]; mov.u32 rank, %cluster_ctarank; mul.wide.u32 g, rank, 8; add.s64 out, out, g;
setp.eq.u32 one, t, 0; @one mbarrier.init.b64 [b], 1; fence.mbarrier_init.release.cluster; {meet}
tcgen05.alloc.cta_group::{group}.sync.aligned.b32 [a], 64; ld.u32 base, [a]; @one st.global.u32 [out], base; bar.warp.sync 0xffffffff;
@one tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.b64 [b]; {wait('bar')} @one st.global.u32 [out+4], 7;
@one mbarrier.inval.b64 [b]; @one mbarrier.init.b64 [b], 1; bar.warp.sync 0xffffffff; {meet}
@one tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [bar]; {wait('bar')}
{meet} tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned; tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 base, 64; ret;'''
    kernel(f'tmem_generic_{group}', 100, ['results'], body, lambda c: c.out('results', np.array([[0, 7]] * group, np.uint32)), grid=group, cluster=str(group) if pair else '1', block=32)


generic_allocation(1)
generic_allocation(2)


# ---- TMA of every rank

def tensor(rank): return (np.arange(8 * 2 ** (rank - 1), dtype=np.uint32) * 0x01010101 + rank).reshape((2,) * (rank - 1) + (8,))


def corner(rank):
    """What all tests move: elements 4 to 7 of the innermost dimension, all of the others but the outermost, of which the second half."""
    return (slice(1, 2),) * (rank > 1) + (slice(None),) * max(rank - 2, 0) + (slice(4, 8),)


def box(rank): return (1,) * (rank > 1) + (2,) * max(rank - 2, 0) + (4,)
def coordinates(rank): return '{' + ', '.join(['4'] + ['0'] * max(rank - 2, 0) + ['1'] * (rank > 1)) + '}'
def map_parameter(name): return f'{name}:.param .align 64 .b8'


def with_maps(names, others):
    return [f'{n}[128]:.param .align 64 .b8' for n in names] + others


HEAD = f'.shared .align 128 .b8 pool[1024]; .shared .align 8 .b64 bar; {THREAD} .reg .b32 x; .reg .b64 map, out, policy; createpolicy.fractional.L2::evict_first.b64 policy;'


def tma_loads():
    body, want, names = [HEAD, 'ld.param.u64 out, [results];'], [], [f'm{r}' for r in range(1, 6)]
    for rank in range(1, 6):
        count = 4 * 2 ** max(rank - 2, 0)
        body.append(f'mov.u64 map, m{rank}; cvta.param.u64 map, map; cp.async.bulk.prefetch.tensor.{rank}d.L2.global [map, {coordinates(rank)}]; prefetch.param.tensormap [m{rank}]; prefetch.tensormap [map];')
        forms = [f'{space}.global{tile}.mbarrier::complete_tx::bytes' for space in ('shared::cluster', 'shared::cta') for tile in ('', '.tile')] + ['shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint']
        if rank == 2: forms.append('cta_group::1.shared::cluster.global.mbarrier::complete_tx::bytes')
        for form in forms:
            if 'cta_group' in form: continue
            body.append(f'mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {4 * count}; cp.async.bulk.tensor.{rank}d.{form} [pool], [map, {coordinates(rank)}], [bar]{", policy" if "hint" in form else ""};')
            body.append(wait('bar'))
            body += [f'ld.shared.u32 x, [pool+{4 * i}]; st.global.u32 [out+{4 * (len(want) + i)}], x; st.shared.u32 [pool+{4 * i}], 0;' for i in range(count)]
            body.append('mbarrier.inval.shared::cta.b64 [bar];')
            want += list(tensor(rank)[corner(rank)].reshape(-1))
    body.append('ret;')

    def run(c):
        for rank in range(1, 6): c.tma(f'm{rank}', tensor(rank), box(rank), 'u32')
        c.out('results', np.array(want, np.uint32))
    kernel('tma_loads', 90, with_maps(names, ['results']), '\n'.join(body), run, block=1)


def tma_stores():
    """Each store and each reduction has a tensor of its own."""
    forms = [(rank, f'cp.async.bulk.tensor.{rank}d.global.shared::cta{tile}.bulk_group') for rank in range(1, 6) for tile in ('', '.tile')]
    forms.append((2, 'cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint'))
    forms += [(rank, f'cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add.tile.bulk_group') for rank in range(1, 6)]
    forms += [(2, 'cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group'), (2, 'cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group.L2::cache_hint')]
    body = [HEAD] + [f'st.shared.u32 [pool+{4 * i}], {1000 + i};' for i in range(32)] + ['fence.proxy.async;']
    for i, (rank, form) in enumerate(forms):
        body.append(f'mov.u64 map, m{i}; cvta.param.u64 map, map; {form} [map, {coordinates(rank)}], [pool]{", policy" if "hint" in form else ""}; cp.async.bulk.commit_group; cp.async.bulk.wait_group{".read" if i % 2 else ""} {i % 3};')
    body.append('cp.async.bulk.wait_group 0; ret;')

    def run(c):
        for i, (rank, form) in enumerate(forms):
            start, values = tensor(rank), (1000 + np.arange(4 * 2 ** max(rank - 2, 0), dtype=np.uint32)).reshape(box(rank))
            want = start.copy()
            want[corner(rank)] = want[corner(rank)] + values if 'reduce' in form else values
            c.inout(f'm{i}', start, want, tma={'box': box(rank), 'dtype': 'u32'})
    kernel('tma_stores', 90, with_maps([f'm{i}' for i in range(len(forms))], []), '\n'.join(body), run, block=1)


def tma_pairs():
    """Two CTAs: the even one loads for both. With cta_group::2 both signals go to the even CTA's mbarrier, whose address is named."""
    body = [HEAD + f'.reg .b32 rank; .reg .b16 both; .reg .b64 g; mov.u32 rank, %cluster_ctarank; mov.b16 both, 3; ld.param.u64 out, [results]; mul.wide.u32 g, rank, {4 * 24}; add.s64 out, out, g; .reg .pred even; setp.eq.u32 even, rank, 0;']
    meet = 'barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;'
    forms = [(3, 'shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster', 32, 32, ', both'), (2, 'cta_group::1.shared::cluster.global.mbarrier::complete_tx::bytes', 16, 16, ''),
             (2, 'cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster', 16, 32, ', both')]
    want, done = [], 0
    for rank, form, size, expected, mask in forms:
        both_wait = 'cta_group::2' not in form
        guard = '@even ' if mask else ''
        body.append(f'mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; fence.proxy.async; {"" if both_wait else "@even "}mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {expected}; {meet}')
        body.append(f'mov.u64 map, m{rank}; cvta.param.u64 map, map; {guard}cp.async.bulk.tensor.{rank}d.{form} [pool], [map, {coordinates(rank)}], [bar]{mask};')
        body.append(wait('bar') if both_wait else f'@!even bra OTHER; {wait("bar")} OTHER: ')
        body.append(meet)
        body += [f'ld.shared.u32 x, [pool+{4 * i}]; st.global.u32 [out+{4 * (done + i)}], x; st.shared.u32 [pool+{4 * i}], 0;' for i in range(size // 4)]
        body.append(f'mbarrier.inval.shared::cta.b64 [bar]; {meet}')
        want += list(tensor(rank)[corner(rank)].reshape(-1))
        done += size // 4
    body.append('ret;')

    def run(c):
        for rank in (2, 3): c.tma(f'm{rank}', tensor(rank), box(rank), 'u32')
        c.out('results', np.array([want + [0] * (24 - len(want))] * 2, np.uint32))
    kernel('tma_pairs', 100, with_maps(['m2', 'm3'], ['results']), '\n'.join(body), run, grid=2, cluster='2', block=1)


tma_loads()
tma_stores()
tma_pairs()


# ---- copies without a map

ADDERS = {'add': lambda x, y: x + y, 'min': np.minimum, 'max': np.maximum, 'and': lambda x, y: x & y, 'or': lambda x, y: x | y, 'xor': lambda x, y: x ^ y, 'inc': lambda x, y: np.where(x >= y, 0, x + 1),
          'dec': lambda x, y: np.where((x == 0) | (x > y), y, x - 1)}
NUMPY = {'u32': np.uint32, 's32': np.int32, 'b32': np.uint32, 'u64': np.uint64, 's64': np.int64, 'b64': np.uint64, 'f32': np.float32, 'f64': np.float64, 'f16': np.float16}


def combined(op, t, memory, data):
    """16 bytes of memory after a reduction with 16 bytes of data."""
    with np.errstate(all='ignore'):
        if t == 'bf16':
            return to_bf16(ADDERS[op](from_bf16(memory.view(np.uint16)), from_bf16(data.view(np.uint16)))).view(np.uint8)
        return ADDERS[op](memory.view(NUMPY[t]), data.view(NUMPY[t])).astype(NUMPY[t]).view(np.uint8)


def some_bytes(t, seed):
    """16 bytes of a type: numbers whose sums are exact, or all bits of integers."""
    r = rng(seed)
    if t == 'bf16': return to_bf16(r.integers(-9, 10, 8)).view(np.uint8)
    if t[0] == 'f': return r.integers(-9, 10, 128 // int(t[1:])).astype(NUMPY[t]).view(np.uint8)
    return r.integers(0, 256, 16, dtype=np.uint8)


def bulk_reductions():
    both = {'add': ['u32', 's32', 'u64'], 'min': ['u32', 's32'], 'max': ['u32', 's32'], 'inc': ['u32'], 'dec': ['u32'], 'and': ['b32'], 'or': ['b32'], 'xor': ['b32']}
    wide = {'add': ['f32', 'f64', 'f16', 'bf16'], 'min': ['u64', 's64', 'f16', 'bf16'], 'max': ['u64', 's64', 'f16', 'bf16'], 'and': ['b64'], 'or': ['b64'], 'xor': ['b64']}
    forms = [('shared', op, t) for op, ts in both.items() for t in ts] + [('global', op, t) for op, ts in both.items() for t in ts + wide.get(op, [])]
    body = ['.shared .align 128 .b8 pool[64]; .shared .align 8 .b64 bar; ' + THREAD + '.reg .b32 target, remote; .reg .b64 in, out, v<2>; ld.param.u64 in, [inputs]; ld.param.u64 out, [results]; mov.u32 target, %cluster_ctarank; mov.u32 remote, bar; mapa.shared::cluster.u32 remote, remote, target; mul.wide.u32 v0, target, SIZE; add.s64 out, out, v0; '
            '{ .reg .b32 own; mov.u32 own, pool; mapa.shared::cluster.u32 target, own, target; }']
    for i, (where, op, t) in enumerate(forms):
        body.append(f'ld.global.v2.u64 {{v0, v1}}, [in+{32 * i}]; st.shared.v2.u64 [pool], {{v0, v1}}; st.global.v2.u64 [out+{16 * i}], {{v0, v1}}; ld.global.v2.u64 {{v0, v1}}, [in+{32 * i + 16}]; st.shared.v2.u64 [pool+16], {{v0, v1}}; mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async;')
        if where == 'shared':
            body.append(f'mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16; cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{t} [target], [pool+16], 16, [remote]; {wait("bar")} ld.shared.v2.u64 {{v0, v1}}, [pool]; st.global.v2.u64 [out+{16 * i}], {{v0, v1}};')
        else:
            body.append(f'cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}{".noftz" if op == "add" and t in ("f16", "bf16") else ""}.{t} [out+{16 * i}], [pool+16], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;')
        body.append('mbarrier.inval.shared::cta.b64 [bar];')
    body.append('ret;')

    def run(c):
        pairs = [(some_bytes(t, 61 + 2 * i), some_bytes(t, 62 + 2 * i)) for i, (_, _, t) in enumerate(forms)]
        c.input('inputs', np.array(pairs, np.uint8))
        want = np.stack([combined(op, t, *pair) for (_, op, t), pair in zip(forms, pairs)])
        c.out('results', np.stack([want, want]))
    kernel('bulk_reductions', 90, ['inputs', 'results'], '\n'.join(body).replace('SIZE', str(16 * len(forms))), run, grid=2, cluster='2', block=1)


def bulk_copies():
    """Results: 48 bytes to shared::cta, then from there with a hint, then every second byte of a chunk, the last with both."""
    body = HEAD + f'''.reg .b64 in, v<2>; .reg .b16 bytes; ld.param.u64 in, [inputs]; ld.param.u64 out, [results]; mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 48;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [pool], [in], 48, [bar]; cp.async.bulk.prefetch.L2.global [in], 48; {wait("bar")}
cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [out], [pool], 48, policy; mov.b16 bytes, 0x5555;
cp.async.bulk.global.shared::cta.bulk_group.cp_mask [out+48], [pool], 48, bytes; mov.b16 bytes, 0x800F;
cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [out+96], [pool], 48, policy, bytes; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;'''

    def run(c):
        data = c.input('inputs', rng(71).integers(1, 256, 48, dtype=np.uint8))
        kept = lambda mask: np.where(mask >> np.arange(48) % 16 & 1, data, 0).astype(np.uint8)
        c.out('results', np.stack([data, kept(0x5555), kept(0x800F)]))
    kernel('bulk_copies', 100, ['inputs', 'results'], body, run, block=1)


bulk_reductions()
bulk_copies()


def small_copies():
    """cp.async in every width and spelling; 16 bytes a lane and form."""
    forms = [(f'ca.{s}.global', n) for s in ('shared', 'shared::cta') for n in (4, 8, 16)] + [(f'cg.{s}.global', 16) for s in ('shared', 'shared::cta')] + [(f'{c}.shared.global.L2::{n}B', 16) for c in ('ca', 'cg') for n in (64, 128, 256)]
    body = ['.shared .align 128 .b8 pool[2048]; ' + THREAD + '.reg .b32 own, size; .reg .pred skip; .reg .b64 in, out, g, v<2>; ld.param.u64 in, [inputs]; ld.param.u64 out, [results]; mul.wide.u32 g, t, 16; add.s64 in, in, g; add.s64 out, out, g; mov.u32 own, pool; mad.lo.u32 own, t, 16, own; '
            'and.b32 size, t, 15; setp.lt.u32 skip, t, 9;']
    want = []
    data = rng(73).integers(1, 256, (32, 16), dtype=np.uint8)
    first = lambda n: np.where(np.arange(16) < n, data, 0xFF)

    def add(text, rows):
        body.append(f'st.shared.v2.u64 [own], {{-1, -1}}; {text} cp.async.{["wait_all", "commit_group; cp.async.wait_group 0"][len(want) % 2]}; ld.shared.v2.u64 {{v0, v1}}, [own]; st.global.v2.u64 [out+{512 * len(want)}], {{v0, v1}};')
        want.append(rows.astype(np.uint8))
    for form, n in forms:
        add(f'cp.async.{form} [own], [in], {n};', first(n))
    sizes = np.arange(32)[:, None] & 15
    add('cp.async.cg.shared.global [own], [in], 16, size;', np.where(np.arange(16) < sizes, data, 0))
    add('cp.async.ca.shared.global [own], [in], 16, skip;', np.where(np.arange(32)[:, None] < 9, 0, data))
    body.append('ret;')

    def run(c):
        c.input('inputs', data)
        c.out('results', np.stack(want))
    kernel('small_copies', 90, ['inputs', 'results'], '\n'.join(body), run)


small_copies()


# ---- mbarriers

def mbarriers():
    """One mbarrier a row. A row's result is the pending count that a further arrival saw, and whether the phase was over before and after the last event."""
    body = [f'.shared .align 8 .b64 bar; {THREAD} .reg .pred before, after; .reg .b32 n, x, remote; .reg .b64 out, state, generic; ld.param.u64 out, [results]; mov.u64 generic, bar; cvta.shared.u64 generic, generic; mov.u32 remote, bar; mapa.shared::cluster.u32 remote, remote, 0;']
    want = []
    test = 'mbarrier.test_wait.parity.shared::cta.b64'

    def row(count, event, last, pending, init='mbarrier.init.shared::cta.b64 [bar]', tests=(test, test), inval='mbarrier.inval.shared::cta.b64 [bar]'):
        """init; the event under test; an arrival that tells what is pending; test; the last event; test."""
        body.append(f'{init}, {count}; {event}; mbarrier.arrive.shared::cta.b64 state, [bar]; mbarrier.pending_count.b64 n, state; {tests[0]} before, [bar], 0; {last}; {tests[1]} after, [bar], 0; selp.u32 x, 256, 0, before; or.b32 n, n, x; selp.u32 x, 512, 0, after; or.b32 n, n, x; '
                    f'st.global.u32 [out+{4 * len(want)}], n; {inval};')
        want.append(pending | 512)
    plain = 'mbarrier.arrive.shared::cta.b64 _, [bar]'
    for suffix, at in (('.shared', 'bar'), ('.shared::cta', 'bar'), ('', 'generic')):
        row(3, f'mbarrier.arrive{suffix}.b64 _, [{at}]', plain, 2, init=f'mbarrier.init{suffix}.b64 [{at}]', inval=f'mbarrier.inval{suffix}.b64 [{at}]')
        row(3, f'mbarrier.arrive_drop{suffix}.b64 _, [{at}]', plain, 2)
    for order in ('release', 'relaxed'):
        for scope in ('cta', 'cluster'):
            row(3, f'mbarrier.arrive.{order}.{scope}.shared::cta.b64 _, [bar]', plain, 2)
            row(4, f'mbarrier.arrive.{order}.{scope}.shared::cta.b64 _, [bar], 2', plain, 2)
    for form in ('', '.release.cluster', '.relaxed.cluster'):
        row(3, f'mbarrier.arrive{form}.shared::cluster.b64 _, [remote]', plain, 2)
    row(3, 'mbarrier.arrive_drop.shared::cluster.b64 _, [remote]', plain, 2)
    row(3, 'mbarrier.arrive.noComplete.shared::cta.b64 state, [bar], 1', plain, 2)
    row(3, 'mbarrier.arrive_drop.noComplete.shared::cta.b64 state, [bar], 1', plain, 2)
    for form, at in (('.shared', 'bar'), ('.shared::cta', 'bar'), ('.shared::cluster', 'remote'), ('.release.cluster.shared::cluster', 'remote')):
        row(2, f'mbarrier.arrive.expect_tx{form}.b64 _, [{at}], 24', 'mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 24', 1)
    row(2, 'mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [bar], 24', 'mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 24', 1)
    for scope in ('cta', 'cluster'):
        for space, at in (('shared::cta', 'bar'), ('shared::cluster', 'remote')):
            row(1, f'mbarrier.expect_tx.relaxed.{scope}.{space}.b64 [{at}], 8', f'mbarrier.complete_tx.relaxed.{scope}.{space}.b64 [{at}], 8', 1)
    for kind in ('test_wait', 'try_wait'):
        for form in ('.shared', '.shared::cta', *(f'.{o}.{s}.shared::cta' for o in ('acquire', 'relaxed') for s in ('cta', 'cluster'))):
            both = f'mbarrier.{kind}.parity{form}.b64'
            row(2, 'mov.u32 x, 0', plain, 2, tests=(test, both))
        for space in ('shared', 'shared::cta'):
            # with a state: of the phase that the row's arrival belongs to
            body.append(f'mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.arrive.shared::cta.b64 state, [bar]; mbarrier.test_wait.shared::cta.b64 before, [bar], state; {plain}; mbarrier.{kind}.{space}.b64 after, [bar], state; selp.u32 n, 256, 0, before; selp.u32 x, 512, 0, after; or.b32 n, n, x; '
                        f'st.global.u32 [out+{4 * len(want)}], n; mbarrier.inval.shared::cta.b64 [bar];')
            want.append(512)
    # a dropped participant is missing in the next phase, too
    body.append(f'mbarrier.init.shared::cta.b64 [bar], 2; mbarrier.arrive_drop.shared::cta.b64 _, [bar]; {plain}; {plain}; mbarrier.test_wait.parity.shared::cta.b64 after, [bar], 1; selp.u32 n, 1, 0, after; st.global.u32 [out+{4 * len(want)}], n; ret;')
    want.append(1)
    kernel('mbarriers', 90, ['results'], '\n'.join(body), lambda c: c.out('results', np.array(want, np.uint32)), block=1)


def copies_that_arrive():
    """cp.async.mbarrier.arrive: counts once the lane's copies are done; without .noinc the count was raised before."""
    body = ['.shared .align 16 .b8 pool[16]; .shared .align 8 .b64 bar; ' + THREAD + '.reg .pred before; .reg .b32 x; .reg .b64 in, out, generic; ld.param.u64 in, [inputs]; ld.param.u64 out, [results]; mov.u64 generic, bar; cvta.shared.u64 generic, generic;']
    forms = [(noinc, space, at) for noinc in ('', '.noinc') for space, at in (('.shared', 'bar'), ('.shared::cta', 'bar'), ('', 'generic'))]
    for i, (noinc, space, at) in enumerate(forms):
        body.append(f'mbarrier.init.shared::cta.b64 [bar], {2 if noinc else 1}; cp.async.ca.shared.global [pool], [in+{16 * i}], 16; cp.async.mbarrier.arrive{noinc}{space}.b64 [{at}]; mbarrier.arrive.shared::cta.b64 _, [bar]; {wait("bar")} ld.shared.u32 x, [pool+4]; st.global.u32 [out+{4 * i}], x; mbarrier.inval.shared::cta.b64 [bar];')
    body.append('ret;')

    def run(c):
        data = c.input('inputs', np.arange(4 * len(forms), dtype=np.uint32).reshape(-1, 4))
        c.out('results', data[:, 1])
    kernel('copies_that_arrive', 90, ['inputs', 'results'], '\n'.join(body), run, block=1)


mbarriers()
copies_that_arrive()


def remote_stores():
    """st.async and red.async, to the own CTA by its cluster address."""
    body = ['.shared .align 16 .b8 pool[16]; .shared .align 8 .b64 bar; ' + THREAD + '.reg .b32 target, remote, r<4>; .reg .b64 in, out, l<2>; ld.param.u64 in, [inputs]; ld.param.u64 out, [results]; mov.u32 target, %cluster_ctarank; mov.u32 remote, bar; mapa.shared::cluster.u32 remote, remote, target; mul.wide.u32 l0, target, SIZE; add.s64 out, out, l0; { .reg .b32 own; mov.u32 own, pool; mapa.shared::cluster.u32 target, own, target; }']
    forms = [('st', f'st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{v}.{t}', t, n) for t in ('b32', 'u32', 's32', 'f32') for v, n in (('', 1), ('.v2', 2), ('.v4', 4))]
    forms += [('st', f'st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{v}.{t}', t, n) for t in ('b64', 'u64', 's64', 'f64') for v, n in (('', 1), ('.v2', 2))]
    forms += [('st', f'st.async.shared::cluster.mbarrier::complete_tx::bytes{v}.{t}', t, n) for v, t, n in (('', 'u32', 1), ('.v4', 'f32', 4))]
    for op, types in {'add': ('u32', 's32', 'u64'), 'min': ('u32', 's32'), 'max': ('u32', 's32'), 'inc': ('u32',), 'dec': ('u32',), 'and': ('b32',), 'or': ('b32',), 'xor': ('b32',)}.items():
        forms += [(op, f'red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op}.{t}', t, 1) for t in types]
    for i, (op, form, t, n) in enumerate(forms):
        wide = t.endswith('64')
        size, reg = (8, 'l') if wide else (4, 'r')
        values = f'{reg}0' if n == 1 else '{' + ', '.join(f'{reg}{j}' for j in range(n)) + '}'
        body.append(f'ld.global.v2.u64 {{l0, l1}}, [in+{32 * i}]; st.shared.v2.u64 [pool], {{l0, l1}}; ' + ('ld.global.v2.u64 {l0, l1}' if wide else 'ld.global.v4.u32 {r0, r1, r2, r3}') + f', [in+{32 * i + 16}]; mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; '
                    f'mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {size * n}; {form} [target], {values}, [remote]; {wait("bar")} ld.shared.v2.u64 {{l0, l1}}, [pool]; st.global.v2.u64 [out+{16 * i}], {{l0, l1}}; mbarrier.inval.shared::cta.b64 [bar];')
    body.append('ret;')

    def run(c):
        pairs = [(some_bytes('u32', 81 + 2 * i), some_bytes('u32', 82 + 2 * i)) for i in range(len(forms))]
        want = []
        for (op, _, t, n), (memory, data) in zip(forms, pairs):
            size, row = int(t[1:]) // 8 * n, memory.copy()
            row[:size] = (data if op == 'st' else combined(op, t, memory, data))[:size]
            want.append(row)
        c.input('inputs', np.array(pairs, np.uint8))
        c.out('results', np.stack([want, want]))
    kernel('remote_stores', 90, ['inputs', 'results'], '\n'.join(body).replace('SIZE', str(16 * len(forms))), run, grid=2, cluster='2', block=1)


remote_stores()


# ---- barriers of the CTA

def barriers():
    """64 threads. Warp 0 writes a word a form, meets warp 1 at the form, warp 1 reads it; then they change roles."""
    body = [f'.shared .align 16 .b8 pool[256]; {THREAD} .reg .pred first, q; .reg .b32 x, own; .reg .b64 out, g; ld.param.u64 out, [results]; and.b32 own, t, 31; setp.lt.u32 first, t, 32; mul.wide.u32 g, own, 4; add.s64 out, out, g; mov.u32 x, pool; mad.lo.u32 own, own, 4, x;']
    rows = 0
    pairs = [('bar.sync 1', 'bar.sync 1'), ('bar.sync 2, 64', 'bar.sync 2, 64'), ('bar.arrive 3, 64', 'bar.sync 3, 64'), ('barrier.sync 4', 'barrier.sync 4'), ('barrier.sync.aligned 5, 64', 'barrier.sync.aligned 5, 64'), ('barrier.arrive 6, 64', 'barrier.sync 6, 64'),
             ('barrier.arrive.aligned 7, 64', 'barrier.sync.aligned 7, 64'), ('bar.cta.sync 8', 'bar.cta.sync 8'), ('bar.cta.arrive 9, 64', 'bar.cta.sync 9, 64'), ('barrier.cta.sync 10', 'barrier.cta.sync 10'), ('barrier.cta.arrive 11, 64', 'barrier.cta.sync 11, 64'),
             ('barrier.cta.arrive.aligned 12, 64', 'barrier.cta.sync.aligned 12, 64'), ('barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned', 'barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned'),
             ('barrier.cluster.arrive.release; barrier.cluster.wait.acquire', 'barrier.cluster.arrive; barrier.cluster.wait'), ('fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait', 'barrier.cluster.arrive.relaxed; barrier.cluster.wait; fence.acq_rel.cluster')]
    for i, (writer, reader) in enumerate(pairs):
        body.append(f'@!first bra R{i}; add.u32 x, t, {100 * i}; st.shared.u32 [own], x; {writer}; bra N{i}; R{i}: {reader}; ld.shared.u32 x, [own]; st.global.u32 [out+{128 * rows}], x; N{i}: bar.sync 0;')
        rows += 1
    want = [np.arange(32) + 100 * i for i in range(len(pairs))]
    for i, (form, kind, value) in enumerate([('bar.red.popc.u32', 'x', 20), ('barrier.red.popc.aligned.u32', 'x', 20), ('barrier.cta.red.popc.aligned.u32', 'x', 20), ('bar.red.and.pred', 'q', 0), ('bar.red.or.pred', 'q', 1), ('barrier.cta.red.and.aligned.pred', 'q', 0),
                                             ('barrier.cta.red.or.aligned.pred', 'q', 1), ('barrier.red.or.pred', 'q', 1)]):
        body.append(f'setp.lt.u32 p, t, 20; {form} {kind}, {i + 1}, p; ' + ('selp.u32 x, 1, 0, q; ' if kind == 'q' else '') + f'@!first st.global.u32 [out+{128 * rows}], x;')
        want.append(np.full(32, value))
        rows += 1
    body.append('ret;')
    kernel('barriers', 90, ['results'], '\n'.join(body), lambda c: c.out('results', np.stack(want).astype(np.uint32)), block=64)


barriers()


# ---- parameters and calls

def parameters():
    """Pieces of a 64-bit parameter of the kernel, and of 16 bytes passed to a function."""
    value = 0x8A9BACBDCEDFE0F1
    preamble = '''.func (.param .b32 r) piece(.param .align 16 .b8 x[16], .param .b32 which)
{ .reg .b32 a, b, c, d, w; .reg .pred p;
  ld.param.b32 w, [which]; setp.ne.u32 p, w, 0; @p bra TWO; ld.param.v4.u32 {a, b, c, d}, [x]; bra SUM; TWO: setp.ne.u32 p, w, 1; @p bra FLOATS; ld.param.v4.b32 {a, b, c, d}, [x]; bra SUM; FLOATS: ld.param.v4.f32 {a, b, c, d}, [x];
  SUM: mad.lo.u32 a, b, 3, a; mad.lo.u32 a, c, 5, a; mad.lo.u32 a, d, 7, a; st.param.b32 [r], a; ret.uni; }'''
    body = [THREAD + '.reg .b16 h; .reg .b32 x, y; .reg .b64 l, out; ld.param.u64 out, [results];']
    want = []

    def row(text, result):
        body.append(text + f' st.global.u64 [out+{8 * len(want)}], l;')
        want.append(result % 2**64)
    for t in ('u8', 's8', 'b8', 'u16', 's16', 'b16', 'u32', 's32', 'b32', 'u64', 's64', 'b64', 'f32', 'f64'):
        n = 64 if t[1:] == '64' else int(t[1:])
        at = 8 - n // 8
        raw = value >> 64 - n
        signed = raw - (1 << n) if t[0] == 's' and raw >> n - 1 else raw
        reg, widen = {8: ('h', 'cvt.s64.s16 l, h;' if t[0] == 's' else 'cvt.u64.u16 l, h;'), 16: ('h', 'cvt.s64.s16 l, h;' if t[0] == 's' else 'cvt.u64.u16 l, h;'), 32: ('x', 'cvt.s64.s32 l, x;' if t[0] == 's' else 'cvt.u64.u32 l, x;'), 64: ('l', '')}[n]
        row(f'ld.param.{t} {reg}, [number+{at}]; {widen}', signed)
    for t in ('u32', 'b32', 'f32'):
        row(f'ld.param.v2.{t} {{x, y}}, [number]; mov.b64 l, {{y, x}};', value >> 32 | value << 32)
    for which, store in enumerate(('st.param.v4.b32 [q], {1, 2, 3, 4};', 'st.param.b64 [q], 0x200000001; st.param.b64 [q+8], 0x400000003;', 'st.param.f64 [q], 0d0000000200000001; st.param.b32 [q+8], 3; st.param.b32 [q+12], 4;')):
        form = 'call' if which else 'call.uni'
        row(f'{{ .param .align 16 .b8 q[16]; .param .b32 w; .param .b32 r; {store} st.param.b32 [w], {which}; {form} (r), piece, (q, w); ld.param.b32 x, [r]; }} cvt.u64.u32 l, x;', 1 + 6 + 15 + 28)
    row('{ .reg .b32 i; mov.u32 i, 1; where: .branchtargets L0, L1, L2; brx.idx.uni i, where; L0: mov.u64 l, 10; bra.uni L3; L1: mov.u64 l, 11; bra.uni L3; L2: mov.u64 l, 12; L3: add.u64 l, l, 0; }', 11)
    body.append('ret.uni;')

    def run(c):
        c.scalar('i64', value - 2**64)
        c.out('results', np.array(want, np.uint64))
    kernel('parameters', 90, ['number', 'results'], '\n'.join(body), run, preamble=preamble, block=1)


parameters()


def stops(name, statement, message, preamble=''):
    kernel(name, 90, ['results'], f'.reg .b64 out; ld.param.u64 out, [results]; {statement} ret;', lambda c: c.out('results', np.zeros(1, np.uint32)), preamble=preamble, block=1, fails=message)


stops('stop_trap', 'trap;', 'trap')
stops('stop_brkpt', 'brkpt;', 'brkpt')
stops('stop_assert', '''{ .reg .b64 g; .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4; mov.u64 g, words; cvta.global.u64 g, g; st.param.b64 [p0], g; st.param.b64 [p1], g; st.param.b32 [p2], 77; st.param.b64 [p3], g; st.param.b64 [p4], 1;
call.uni __assertfail, (p0, p1, p2, p3, p4); }''', 'size < 9', '.global .align 1 .b8 words[9] = {115, 105, 122, 101, 32, 60, 32, 57, 0};\n.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) .noreturn;')


# ---- tensor maps on the device

def replaced_fields():
    """Fields of a zeroed map in shared and in global memory, then its words; copied to global memory with the fence."""
    fields = [('global_address', 'b64', None, 0x123456789AB0), ('rank', 'b32', None, 3), ('box_dim', 'b32', 0, 32), ('box_dim', 'b32', 1, 17), ('box_dim', 'b32', 3, 256), ('global_dim', 'b32', 0, 1000), ('global_dim', 'b32', 4, 77), ('global_stride', 'b64', 0, 4096),
              ('global_stride', 'b64', 2, 1 << 38 | 64), ('element_stride', 'b32', 1, 5), ('elemtype', 'b32', None, 10), ('interleave_layout', 'b32', None, 1), ('swizzle_mode', 'b32', None, 2), ('fill_mode', 'b32', None, 1)]
    words = np.zeros(32, np.int64)
    words[0], words[1] = 0x56789AB0, 0x1234
    words[2] = 3 << 4 | 10 << 7 | 1 << 11 | 2 << 13 | 1 << 15
    words[3], words[5], words[7] = 4096 >> 4, ((1 << 38 | 64) >> 4) & 0xFFFFFFFF, (1 << 38 >> 36) << 8
    words[8], words[12] = 999, 76
    words[13], words[14] = 31 << 24 | 4 << 3, 16 | 255 << 16
    plain = words.copy()
    words[2] |= 1 << 19
    body = ['.shared .align 128 .b8 box[128]; ' + THREAD + '.reg .b32 x, shared; .reg .b64 out, global, l; ld.param.u64 out, [results]; mov.u32 shared, box; mov.u64 global, field; mad.lo.u32 x, t, 4, shared; st.shared.u32 [x], 0; bar.warp.sync 0xffffffff; setp.eq.u32 p, t, 0; @!p bra COPY;']
    for space, at in (('shared::cta', 'shared'), ('global', 'global')):
        for name, size, order, value in fields:
            which = '' if order is None else f' {order},'
            source = f'mov.u64 l, {value}; ' if size == 'b64' else ''
            body.append(f'{source}tensormap.replace.tile.{name}.{space}.b1024.{size} [{at}],{which} {"l" if size == "b64" else value};')
    body.append('tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [shared], 1; COPY: bar.warp.sync 0xffffffff;')
    body.append('mov.u64 l, global; mad.wide.u32 l, t, 4, l; ld.global.u32 x, [l]; mad.wide.u32 l, t, 4, out; st.global.u32 [l], x;')
    for i, scope in enumerate(('cta', 'cluster', 'gpu', 'sys')):
        body.append(f'add.s64 l, out, {128 * (i + 1)}; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned [l], [shared], 128;')
    body.append('ret;')
    kernel('replaced_fields', 100, ['results'], '\n'.join(body), lambda c: c.out('results', np.stack([plain, words, words, words, words]).astype(np.uint32)), preamble='.global .align 128 .b8 field[128];')


replaced_fields()


# ---- clusterlaunchcontrol

def cancelled():
    """CTAs that take over those not yet started: each is done once, whoever does it. The second row counts by z."""
    forms = ('', '.shared::cta')
    for multicast in ('', '.multicast::cluster::all'):
        for i, space in enumerate(forms):
            body = f'''.shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar; {THREAD} .reg .pred more; .reg .b32 x, y, z, w, phase; .reg .b64 out, l, ga, gb; .reg .b128 q; ld.param.u64 out, [results];
mov.u64 ga, answer; mov.u64 gb, bar; {'' if space else 'cvta.shared.u64 ga, ga; cvta.shared.u64 gb, gb;'} mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async; mov.u32 x, %ctaid.x; mov.u32 y, %ctaid.y; mov.u32 z, %ctaid.z; mov.u32 phase, 0;
NEXT: mad.lo.u32 w, z, 2, y; mad.lo.u32 w, w, 3, x; mul.wide.u32 l, w, 4; add.s64 l, l, out; red.global.add.u32 [l], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16; fence.proxy.async; clusterlaunchcontrol.try_cancel.async{space}.mbarrier::complete_tx::bytes{multicast}.b128 [ga], [gb];
AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], phase; @!p bra AGAIN; xor.b32 phase, phase, 1;
ld.shared.b128 q, [answer]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 more, q; @!more bra DONE;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {{x, y, z, _}}, q; clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 w, q; setp.ne.u32 p, x, w; @p trap; clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 w, q; setp.ne.u32 p, y, w; @p trap;
clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 w, q; setp.ne.u32 p, z, w; @p trap; fence.proxy.async; bra NEXT; DONE: ret;'''
            kernel(f'cancelled_{i + (2 if multicast else 0)}', 100, ['results'], body, lambda c: c.out('results', np.ones(12, np.uint32)), grid='3,2,2', block=1)


cancelled()
