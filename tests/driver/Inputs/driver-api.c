// What a program does with the generated header; compiled, never run.
#include "add.h"

int main(void) {
  CUmodule module = 0;
  const char *why = 0;
  add_args args = {.A = 16, .B = 32, .C = 48, .N = 1000, .scale = 2};
  return add_launch(module, 0, &args, &why) == CUDA_SUCCESS ? 0 : 1;
}
