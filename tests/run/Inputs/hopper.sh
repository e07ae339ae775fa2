# hopper.sh TILE_RUN PYTHON DEVICE: the kernels of hopper.ptx (here as hopper-info.ptx) on a device, cuda or emu; prints what FileCheck
# reads. Red zones (cuda) and allocations (emu) both find the overrun.
run() {
  echo "== $*"
  "$tile_run" hopper-info.ptx --device "$device" "$@" 2>&1
  echo "status $?"
}
tile_run=$1 python=$2 device=$3
"$python" -c "
import struct
def save(path, descr, shape, data):
    head = repr({'descr': descr, 'fortran_order': False, 'shape': shape})
    head += ' ' * (117 - len(head)) + chr(10)
    open(path, 'wb').write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + data)
save('x.npy', '<f4', (37, 100), b''.join(struct.pack('<f', i * 0.5 - 700) for i in range(3700)))
save('ranks.npy', '<i4', (8,), struct.pack('<8i', 0, 1, 2, 3, 0, 1, 2, 3))
"
run --kernel tma_copy --in x=x.npy --expect y=x.npy --rtol 0 --atol 0 --bench 5
run --kernel ranks -D N=8 --expect y=ranks.npy
run --kernel ranks -D N=6
run --kernel overrun -D N=5
run --kernel nowhere -D N=5
