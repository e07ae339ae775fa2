#!/bin/sh
# Makes ptx/ anew from the sources: needs nvcc (CUDA 13) on the PATH; Triton's kernels are made by triton_kernels.py.
cd "$(dirname "$0")" || exit 1
for source in ${*:-*.cu}; do
  name=${source%.cu}
  for target in $(sed -n 's|^// targets: ||p' "$source"); do
    nvcc -arch="sm_${target}a" -ptx -O3 --std=c++17 "$source" -o "ptx/${name}_sm$target.ptx" || exit 1
    sed -i '/^\/\/ Compiler Build ID/d' "ptx/${name}_sm$target.ptx"
  done
done
