#!/usr/bin/env python3
"""Runs one hand-written kernel and compares what it stores with numpy, bit for bit.

  run.py EMU FILE.ptx [tile-emu flags]

Comment lines of the file say what to do. Right-hand sides are Python; they see numpy as np, the arrays so far, and the helpers below.
  // in NAME = EXPR        an input array, passed as a pointer
  // i32 VALUE             a scalar parameter
  // out NAME = EXPR       an output array: EXPR is what it must hold (its type and shape are the output's)
  // near NAME = EXPR, TOL the same with a relative tolerance instead of bit for bit
  // block X / grid X / cluster X / shared BYTES / orders fair lazy random:1
A list of rows becomes one array. EMU may be anything that takes tile-emu's command line, for instance a script for a real GPU.
"""
import os, re, subprocess, sys, tempfile
import numpy as np

np.seterr(all='ignore')
u8, u16, u32, u64 = np.uint8, np.uint16, np.uint32, np.uint64
s8, s16, s32, s64 = np.int8, np.int16, np.int32, np.int64
f16, f32, f64 = np.float16, np.float32, np.float64
lane = np.arange(32, dtype=u32)
odd = lane % 2 == 1
NAMES = {'u1': 'u8', 'u2': 'u16', 'u4': 'u32', 'u8': 'u64', 'i1': 'i8', 'i2': 'i16', 'i4': 'i32', 'i8': 'i64', 'f2': 'f16', 'f4': 'f32', 'f8': 'f64'}

def bits(x): return x.view({2: u16, 4: u32, 8: u64}[x.dtype.itemsize])
def to_bf16(x):
    u = bits(np.asarray(x, f32)).astype(u64)
    return np.where(np.isnan(x), 0x7fff, (u + 0x7fff + (u >> 16 & 1)) >> 16).astype(u16)
def from_bf16(x): return (np.asarray(x).astype(u32) << 16).view(f32)
def rows(*list): return np.stack([np.broadcast_to(np.asarray(x), (32,)) for x in list])
def each(fn, *arrays): return np.array([fn(*(int(x) for x in xs)) for xs in zip(*arrays)], dtype=object)
def words(*list): return rows(*[np.asarray(x).astype(s64).astype(u32) if np.asarray(x).dtype.kind != 'f' else bits(np.asarray(x, f32)) for x in list])
def longs(*list): return rows(*[x if x.dtype == u64 else x.astype(s64).view(u64) if x.dtype.kind != 'f' else bits(x.astype(f64)) for x in map(np.asarray, list)])
def nan(u): return np.where((u & u32(0x7fffffff)) > 0x7f800000, u32(0x7fffffff), u)
def ftz(x): return np.where(np.abs(x) < f32(1.17549435e-38), np.copysign(f32(0), x), x)
def fmin(x, y): return np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.where((x < y) | ((x == y) & np.signbit(x)), x, y)))
def each2(fn, x): return np.array([fn(float(v)) if np.isfinite(v) else fn(v) for v in x], dtype=object).astype(s64)
def directed(x, y, mode):  # sums of f32 that are exact in f64
    exact = x.astype(f64) + y; near = exact.astype(f32)
    up, down = np.nextafter(near, f32(np.inf)), np.nextafter(near, f32(-np.inf))
    low = np.where(near > exact, down, near); high = np.where(near < exact, up, near)
    r = {'rp': high, 'rm': low, 'rz': np.where(exact > 0, low, high)}[mode]
    return np.where(np.isfinite(exact), r, near).astype(f32)
def rz32(x):
    near = x.astype(f32); return np.where(near.astype(f64) > x, np.nextafter(near, f32(0)), near).astype(f32)
def decode(code, e, m):  # 8-bit floats, finite ones
    code = code.astype(s32); mag = code & 0x7f; exp, man = mag >> m, mag & ((1 << m) - 1); bias = (1 << (e - 1)) - 1
    v = np.where(exp == 0, man * 2.0 ** (1 - bias - m), (1 + man / 2.0 ** m) * 2.0 ** (exp - bias)); return np.where(code & 0x80, -v, v)
def small(x, e, m, most, nan_code):  # nearest 8-bit float, ties to even code, saturating
    table = decode(np.arange(128, dtype=u8), e, m); table[table > most] = np.inf; table = table[: int(np.argmax(table == most)) + 1]
    mag = np.minimum(np.abs(x).astype(f64), most); high = np.clip(np.searchsorted(table, mag), 1, len(table) - 1); low = high - 1
    pick = np.where(table[high] - mag < mag - table[low], high, np.where(table[high] - mag > mag - table[low], low, np.where(low % 2 == 0, low, high)))
    return np.where(np.isnan(x), nan_code, pick | np.where(np.signbit(x), 0x80, 0)).astype(u8)
def rng(seed=1): return np.random.default_rng(seed)

def compare(name, got, want, tolerance):
    got = got.reshape(want.shape)
    if tolerance is None:
        bad = bits(got) != bits(want) if got.dtype.itemsize > 1 else got != want
    else:
        bad = ~(np.abs(got - want) <= tolerance * np.abs(want) + 1e-30) & ~(np.isnan(got) & np.isnan(want)) & ~(got == want)
    if not bad.any(): return None
    i = tuple(np.argwhere(bad)[0])
    show = lambda x: hex(x) if x.dtype.kind == 'u' else repr(x)
    return f'{name}: {bad.sum()} of {bad.size} wrong, first at {tuple(map(int, i))}: got {show(got[i])} want {show(want[i])}'

def main():
    emu, path, extra = sys.argv[1], sys.argv[2], sys.argv[3:]
    text, env = open(path).read(), dict(globals())
    settings = {'block': '32', 'grid': '1', 'cluster': None, 'shared': '0', 'orders': 'fair'}
    with tempfile.TemporaryDirectory() as tmp:
        args, wants = [], []
        for kind, rest in re.findall(r'^// (in|out|near|i32|block|grid|cluster|shared|orders) (.*)$', text, re.M):
            if kind in settings: settings[kind] = rest; continue
            if kind == 'i32': args.append('i32:' + rest); continue
            name, expression = re.fullmatch(r'(\w+) = (.*)', rest).groups()
            if 'a' in env and 'b' in env and env['a'].dtype == f32: env['un'] = np.isnan(env['a']) | np.isnan(env['b'])
            value, tolerance = eval(expression, env), None
            if kind == 'near': value, tolerance = value
            value = np.ascontiguousarray(value)
            if kind == 'in':
                env[name] = value
                np.save(f'{tmp}/{name}.npy', value); args.append(f'in:{name}={tmp}/{name}.npy')
            else:
                wants.append((name, value, tolerance))
                args.append(f'out:{name}={tmp}/{name}.out.npy:{NAMES[value.dtype.str[1:]]}:' + 'x'.join(map(str, value.shape)))
        entry = re.search(r'\.entry\s+(\w+)', text).group(1)
        command = [emu, path, '--entry', entry, '--grid', settings['grid'], '--block', settings['block'], '--shared', settings['shared']]
        if settings['cluster']: command += ['--cluster', settings['cluster']]
        for a in args: command += ['--arg', a]
        failed = False
        for order in settings['orders'].split():
            run = command + (['--order', order] if order != 'fair' else []) + extra
            result = subprocess.run(run, capture_output=True, text=True, timeout=120)
            sys.stdout.write(result.stdout)
            if result.returncode: print(f'{order}: exit {result.returncode}: {result.stderr}'); failed = True; continue
            for name, want, tolerance in wants:
                error = compare(name, np.load(f'{tmp}/{name}.out.npy'), want, tolerance)
                if error: print(f'{order}: {error}'); failed = True
        sys.exit(failed)

if __name__ == '__main__': main()
