// wgmma as PTX text: LLVM has no intrinsic for it.
#ifndef TILEC_CODEGEN_SM90A_WGMMA_H
#define TILEC_CODEGEN_SM90A_WGMMA_H

#include "codegen/cg.h"

// What one asm call keeps in place: registers that it reads and writes, each tied to itself.
typedef struct {
  LLVMTypeRef type;  // f32, or i32 for packed and integer accumulators
  LLVMValueRef *values;
  int count;
} WgmmaRegisters;

// wgmma.mma_async (PTX ISA 9.7.15.5.2). D is tied: the instruction runs on after the call, so its registers may not move
// (rules E1). `shape` is the text between "aligned." and the operands ("m64n64k16.f32.bf16.bf16"), `tail` what follows the
// scale-d predicate (", 1, 1, 0, 0"). A: a descriptor, or four packed registers.
typedef struct {
  const char *shape, *tail;
  LLVMValueRef a[4];
  int a_count;              // 1: a descriptor (i64); 4: registers (i32)
  LLVMValueRef b;           // descriptor
  LLVMValueRef accumulate;  // i1: scale-d
} Wgmma;
void sm90a_wgmma(Cg *cg, const Wgmma *wgmma, WgmmaRegisters d);

// wgmma.fence. Takes and returns the accumulators: what computes them stays before it (rules E7).
void sm90a_wgmma_fence(Cg *cg, WgmmaRegisters accumulators);

// No instruction: what computes these registers stays before it, what reads them behind it.
void sm90a_wgmma_pin(Cg *cg, WgmmaRegisters registers);

// wgmma.wait_group, then a pin of the accumulators: what reads them stays behind it (rules E2), and so do moves of them, which an
// asm call with the wait itself in it would have before it.
void sm90a_wgmma_wait(Cg *cg, int pending, WgmmaRegisters d);

#endif
