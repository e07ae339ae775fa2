// The driver functions that the generated header calls, as printers; and a program that launches the
// gemm example with tensors that suit TMA, that do not, and that are refused.
#include <stdio.h>
#include <string.h>

#include "gemm.h"

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  (void)module;
  *function = (CUfunction)name;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  (void)function;
  printf("shared limit %s\n",
         attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value > 0 ? "set" : "?");
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  (void)steps, (void)interleave, (void)promotion, (void)fill;
  memset(map, 0, sizeof *map);
  printf("map of %p: type %d rank %u sizes %llu %llu stride %llu box %u %u swizzle %d\n", base, (int)type,
         rank, (unsigned long long)sizes[0], (unsigned long long)sizes[1], (unsigned long long)strides[0],
         box[0], box[1], (int)swizzle);
  return CUDA_SUCCESS;
}

// With an argument to the program: a driver that does not know how to overlap launches.
static int is_old;

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
  (void)extra;
  printf("launch %s grid %u %u %u block %u %u %u A %#llx", (const char *)function, config->gridDimX,
         config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY, config->blockDimZ,
         *(unsigned long long *)params[0]);
  for (unsigned i = 0; i < config->numAttrs; i++)
    printf(", attribute %d: %d", (int)config->attrs[i].id,
           config->attrs[i].value.programmaticStreamSerializationAllowed);
  printf("%s\n", is_old && config->numAttrs ? ", refused" : "");
  return is_old && config->numAttrs ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void launch(gemm_args args) {
  const char *why = "";
  CUresult result = gemm_launch(0, 0, &args, &why);
  printf("result %d%s%s\n", (int)result, *why ? ": " : "", why);
}

int main(int argc, char **argv) {
  (void)argv;
  is_old = argc > 1;
  gemm_args args = {.A = 0x1000, .B = 0x2000, .C = 0x3000, .M = 300, .N = 512, .K = 64};
  launch(args);
  args.A_stride[0] = 80;  // a pitch of 160 bytes
  launch(args);
  args.A_stride[0] = 0;
  args.K = 65;  // rows of 130 bytes
  launch(args);
  args.K = 64;
  args.A = 0x1002;
  launch(args);
  args.M = 0;  // nothing to launch
  launch(args);
  return 0;
}
