#!/usr/bin/env python3
"""The emulator against a real GPU: the same PTX, the same inputs, outputs compared byte for byte.

  gpu_compare.py wrapper TILE-EMU DIR     writes DIR/emu: a stand-in for tile-emu that also records each run into DIR
  gpu_compare.py run DIR [-j N]           on a machine with the GPU (needs python3, numpy and the CUDA driver): repeats the recorded runs, compares,
                                          prints a table; exit code 1 when anything differs
  gpu_compare.py one DIR NAME             one of them

So `foreign.py --emu DIR/emu --only sm90` records all foreign kernels for sm_90a; anything else that takes an emulator works as well. DIR can be
copied to the other machine. Runs of sm_100a files are not recorded. A run is a folder DIR/NAME: case.json and the arrays.
"""
import concurrent.futures, ctypes as C, hashlib, json, os, re, shutil, subprocess, sys
import numpy as np


# ---- recording

def arrays_of(arg):
    """The array clauses of one --arg: (kind, name, path, rest)."""
    for clause in arg.split(';'):
        kind, _, rest = clause.partition(':')
        if kind in ('in', 'inout', 'out'):
            name, path = rest.split('=', 1)
            tail = ''
            if kind == 'out':
                path, dtype, shape = path.rsplit(':', 2)
                tail = f':{dtype}:{shape}'
            elif ':' in path:
                path = path.split(':')[1]
            yield clause, kind, name, path, tail


def record(emu, directory, words):
    ptx, options, args = words[0], {}, []
    for flag, value in zip(words[1::2], words[2::2]):
        args.append(value) if flag == '--arg' else options.__setitem__(flag, value)
    text = open(ptx).read()
    if not re.search(r'^\.target\s+sm_90', text, re.M):
        os.execv(emu, [emu] + words)
    name = f'{os.path.basename(ptx)[:-4]}.{options["--entry"]}.' + hashlib.sha1(repr([words[0], options, [re.sub(r'=[^:;]*/', '=', a) for a in args]]).encode()).hexdigest()[:8]
    home = os.path.join(directory, name)
    os.makedirs(home, exist_ok=True)
    kept, outputs = [], []
    for arg in args:
        for clause, kind, array, path, tail in arrays_of(arg):
            if kind != 'out':
                shutil.copy(path, os.path.join(home, array + '.npy'))
            if kind != 'in':
                outputs.append((array, path))
            arg = arg.replace(clause, f'{kind}:{array}={array}.npy{tail}')
        kept.append(arg)
    result = subprocess.run([emu] + words, capture_output=True, text=True)
    sys.stdout.write(result.stdout), sys.stderr.write(result.stderr)
    if result.returncode == 0:
        shutil.copy(ptx, os.path.join(home, 'kernel.ptx'))
        for array, path in outputs:
            shutil.copy(path, os.path.join(home, array + '.emu.npy'))
        with open(os.path.join(home, 'case.json'), 'w') as f:
            json.dump({'options': options, 'args': kept, 'outputs': [a for a, _ in outputs], 'stdout': result.stdout}, f)
    else:
        shutil.rmtree(home)
    return result.returncode


def write_wrapper(emu, directory):
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, 'emu')
    with open(path, 'w') as f:
        f.write(f'#!/bin/sh\nexec "{sys.executable}" "{os.path.abspath(__file__)}" record "{os.path.abspath(emu)}" "{os.path.abspath(directory)}" "$@"\n')
    os.chmod(path, 0o755)


# ---- the driver

DTYPES = {'f32': ('<f4', 7), 'tf32': ('<f4', 11), 'f16': ('<f2', 6), 'bf16': ('<u2', 9), 'f64': ('<f8', 8), 'e4m3': ('|u1', 0), 'e5m2': ('|u1', 0), 'ue8m0': ('|u1', 0),
          'e2m1': ('|u1', 13), 'i8': ('|i1', 0), 'u8': ('|u1', 0), 'i16': ('<i2', 1), 'u16': ('<u2', 1), 'i32': ('<i4', 3), 'u32': ('<u4', 2), 'i64': ('<i8', 5), 'u64': ('<u8', 4)}


class Attribute(C.Structure):
    _fields_ = [('id', C.c_uint), ('pad', C.c_uint), ('value', C.c_uint * 16)]


class Config(C.Structure):
    _fields_ = [('grid', C.c_uint * 3), ('block', C.c_uint * 3), ('shared', C.c_uint), ('stream', C.c_void_p), ('attributes', C.POINTER(Attribute)), ('count', C.c_uint)]


class Gpu:
    def __init__(self):
        self.cuda = C.CDLL('libcuda.so.1')
        self.keep = []
        self.call('cuInit', 0)
        device, context = C.c_int(), C.c_void_p()
        self.call('cuDeviceGet', C.byref(device), 0)
        self.call('cuDevicePrimaryCtxRetain', C.byref(context), device)
        self.call('cuCtxSetCurrent', context)

    def call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status:
            text = C.c_char_p()
            self.cuda.cuGetErrorName(status, C.byref(text))
            raise RuntimeError(f'{name}: {text.value.decode() if text.value else status}')

    def upload(self, array):
        address = C.c_uint64()
        self.call('cuMemAlloc_v2', C.byref(address), C.c_size_t(max(array.nbytes, 16)))
        self.call('cuMemcpyHtoD_v2', address, array.ctypes.data_as(C.c_void_p), C.c_size_t(array.nbytes))
        return address

    def download(self, address, array):
        self.call('cuMemcpyDtoH_v2', array.ctypes.data_as(C.c_void_p), address, C.c_size_t(array.nbytes))
        return array

    def tensor_map(self, address, array, text):
        fields = dict(x.split('=') for x in text.split(',')[1:])
        numbers = lambda key: [int(x) for x in fields[key].split('x')][::-1]
        box, rank = numbers('box'), array.ndim
        sizes = [min(a, b) for a, b in zip(numbers('size'), array.shape[::-1])] if 'size' in fields else list(array.shape[::-1])
        pitches = [int(np.prod(array.shape[::-1][:i + 1])) * array.itemsize for i in range(rank - 1)]
        steps = numbers('strides') if 'strides' in fields else [1] * rank
        storage = C.create_string_buffer(256)
        place = C.c_void_p(C.addressof(storage) + -C.addressof(storage) % 128)
        self.keep.append(storage)
        self.call('cuTensorMapEncodeTiled', place, DTYPES[fields['dtype']][1], rank, address, (C.c_uint64 * rank)(*sizes), (C.c_uint64 * max(1, rank - 1))(*pitches),
                  (C.c_uint32 * rank)(*box), (C.c_uint32 * rank)(*steps), {'16': 1, '32': 2}.get(fields.get('interleave'), 0),
                  {'32': 1, '64': 2, '128': 3}.get(fields.get('swizzle'), 0), 0, int(fields.get('oob') == 'nan'))
        return place

    def launch(self, ptx, options, params):
        module, function = C.c_void_p(), C.c_void_p()
        self.call('cuModuleLoadData', C.byref(module), ptx + b'\0')
        self.call('cuModuleGetFunction', C.byref(function), module, options['--entry'].encode())
        dims = lambda text: ([int(x) for x in text.split(',')] + [1, 1])[:3]
        shared, cluster = int(options.get('--shared', 0)), dims(options.get('--cluster', '1'))
        if shared > 48 * 1024:
            self.call('cuFuncSetAttribute', function, 8, shared)
        if np.prod(cluster) > 8:
            self.call('cuFuncSetAttribute', function, 14, 1)  # clusters beyond the portable size
        attribute = Attribute(4, 0, (C.c_uint * 16)(*cluster))
        config = Config((C.c_uint * 3)(*dims(options['--grid'])), (C.c_uint * 3)(*dims(options['--block'])), shared, None, C.pointer(attribute), int('--cluster' in options))
        self.call('cuLaunchKernelEx', C.byref(config), function, (C.c_void_p * max(1, len(params)))(*[p.value for p in params]), None)
        self.call('cuCtxSynchronize')


def run_one(home):
    case = json.load(open(os.path.join(home, 'case.json')))
    gpu, arrays, params = Gpu(), {}, []
    for arg in case['args']:
        for clause in arg.split(';'):
            kind, _, rest = clause.partition(':')
            if kind in ('in', 'inout', 'out'):
                name, path = rest.split('=', 1)
                if kind == 'out':
                    _, dtype, shape = path.rsplit(':', 2)
                    array = np.zeros([int(x) for x in shape.split('x')], DTYPES[dtype][0])
                else:
                    array = np.ascontiguousarray(np.load(os.path.join(home, path)))
                arrays[name] = gpu.upload(array), array
                value = C.c_uint64(arrays[name][0].value)
            elif kind == 'tma':
                value = gpu.tensor_map(*arrays[rest.split(',')[0]], rest)
            elif kind == 'f32':
                value = C.c_float(float(rest))
            else:
                value = {'i32': C.c_uint32, 'i64': C.c_uint64, 'null': C.c_uint64}[kind](int(rest or '0', 0) & (1 << (32 if kind == 'i32' else 64)) - 1)
        gpu.keep.append(value)
        params.append(value if isinstance(value, C.c_void_p) else C.cast(C.pointer(value), C.c_void_p))
    gpu.launch(open(os.path.join(home, 'kernel.ptx'), 'rb').read(), case['options'], params)
    different, total, first = 0, 0, ''
    for name in case['outputs']:
        mine, theirs = gpu.download(*arrays[name]), np.load(os.path.join(home, name + '.emu.npy'))
        width = f'u{mine.itemsize}'
        a, b = np.ascontiguousarray(mine).reshape(-1).view(width), np.ascontiguousarray(theirs).reshape(-1).view(width)
        bad = np.flatnonzero(a != b)
        different, total = different + len(bad), total + len(a)
        if len(bad) and not first:
            first = ', '.join(f'{name}[{int(i)}] gpu {int(a[i]):#x} emu {int(b[i]):#x}' for i in bad[:3])
    print(f'RESULT {different} {total} {first}', flush=True)


def run_all(directory, jobs):
    names = sorted(n for n in os.listdir(directory) if os.path.exists(os.path.join(directory, n, 'case.json')))

    def work(name):
        home = os.path.join(directory, name)
        try:
            r = subprocess.run([sys.executable, os.path.abspath(__file__), 'one', directory, name], capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return 'hangs on the GPU'
        found = re.search(r'^RESULT (\d+) (\d+) (.*)$', r.stdout, re.M)
        if not found:
            return 'GPU: ' + (r.stderr.strip().split('\n') or ['no result'])[-1]
        printed = r.stdout[:found.start()]
        if printed != json.load(open(os.path.join(home, 'case.json')))['stdout']:
            return f'prints {printed!r}'
        return '' if found[1] == '0' else f'{found[1]} of {found[2]} differ: {found[3]}'
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, why in zip(names, pool.map(work, names)):
            failures += bool(why)
            print(f'{"differs" if why else "equal  "} {name} {why}')
    print(f'{len(names)} runs, {len(names) - failures} equal byte for byte')
    return min(failures, 1)


if __name__ == '__main__':
    verb, *rest = sys.argv[1:] or ['help']
    if verb == 'wrapper': write_wrapper(*rest)
    elif verb == 'record': sys.exit(record(rest[0], rest[1], rest[2:]))
    elif verb == 'one': run_one(os.path.join(*rest))
    elif verb == 'run': sys.exit(run_all(rest[0], int(rest[2]) if rest[1:2] == ['-j'] else 4))
    else: sys.exit(__doc__)
