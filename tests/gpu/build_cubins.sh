#!/bin/sh
# Compiles what the GPU suite runs, on a machine with tilec and ptxas:
#   build_cubins.sh [--tilec PATH] [--arch sm_90a] [--few] [-j N] -o FOLDER|FILE.tar
# The folder (or the tar file, for carrying elsewhere) gets NAME.cubin for every row below and every example that the
# target can compile. --few: every third row, for a quick look.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
tilec=$root/build/bin/tilec arch=sm_90a few="" jobs=$(nproc) out=""
usage() { sed -n '2,5s/^# *//p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
  --few) few=1; shift; continue ;;
  esac
  [ $# -ge 2 ] || usage
  case $1 in
  --tilec) tilec=$2 ;;
  --arch) arch=$2 ;;
  -j) jobs=$2 ;;
  -o) out=$2 ;;
  *) usage ;;
  esac
  shift 2
done
[ -n "$out" ] || usage
[ -x "$tilec" ] || { echo "build_cubins.sh: no tilec at $tilec (--tilec PATH)" >&2; exit 2; }

# product.tile: operands, sum, result; order of storage of A (mk, km) and B (nk, kn); tile; stages (0: as many as fit); threads; through
# shared memory (s) or from registers (r); level.
products="
bf16 f32 bf16 mk nk 128 256  64 4 128 s 3
bf16 f32 bf16 mk nk 128 256  64 3 256 s 0
bf16 f32 bf16 mk kn 128 128  64 4 256 s 3
bf16 f32 bf16 mk nk 128 176  64 0 128 r 3
f16  f32 f32  mk nk  64 128  64 0 128 r 3
e4m3 f32 bf16 mk nk 128 192 128 0 256 s 3
bf16 f32 f32  km kn  64 128  64 3 128 s 3
bf16 f32 f32  km nk 128  96  32 2 128 r 0
bf16 f32 bf16 mk nk  64  64 128 3 128 s 3
bf16 f32 bf16 mk nk 256 128  64 3 256 s 2
bf16 f32 bf16 mk nk  64   8  64 4 128 r 3
f16  f32 f16  mk nk 128 192  64 3 128 s 3
f16  f32 f32  mk kn  64 256  64 4 128 r 3
f16  f32 f16  km kn 128  64  32 5 128 s 0
f16  f32 f32  km nk 128 128 128 2 256 s 3
bf16 f32 bf16 mk kn  64 192  64 3 256 r 3
bf16 f32 f32  mk kn  64 128  64 3 512 r 3
f16  f32 f16  mk kn 128 192  64 2 512 s 3
f32  f32 f32  mk nk 128 128  32 4 128 s 3
f32  f32 f32  mk nk  64  64  32 3 128 r 0
f32  f32 f32  mk nk 128  32  64 2 256 s 1
e4m3 f32 bf16 mk nk 128 256 128 3 256 s 3
e4m3 f32 f32  mk nk  64 128  64 3 128 r 0
e4m3 f32 f16  mk nk 128 128 128 4 128 s 3
e5m2 f32 f32  mk nk 128 128 128 3 128 s 3
e5m2 f32 bf16 mk nk  64  64  64 4 128 s 0
i8   i32 i32  mk nk 128 128 128 3 128 s 3
i8   i32 i32  mk nk  64 192  64 3 128 r 0
i8   i32 i32  mk nk 128 256  64 4 256 r 3
u8   i32 i32  mk nk 128  64  64 4 128 s 3
"
examples="cast copy gemm gemm_batched gemm_epilogue gemm_fp8 gemm_ts histogram layernorm softmax transpose vector_add"
case $arch in
sm_90a) ;;  # has no tensor memory, which the others ask for by name
*) examples="$examples gemm_async gemm_int8 gemm_persistent gemm_tiles gemm_ws" ;;
esac

name_of_type() {
  case $1 in
  bf16) echo bfloat16 ;; f16) echo float16 ;; f32) echo float32 ;;
  e4m3) echo float8_e4m3 ;; e5m2) echo float8_e5m2 ;;
  i8) echo int8 ;; u8) echo uint8 ;; i32) echo int32 ;;
  esac
}
truth() { if [ "$1" = "$2" ]; then echo True; else echo False; fi; }

case $out in
*.tar) folder=$(mktemp -d) ;;
*) folder=$out; mkdir -p "$folder" ;;
esac
list=$(mktemp)
trap 'rm -f "$list"; [ "$folder" = "$out" ] || rm -rf "$folder"' EXIT

# One command a line.
n=0
echo "$products" | while read -r ab sum c a b m n_ k stages threads way level; do
  [ -n "$ab" ] || continue
  n=$((n + 1))
  [ -z "$few" ] || [ $((n % 3)) -eq 1 ] || continue
  echo "-o $folder/product_${ab}_${c}_${a}_${b}_${m}x${n_}x${k}_s${stages}_t${threads}${way}_O$level.cubin -O$level $here/product.tile" \
    "-D operand=$(name_of_type "$ab") -D sum=$(name_of_type "$sum") -D result=$(name_of_type "$c")" \
    "-D a_by_m=$(truth "$a" mk) -D b_by_n=$(truth "$b" nk) -D block_M=$m -D block_N=$n_ -D block_K=$k" \
    "-D stages=$stages -D author_threads=$threads -D staged=$(truth "$way" s)"
done >"$list"
for example in $examples; do
  for level in 0 3; do
    [ -z "$few" ] || [ "$level" = 3 ] || continue
    echo "-o $folder/example_${example}_O$level.cubin -O$level $root/lang-examples/$example.tile"
  done
done >>"$list"
echo "-o $folder/bench_gemm.cubin -D num_stages=4 $root/lang-examples/gemm.tile" >>"$list"
# Launches that follow each other: blocks with one tile, blocks that stay, one role.
chain="$here/product.tile -D result=$(name_of_type bf16)"
echo "-o $folder/chain_tiles.cubin $chain -D block_M=64 -D block_N=128 -D stages=8 --no-persistent" >>"$list"
echo "-o $folder/chain_persistent.cubin $chain -D block_N=256 -D stages=4" >>"$list"
echo "-o $folder/chain_one_role.cubin $chain --no-roles" >>"$list"
echo "-o $folder/fault_assert.cubin $here/asserts.tile" >>"$list"
echo "-o $folder/fault_address.cubin $root/lang-examples/vector_add.tile" >>"$list"

# Paths with spaces are not supported here.
xargs -P "$jobs" -I LINE sh -c "'$tilec' --arch $arch LINE || { echo 'build_cubins.sh: not compiled: LINE' >&2; exit 255; }" <"$list"
[ "$folder" = "$out" ] || tar -C "$folder" -cf "$out" .
echo "$(wc -l <"$list") cubins in $out"
