"""Further kernels of forms_engines.py: products of warps and warpgroups, tiles between memory and registers, spellings of tcgen05.mma."""
import os
import re
import numpy as np
import cases_mma
from cases_mma import image as operand_image, make
from forms_engines import KERNELS, THREAD, Kernel, kernel
from harness import rng, e4m3, e5m2

here = os.path.dirname(os.path.abspath(__file__))


# ---- products of a warp: registers come from memory, as the layout says

def pack_words(codes, bits, where, word):
    row, k = where
    out = np.zeros(32, np.uint64)
    for e in range(word):
        out |= codes[row, k + e].astype(np.uint64) << np.uint64(bits * e)
    return out.astype(np.uint32)


WARP_TYPES = {'f16': (16, 2), 'bf16': (16, 2), 'tf32': (32, 1), 'e4m3': (8, 4), 'e5m2': (8, 4), 's8': (8, 4), 'u8': (8, 4), 's4': (4, 8), 'u4': (4, 8), 'b1': (1, 32)}


def values_of(kind, shape, seed):
    """Codes and values, small enough for exact sums in f16."""
    r = rng(seed)
    if kind in ('e4m3', 'e5m2'):
        decoder = {'e4m3': e4m3, 'e5m2': e5m2}[kind]
        known = {v: [int(k) for k in range(256) if (k & 0x7F) < 0x7C and decoder(k) == v][0] for v in (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0)}
        v = r.choice(list(known), shape)
        return np.vectorize(known.get)(v).astype(np.uint8), v
    if kind in ('s4', 'u4', 'b1'):
        code = r.integers(0, 2 if kind == 'b1' else 16, shape).astype(np.uint8)
        return code, (code.astype(np.float64) + 8) % 16 - 8 if kind == 's4' else code.astype(np.float64)
    codes, v = make(kind, shape, seed)
    return codes, np.asarray(v, np.float64)


def warp_products(name, forms):
    """forms: (m, k, types of D, A, B, ending). A, B and C come from arrays of registers, D goes back."""
    body = [THREAD + '.reg .b32 a<4>, b<2>, c<4>; .reg .b64 in, out, g; ld.param.u64 in, [inputs]; ld.param.u64 out, [results]; mul.wide.u32 g, t, 4; add.s64 in, in, g; add.s64 out, out, g;']
    shapes = []
    for i, (m, k, d, a, b, extra) in enumerate(forms):
        word = WARP_TYPES[a][1]
        steps, results = k // (4 * word), 2 if d == 'f16' else m // 4
        shapes.append((m // 8 * steps, steps, results))
        base = i * 10 * 128
        body += [f'ld.global.u32 a{j}, [in+{base + 128 * j}];' for j in range(m // 8 * steps)] + [f'ld.global.u32 b{j}, [in+{base + 128 * (4 + j)}];' for j in range(steps)]
        body += [f'ld.global.u32 c{j}, [in+{base + 128 * (6 + j)}];' for j in range(results)]
        lists = ['{' + ', '.join(f'{n}{j}' for j in range(count)) + '}' for n, count in zip('abc', shapes[-1])]
        ending, before = (extra, '') if 'popc' in extra else ('', extra)
        body.append(f'mma.sync.aligned.m{m}n8k{k}.row.col{before}.{d}.{a}.{b}.{d}{ending} {lists[2]}, {lists[0]}, {lists[1]}, {lists[2]};')
        body += [f'st.global.u32 [out+{512 * i + 128 * j}], c{j};' for j in range(results)]
    body.append('ret;')

    def run(c):
        inputs, want = np.zeros((len(forms), 10, 32), np.uint32), np.zeros((len(forms), 4, 32), np.uint32)
        t = np.arange(32)
        for i, ((m, k, d, a, b, extra), (regs_a, regs_b, results)) in enumerate(zip(forms, shapes)):
            bits, word = WARP_TYPES[a]
            (ca, va), (cb, vb) = values_of(a, (m, k), 41 + i), values_of(b, (8, k), 141 + i)
            start = rng(241 + i).integers(-8, 9, (m, 8)).astype(np.float64)
            if d == 's32': start += 2**31 - 20 if i % 2 else -2**31 + 20
            result = start + ((ca[:, None, :] != cb[None, :, :]).sum(2) if 'xor' in extra else va @ vb.T)
            for j in range(regs_a): inputs[i, j] = pack_words(ca, bits, (t // 4 + 8 * (j % (m // 8)), word * (t % 4) + 4 * word * (j // (m // 8))), word)
            for j in range(regs_b): inputs[i, 4 + j] = pack_words(cb, bits, (t // 4, word * (t % 4) + 4 * word * j), word)
            if d == 's32':
                limit = lambda x, s='satfinite' in extra: np.clip(x, -2**31, 2**31 - 1) if s else (x.astype(np.int64) + 2**31) % 2**32 - 2**31
                codes = lambda x: limit(x).astype(np.int64).astype(np.int32).view(np.uint32)
            elif d == 'f16':
                codes = lambda x: x.astype(np.float16).view(np.uint16).astype(np.uint32)
            else:
                codes = lambda x: x.astype(np.float32).view(np.uint32)
            start, result = codes(start), codes(result)
            for j in range(results):
                row, column = (t // 4 + 8 * j, 2 * (t % 4)) if d == 'f16' else (t // 4 + 8 * (j // 2), 2 * (t % 4) + j % 2)
                for target, source, at in ((inputs, start, 6 + j), (want, result, j)):
                    target[i, at] = source[row, column] | source[row, column + 1] << 16 if d == 'f16' else source[row, column]
        c.input('inputs', inputs)
        c.out('results', want)
    kernel(name, 90, ['inputs', 'results'], '\n'.join(body), run)


def products_of(kinds):
    return [(a, b) for a in kinds for b in kinds]


warp_products('warp_products', [(16, k, 'f32', t, t, '') for k in (8, 16) for t in ('f16', 'bf16')] + [(16, k, 'f16', 'f16', 'f16', '') for k in (8, 16)] + [(16, k, 'f32', 'tf32', 'tf32', '') for k in (4, 8)]
              + [(16, k, 's32', a, b, s) for a, b in products_of(('s8', 'u8')) for k in (16, 32) for s in ('', '.satfinite')] + [(16, 32, 'f32', a, b, '') for a, b in products_of(('e4m3', 'e5m2'))])
warp_products('warp_products_small', [(16, k, 's32', a, b, s) for a, b in products_of(('s4', 'u4')) for k in (32, 64) for s in ('', '.satfinite')] + [(16, k, 's32', 'b1', 'b1', f'.{op}.popc') for k in (128, 256) for op in ('and', 'xor')]
              + [(8, 16, 's32', a, b, s) for a, b in products_of(('s8', 'u8')) for s in ('', '.satfinite')] + [(8, 32, 's32', a, b, s) for a, b in products_of(('s4', 'u4')) for s in ('', '.satfinite')]
              + [(8, 128, 's32', 'b1', 'b1', f'.{op}.popc') for op in ('and', 'xor')])


def warp_doubles():
    forms = [(8, 4), (16, 4), (16, 8), (16, 16)]
    body = [THREAD + '.reg .b64 a<8>, b<4>, c<4>, in, out, g; ld.param.u64 in, [inputs]; ld.param.u64 out, [results]; mul.wide.u32 g, t, 8; add.s64 in, in, g; add.s64 out, out, g;']
    for i, (m, k) in enumerate(forms):
        counts = (m // 8 * k // 4, k // 4, m // 4)
        for name, first, count in zip('abc', (0, 8, 12), counts):
            body += [f'ld.global.b64 {name}{j}, [in+{i * 4096 + 256 * (first + j)}];' for j in range(count)]
        lists = ['{' + ', '.join(f'{n}{j}' for j in range(count)) + '}' for n, count in zip('abc', counts)]
        body.append(f'mma.sync.aligned.m{m}n8k{k}.row.col.f64.f64.f64.f64 {lists[2]}, {lists[0]}, {lists[1]}, {lists[2]};')
        body += [f'st.global.b64 [out+{i * 1024 + 256 * j}], c{j};' for j in range(counts[2])]
    body.append('ret;')

    def run(c):
        inputs, want, t = np.zeros((len(forms), 16, 32)), np.zeros((len(forms), 4, 32)), np.arange(32)
        for i, (m, k) in enumerate(forms):
            a, b, start = (rng(s + i).integers(-1000, 1000, shape).astype(np.float64) / 8 for s, shape in ((301, (m, k)), (311, (8, k)), (321, (m, 8))))
            result = a @ b.T + start
            for j in range(m // 8 * k // 4): inputs[i, j] = a[t // 4 + 8 * (j % (m // 8)), t % 4 + 4 * (j // (m // 8))]
            for j in range(k // 4): inputs[i, 8 + j] = b[t // 4, t % 4 + 4 * j]
            for j in range(m // 4):
                row, column = t // 4 + 8 * (j // 2), 2 * (t % 4) + j % 2
                inputs[i, 12 + j], want[i, j] = start[row, column], result[row, column]
        c.input('inputs', inputs)
        c.out('results', want)
    kernel('warp_doubles', 90, ['inputs', 'results'], '\n'.join(body), run)


warp_doubles()


# ---- wgmma

def warpgroup_products(name, forms):
    """forms: (n, d, a, b, ending). A is 64 x 32 bytes, B n x 32 bytes, both without swizzle; D starts at 5, or near the limit of s32."""
    body = [f'.shared .align 128 .b8 pool[12288]; {THREAD} .reg .b32 x, y, s, d<128>, v<4>; .reg .b64 in, out, g, da, db; ld.param.u64 in, [inputs]; ld.param.u64 out, [results]; mul.wide.u32 g, t, 16; add.s64 in, in, g; '
            'mul.wide.u32 g, t, 4; add.s64 out, out, g; mov.u32 s, pool; setp.eq.u32 p, t, t;']
    at = put = 0
    layout = []
    for n, d, a, b, ending in forms:
        size = 2048 + 32 * n
        size += -size % 2048
        results = n // 4 if d == 'f16' else n // 2
        start = {'f32': 0x40A00000, 'f16': 0x45004500, 's32': 0x7FFFFF00 if ending else 5}[d]
        body.append('bar.sync 0; mad.lo.u32 x, t, 16, s;')
        body += [f'ld.global.v4.u32 {{v0, v1, v2, v3}}, [in+{at + 2048 * i}]; st.shared.v4.u32 [x+{2048 * i}], {{v0, v1, v2, v3}};' for i in range(size // 2048)]
        body.append('fence.proxy.async; bar.sync 0; cvt.u64.u32 da, s; shr.u64 da, da, 4; and.b64 da, da, 0x3FFF; or.b64 da, da, 0x1000080000; add.s64 db, da, 128;')
        body += [f'mov.b32 d{j}, {start};' for j in range(results)]
        registers = '{' + ', '.join(f'd{j}' for j in range(results)) + '}'
        tail = '' if d == 's32' or a not in ('f16', 'bf16') and a != 'x' else ', 0, 0'
        scales = '' if d == 's32' else ', 1, 1'
        k = 32 // {'f16': 2, 'bf16': 2, 'tf32': 4}.get(a, 1)
        body.append(f'wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b}{ending} {registers}, da, db, p{scales}{tail}; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;')
        body += [f'st.global.u32 [out+{512 * (put + j)}], d{j};' for j in range(results)]
        layout.append((n, d, a, b, ending, at, put, results, k))
        at, put = at + size, put + results
    body.append('ret;')

    def run(c):
        inputs, want = np.zeros(at, np.uint8), np.zeros((put, 128), np.uint32)
        t = np.arange(128)
        for i, (n, d, a, b, ending, where, first, results, k) in enumerate(layout):
            (ca, va), (cb, vb) = values_of(a, (64, k), 51 + i), values_of(b, (n, k), 151 + i)
            size = 32 // k
            inputs[where:where + 2048] = operand_image(ca, size, 'K', 0, 128, 256, 2048)
            inputs[where + 2048:where + 2048 + 32 * n] = operand_image(cb, size, 'K', 0, 128, 256, 32 * n)
            result = va @ vb.T + (0x7FFFFF00 if d == 's32' and ending else 5)
            if d == 's32':
                codes = np.clip(result, -2**31, 2**31 - 1).astype(np.int64).astype(np.int32).view(np.uint32)
            else:
                codes = result.astype(np.float16).view(np.uint16).astype(np.uint32) if d == 'f16' else result.astype(np.float32).view(np.uint32)
            for j in range(results):
                if d == 'f16':
                    row, column = 16 * (t // 32) + t % 32 // 4 + 8 * (j % 2), 8 * (j // 2) + 2 * (t % 4)
                    want[first + j] = codes[row, column] | codes[row, column + 1] << 16
                else:
                    want[first + j] = codes[16 * (t // 32) + t % 32 // 4 + 8 * (j // 2 % 2), 8 * (j // 4) + 2 * (t % 4) + j % 2]
        c.input('inputs', inputs)
        c.out('results', want)
    kernel(name, 90, ['inputs', 'results'], '\n'.join(body), run, block=128)


warpgroup_products('wgmma_widths', [(n, 'f32', t, t, '') for n in (8, 32, 64, 128, 256) for t in ('bf16', 'f16')])
warpgroup_products('wgmma_types', [(32, d, a, b, '') for d in ('f32', 'f16') for a in ('e4m3', 'e5m2') for b in ('e4m3', 'e5m2')] + [(32, 's32', a, b, e) for a in ('s8', 'u8') for b in ('s8', 'u8') for e in ('', '.satfinite')]
                   + [(32, 'f32', 'tf32', 'tf32', ''), (32, 'f16', 'f16', 'f16', '')])


# ---- ldmatrix and stmatrix

def matrices():
    body = [f'.shared .align 128 .b8 tile[1024]; {THREAD} .reg .b32 r<4>, own, other; .reg .b64 out, g, generic; ld.param.u64 out, [results]; mul.wide.u32 g, t, 4; add.s64 out, out, g; mov.u32 own, tile; mad.lo.u32 own, t, 16, own; '
            'cvt.u64.u32 generic, own; cvta.shared.u64 generic, generic; add.u32 other, own, 512;']
    body += [f'mad.lo.u32 r0, t, 524296, {2 * i * 65536 + 65536 + 2 * i}; st.shared.u32 [own+{4 * i}], r0;' for i in range(4)]
    body.append('bar.warp.sync 0xffffffff;')
    want, t = [], np.arange(32)
    tile = np.arange(256, dtype=np.uint32).reshape(4, 8, 8)

    def fragments(n, trans):
        return [(m := tile[i].T if trans else tile[i])[t // 4, 2 * (t % 4)] | m[t // 4, 2 * (t % 4) + 1] << 16 for i in range(n)]
    for n in (1, 2, 4):
        registers = '{' + ', '.join(f'r{i}' for i in range(n)) + '}'
        for trans in ('', '.trans'):
            for space, at in (('.shared', 'own'), ('.shared::cta', 'own'), ('', 'generic')):
                body.append(f'ldmatrix.sync.aligned.m8n8.x{n}{trans}{space}.b16 {registers}, [{at}];')
                body += [f'st.global.u32 [out+{128 * (len(want) + i)}], r{i};' for i in range(n)]
                want += fragments(n, bool(trans))
            for space in ('.shared', '.shared::cta'):  # stored as loaded; transposed once more, plain words come back
                body.append(f'ldmatrix.sync.aligned.m8n8.x{n}.shared.b16 {registers}, [own]; stmatrix.sync.aligned.m8n8.x{n}{trans}{space}.b16 [other], {registers}; bar.warp.sync 0xffffffff; '
                            f'ldmatrix.sync.aligned.m8n8.x{n}.shared.b16 {registers}, [other]; bar.warp.sync 0xffffffff;')
                body += [f'st.global.u32 [out+{128 * (len(want) + i)}], r{i};' for i in range(n)]
                want += fragments(n, bool(trans))
    body.append('ret;')
    kernel('matrices', 90, ['results'], '\n'.join(body), lambda c: c.out('results', np.stack(want)))


matrices()


def byte_matrices():
    """Tiles of bytes, plain and packed; lines of 16 bytes in shared memory, one a thread."""
    body = [f'.shared .align 128 .b8 tile[1024]; {THREAD} .reg .b32 r<4>, own, other; .reg .b64 in, out, g, generic, v<2>; ld.param.u64 in, [inputs]; ld.param.u64 out, [results]; mul.wide.u32 g, t, 16; add.s64 in, in, g; mul.wide.u32 g, t, 4; add.s64 out, out, g; mov.u32 own, tile; mad.lo.u32 own, t, 16, own; '
            'cvt.u64.u32 generic, own; cvta.shared.u64 generic, generic; add.u32 other, own, 512; ld.global.v2.u64 {v0, v1}, [in]; st.shared.v2.u64 [own], {v0, v1}; bar.warp.sync 0xffffffff;']
    lines = rng(91).integers(0, 256, (32, 16), dtype=np.uint8)
    want, t = [], np.arange(32)

    def unpacked(bits):
        if bits == 8: return lines
        number = [int.from_bytes(line.tobytes(), 'little') for line in lines]
        codes = np.array([[n >> bits * i & (1 << bits) - 1 for i in range(16)] for n in number])
        return (codes << 2 if bits == 4 else codes).astype(np.uint8)

    def word(parts): return sum(p.astype(np.uint32) << np.uint32(8 * i) for i, p in enumerate(parts))
    packings = (('.b8', 8), ('.b8x16.b4x16_p64', 4), ('.b8x16.b6x16_p32', 6))
    forms = [('m16n16', n, '.trans', s, p) for n in (1, 2) for s in ('.shared', '.shared::cta', '') for p in packings] + [('m8n16', n, '', s, p) for n in (1, 2, 4) for s in ('.shared', '.shared::cta', '') for p in packings[1:]]
    for shape, n, trans, space, (spelled, bits) in forms:
        count = 2 * n if shape == 'm16n16' else n
        registers = '{' + ', '.join(f'r{i}' for i in range(count)) + '}'
        body.append(f'ldmatrix.sync.aligned.{shape}.x{n}{trans}{space}{spelled} {registers}, [{"own" if space else "generic"}];')
        body += [f'st.global.u32 [out+{128 * (len(want) + i)}], r{i};' for i in range(count)]
        data = unpacked(bits)
        for j in range(count):
            if shape == 'm16n16':  # a line is a column of the tile
                want.append(word([data[16 * (j // 2) + 4 * (t % 4) + b, t // 4 + 8 * (j % 2)] for b in range(4)]))
            else:
                want.append(word([data[8 * j + t // 4, 4 * (t % 4) + b] for b in range(4)]))
    for n in (1, 2, 4):
        for space in ('.shared', '.shared::cta', ''):
            registers = '{' + ', '.join(f'r{i}' for i in range(n)) + '}'
            body += [f'ld.shared.u32 r{i}, [own+{4 * i}];' for i in range(4)]
            body.append('st.shared.v2.u64 [other], {0, 0}; bar.warp.sync 0xffffffff; ' + ('cvt.u64.u32 v0, other; cvta.shared.u64 v0, v0; ' if not space else '')
                        + f'stmatrix.sync.aligned.m16n8.x{n}.trans{space}.b8 [{"other" if space else "v0"}], {registers}; bar.warp.sync 0xffffffff;')
            body += [f'ld.shared.u32 r{i}, [other+{4 * i}]; st.global.u32 [out+{128 * (len(want) + i)}], r{i};' for i in range(4)] + ['bar.warp.sync 0xffffffff;']
            memory = np.zeros((32, 16), np.uint8)
            for tile in range(n):
                for b in range(4):  # byte b of thread t: row t / 4 + 8 (b / 2), column 2 (t % 4) + b % 2; a column is a line
                    memory[8 * tile + 2 * (t % 4) + b % 2, t // 4 + 8 * (b // 2)] = lines[t, 4 * tile + b]
            want += list(memory.view(np.uint32).T)
    body.append('ret;')

    def run(c):
        c.input('inputs', lines)
        c.out('results', np.stack(want).astype(np.uint32))
    kernel('byte_matrices', 100, ['inputs', 'results'], '\n'.join(body), run)


byte_matrices()


# ---- tcgen05.mma: spellings that mean the same, by rewriting a compiled kernel

def variants():
    with open(os.path.join(here, 'ptx', 'mma_sm100.ptx')) as file:
        compiled = file.read()

    def variant(name, entry, old, new, run, **options):
        assert old in compiled, old
        KERNELS.append(Kernel(name, 100, compiled.replace(old, new), run, {'block': 128, **options}, entry))

    def collectors(statement, uses, prefix):
        """The statement once for each use, on the same operand: each result overwrites the last, with the same product."""
        return ' '.join(statement.replace('KIND', prefix + use) for use in uses)
    one = re.search(r'tcgen05\.mma\.cta_group::1\.kind::f16 (\[[^\]]*\], %rd\d+, %rd\d+, %r\d+, P);', compiled)
    every = ['fill', 'use', 'lastuse']
    single = lambda c: cases_mma.dense(c, 128, 64, 16, 'bf16', 'bf16', span=(32, 32))
    variant('collector_a', 'mma_f16', one[0], collectors(f'tcgen05.mma.cta_group::1.kind::f16.KIND {one[1]};', every, 'collector::a::'), single)
    variant('collector_a_discard', 'mma_f16', one[0], f'tcgen05.mma.cta_group::1.kind::f16.collector::a::discard {one[1]};', single)
    ws = re.search(r'tcgen05\.mma\.ws\.cta_group::1\.kind::f16\.collector::b0::discard ([^;]*);', compiled)
    flat = lambda c: cases_mma.dense(c, 32, 64, 16, 'bf16', 'bf16', span=(32, 32), where='G')
    for b in range(4):
        variant(f'collector_b{b}', 'mma_ws_f16', ws[0], collectors(f'tcgen05.mma.ws.cta_group::1.kind::f16.KIND {ws[1]};', every + ['discard'], f'collector::b{b}::'), flat)
    variant('ws_plain', 'mma_ws_f16', ws[0], f'tcgen05.mma.ws.cta_group::1.kind::f16 {ws[1]};', flat)
    variant('ws_tf32', 'mma_ws_f16', ws[0], f'tcgen05.mma.ws.cta_group::1.kind::tf32 {ws[1]};', lambda c: cases_mma.dense(c, 64, 64, 32, 'tf32', 'tf32', where='E'))
    variant('ws_f8f6f4', 'mma_ws_f16', ws[0], f'tcgen05.mma.ws.cta_group::1.kind::f8f6f4 {ws[1]};', lambda c: cases_mma.dense(c, 32, 128, 64, 'e4m3', 'e5m2', span=(64, 64), where='G'))
    variant('ws_i8', 'mma_ws_f16', ws[0], f'tcgen05.mma.ws.cta_group::1.kind::i8 {ws[1]};', lambda c: cases_mma.dense(c, 32, 64, 64, 's8', 'u8', d=2, span=(64, 64), where='G'))
    mx = 'kind::mxf8f6f4.block_scale.scale_vec::1X'
    for name, new in (('default', 'kind::mxf8f6f4.block_scale'), ('block32', 'kind::mxf8f6f4.block_scale.block32')):
        variant(f'mxf8_{name}', 'mma_mxf8f6f4', mx, new, lambda c: cases_mma.scaled(c, 'mxf8f6f4', ('e4m3', 'e5m2'), 32, 1, 1, 'ue8m0'))
    fp4 = ('fp4', 'fp4')
    for name, new in (('default', 'kind::mxf4.block_scale'), ('block32', 'kind::mxf4.block_scale.block32')):
        variant(f'mxf4_{name}', 'mma_mxf4', 'kind::mxf4.block_scale.scale_vec::2X', new, lambda c: cases_mma.scaled(c, 'mxf4', fp4, 64, 2, 2, 'ue8m0'))
    variant('nvf4_block16', 'mma_mxf4nvf4', 'kind::mxf4nvf4.block_scale.scale_vec::4X', 'kind::mxf4nvf4.block_scale.block16', lambda c: cases_mma.scaled(c, 'mxf4nvf4', fp4, 64, 4, 0, 'ue4m3'))
    variant('nvf4_block32', 'mma_mxf4nvf4_2x', 'kind::mxf4nvf4.block_scale.scale_vec::2X', 'kind::mxf4nvf4.block_scale.block32', lambda c: cases_mma.scaled(c, 'mxf4nvf4_2x', fp4, 64, 2, 2, 'ue8m0'))
    variant('pair_tf32', 'mma_pair_f16', 'tcgen05.mma.cta_group::2.kind::f16', 'tcgen05.mma.cta_group::2.kind::tf32', lambda c: cases_mma.pair(c, 256, 64, 32, 'tf32', 'A'), grid=2)

    # columns of B that count as zero: the ISA's examples (start counts, first spans, skip, use)
    for name, rows, starts, firsts, skip, use in (('m128', 128, (0,), (0,), 2, 3), ('m64', 64, (0, 0), (1, 0), 2, 3), ('m32', 32, (0, 1, 2, 1), (1, 1, 0, 0), 2, 3), ('m128_wide', 128, (9,), (1,), 16, 6)):
        word = 1 << 39 | skip << 40 | use << 48 | sum(s << 8 * i for i, s in enumerate(starts)) | sum(f << 32 + i for i, f in enumerate(firsts))

        def masked(c, rows=rows, starts=starts, firsts=firsts, skip=skip, use=use):
            n = 64
            cases_mma.dense(c, rows, n, 16, 'bf16', 'bf16', span=(32, 32), where={128: 'D', 64: 'E', 32: 'G'}[rows])
            name, want, *rest = c.wants[-1]
            zero = []
            for start, first in zip(starts, firsts):
                period = ([1] * (skip + 1) + [0] * (use + 1)) if first else ([0] * (use + 1) + [1] * (skip + 1))
                sequence = period * n
                zero += sequence[start:start + n // len(starts)]
            dense = np.zeros((rows, n), np.uint32)
            dense[:, np.array(zero) == 0] = 1
            keep = cases_mma.place(dense, {128: 'D', 64: 'E', 32: 'G'}[rows])
            c.wants[-1] = (name, np.where(keep == 0, 0, want).astype(np.uint32), *rest)
        variant(f'zero_columns_{name}', 'mma_ws_f16', ws[0], f'{{ .reg .b64 zero; mov.b64 zero, {word}; tcgen05.mma.ws.cta_group::1.kind::f16 {ws[1]}, zero; }}', masked)


variants()
