#!/usr/bin/env python3
"""tile-emu's command line, carried out on a real GPU through the CUDA driver: the hardware twin of the emulator."""
import sys, ctypes as C, numpy as np, re
cu = C.CDLL('libcuda.so.1')
def ck(r, what):
    if r:
        p = C.c_char_p(); cu.cuGetErrorString(r, C.byref(p)); sys.exit(f'{what}: {p.value.decode() if p.value else r}')
a = sys.argv[1:]; ptx = a.pop(0); o = {'--cluster': None, '--shared': '0'}; args = []
while a:
    k = a.pop(0)
    if k == '--arg': args.append(a.pop(0))
    else: o[k] = a.pop(0)
dims = lambda s: ([int(x) for x in s.split(',')] + [1, 1])[:3]
NP = {'u32': np.uint32, 'u64': np.uint64, 'u16': np.uint16, 'i64': np.int64, 'f64': np.float64, 'bf16': np.uint16, 'f16': np.float16, 'f32': np.float32, 'e4m3': np.uint8, 'e5m2': np.uint8, 'u8': np.uint8, 'i32': np.int32}
CODE = {'u8': 0, 'e4m3': 0, 'e5m2': 0, 'f16': 6, 'f32': 7, 'bf16': 9}
ck(cu.cuInit(0), 'init'); dev = C.c_int(); cu.cuDeviceGet(C.byref(dev), 0); ctx = C.c_void_p(); ck(cu.cuDevicePrimaryCtxRetain(C.byref(ctx), dev), 'ctx'); cu.cuCtxSetCurrent(ctx)
mod = C.c_void_p(); ck(cu.cuModuleLoadData(C.byref(mod), open(ptx, 'rb').read() + b'\0'), 'load'); fn = C.c_void_p(); ck(cu.cuModuleGetFunction(C.byref(fn), mod, o['--entry'].encode()), 'entry')
sh = int(o['--shared']); ck(cu.cuFuncSetAttribute(fn, 8, sh), 'smem') if sh > 48 * 1024 else None
mem, outs, params, keep = {}, [], [], []
def alloc(name, arr):
    p = C.c_uint64(); ck(cu.cuMemAlloc_v2(C.byref(p), C.c_size_t(max(arr.nbytes, 16))), 'alloc'); ck(cu.cuMemcpyHtoD_v2(p, arr.ctypes.data_as(C.c_void_p), C.c_size_t(arr.nbytes)), 'h2d'); mem[name] = (p.value, arr); return p.value
def one(s):
    k, _, v = s.partition(':')
    if k in ('in', 'inout'): n, f = v.split('='); arr = np.ascontiguousarray(np.load(f)); r = alloc(n, arr); outs.append((n, f)) if k == 'inout' else None; return C.c_uint64(r)
    if k == 'out':
        m = re.match(r'(\w+)=(.+):(\w+):([\dx]+)$', v); arr = np.full([int(x) for x in m[4].split('x')], 0x55, NP[m[3]]); outs.append((m[1], m[2])); return C.c_uint64(alloc(m[1], arr))
    if k == 'tma':
        n, *kv = v.split(','); kv = dict(x.split('=') for x in kv); p, arr = mem[n]; sh_, bx = arr.shape[::-1], [int(x) for x in kv['box'].split('x')][::-1]; r = len(bx)
        st = [int(np.prod(sh_[:i + 1])) * arr.itemsize for i in range(r - 1)]
        buf = C.create_string_buffer(256); off = -C.addressof(buf) % 128; keep.append(buf); tm = C.c_void_p(C.addressof(buf) + off)
        ck(cu.cuTensorMapEncodeTiled(tm, CODE[kv['dtype']], r, C.c_uint64(p), (C.c_uint64 * r)(*sh_), (C.c_uint64 * max(1, r - 1))(*st), (C.c_uint32 * r)(*bx), (C.c_uint32 * r)(*[1] * r), 0, {'0': 0, '32': 1, '64': 2, '128': 3}[kv['swizzle']], 0, 0), 'tensor map'); return tm
    return {'i32': C.c_int32, 'u32': C.c_uint32, 'i64': C.c_int64, 'u64': C.c_uint64}[k](int(v)) if k not in ('f32', 'null') else (C.c_float(float(v)) if k == 'f32' else C.c_uint64(0))
for s in args:
    for part in s.split(';'): v = one(part)
    params.append(v if isinstance(v, C.c_void_p) else C.cast(C.pointer(v), C.c_void_p)); keep.append(v)
pa = (C.c_void_p * len(params))(*[p.value for p in params])
g, b = dims(o['--grid']), dims(o['--block'])
ck(cu.cuLaunchKernel(fn, *g, *b, sh, None, pa, None), 'launch'); ck(cu.cuCtxSynchronize(), 'run')
for n, f in outs:
    p, arr = mem[n]; ck(cu.cuMemcpyDtoH_v2(arr.ctypes.data_as(C.c_void_p), C.c_uint64(p), C.c_size_t(arr.nbytes)), 'd2h'); np.save(f, arr)
