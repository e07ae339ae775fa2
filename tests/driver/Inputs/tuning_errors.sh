# tuning_errors.sh TILEC FILE: compiles with tuning files that are wrong; '@' starts a new line.
try() {
  echo "== $1"
  printf '%b' "$2" > t
  "$tilec" "$file" --arch sm_90a --check --tuning t --for M=4
  echo "status $?"
}
tilec=$1 file=$2
try nothing ''
try 'tile-tuning 2' 'tile-tuning 2\n'
try 'tile-tuning 1 more' 'tile-tuning 1 more\n'
while read -r line; do
  try "$line" "tile-tuning 1\n$(echo "$line" | sed 's/ @ /\\n/')\n"
done <<'LINES'
gemm
7up sm_90a
gemm sm_9
gemm sm_90a set block_M=64
gemm sm_90a M=0 set block_M=64
gemm sm_90a M=4294967296 set block_M=64
gemm sm_90a M=4 M=5 set block_M=64
gemm sm_90a M=4
gemm sm_90a M=4 set
gemm sm_90a M=4 set block_M
gemm sm_90a M=4 set block_M=64 block_M=64
gemm sm_90a M=4 set block_M=64 rate fast
gemm sm_90a M=4 set block_M=64 gpu "H
gemm sm_90a M=4 set block_M=64 gpu "H 1" more
gemm sm_90a M=4 set block_M=64 @ gemm sm_90a M=4 set block_M=128
gemm sm_90a M=4 set -o=x.cubin
gemm sm_90a M=4 set -O7
LINES
echo "== missing"
"$tilec" "$file" --check --tuning nowhere --for M=4
echo "status $?"
