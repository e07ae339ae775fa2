// Names differ from PTX and an unknown one yields id 0 without an error, so a lookup that fails is a BUG. The
// signatures are those of LLVM 22.1; the verifier catches a wrong one.
#include "codegen/nvvm.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ARGS = 12 };

static LLVMValueRef call(Cg *cg, const char *name, LLVMTypeRef overload, int nargs, LLVMValueRef *args,
                         bool effect) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!id) BUG("LLVM knows no intrinsic %s", name);
  size_t overloads = overload ? 1 : 0;
  LLVMValueRef callee = LLVMGetIntrinsicDeclaration(cg->module, id, &overload, overloads);
  LLVMTypeRef type = LLVMIntrinsicGetType(cg->context, id, &overload, overloads);
  return LLVMBuildCallWithOperandBundles(cg->builder, type, callee, args, (unsigned)nargs, &cg->bundle,
                                         effect ? 1 : 0, "");
}

static LLVMValueRef effect(Cg *cg, const char *name, int nargs, LLVMValueRef *args) {
  return call(cg, name, NULL, nargs, args, true);
}

static LLVMValueRef value(Cg *cg, const char *name, int nargs, LLVMValueRef *args) {
  return call(cg, name, NULL, nargs, args, false);
}

static LLVMValueRef imm1(Cg *cg, bool bit) {
  return LLVMConstInt(cg->i1, bit, false);
}
static LLVMValueRef imm32(Cg *cg, int number) {
  return LLVMConstInt(cg->i32, (unsigned)number, true);
}

static LLVMValueRef tmem_pointer(Cg *cg, LLVMValueRef tmem) {
  return LLVMBuildIntToPtr(cg->builder, tmem, LLVMPointerTypeInContext(cg->context, 6), "");
}

LLVMValueRef nvvm_thread_idx(Cg *cg) {
  return value(cg, "llvm.nvvm.read.ptx.sreg.tid.x", 0, NULL);
}

LLVMValueRef nvvm_block_idx(Cg *cg, int dim) {
  static const char *const names[] = {"llvm.nvvm.read.ptx.sreg.ctaid.x", "llvm.nvvm.read.ptx.sreg.ctaid.y",
                                      "llvm.nvvm.read.ptx.sreg.ctaid.z"};
  return value(cg, names[dim], 0, NULL);
}

LLVMValueRef nvvm_block_count(Cg *cg, int dim) {
  static const char *const names[] = {"llvm.nvvm.read.ptx.sreg.nctaid.x", "llvm.nvvm.read.ptx.sreg.nctaid.y",
                                      "llvm.nvvm.read.ptx.sreg.nctaid.z"};
  return value(cg, names[dim], 0, NULL);
}

// PTX ISA 9.7.9.16 (prefetch.tensormap): a hint.
void nvvm_prefetch_map(Cg *cg, LLVMValueRef map) {
  call(cg, "llvm.nvvm.prefetch.tensormap", LLVMTypeOf(map), 1, &map, true);
}

void nvvm_grid_wait(Cg *cg) {
  effect(cg, "llvm.nvvm.griddepcontrol.wait", 0, NULL);
}

void nvvm_grid_release(Cg *cg) {
  effect(cg, "llvm.nvvm.griddepcontrol.launch.dependents", 0, NULL);
}

void nvvm_barrier_sync(Cg *cg, int id, int count, bool aligned) {
  LLVMValueRef args[] = {imm32(cg, id), imm32(cg, count)};
  if (count == 0)
    effect(cg, "llvm.nvvm.barrier.cta.sync.aligned.all", 1, args);
  else
    effect(cg, aligned ? "llvm.nvvm.barrier.cta.sync.aligned.count" : "llvm.nvvm.barrier.cta.sync.count", 2,
           args);
}

void nvvm_trap(Cg *cg) {
  effect(cg, "llvm.trap", 0, NULL);
}

void nvvm_set_max_registers(Cg *cg, int count, bool more) {
  LLVMValueRef args[] = {imm32(cg, count)};
  effect(cg, more ? "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32" : "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32",
         1, args);
}

void nvvm_warp_sync(Cg *cg, uint32_t lanes) {
  LLVMValueRef args[] = {LLVMConstInt(cg->i32, lanes, false)};
  effect(cg, "llvm.nvvm.bar.warp.sync", 1, args);
}

LLVMValueRef nvvm_shfl_idx(Cg *cg, LLVMValueRef x, int lane) {
  LLVMValueRef args[] = {imm32(cg, -1), x, imm32(cg, lane), imm32(cg, 31)};
  return effect(cg, "llvm.nvvm.shfl.sync.idx.i32", 4, args);
}

LLVMValueRef nvvm_shfl_bfly(Cg *cg, LLVMValueRef x, int mask) {
  LLVMValueRef args[] = {imm32(cg, -1), x, imm32(cg, mask), imm32(cg, 31)};
  return effect(cg, "llvm.nvvm.shfl.sync.bfly.i32", 4, args);
}

void nvvm_mbar_init(Cg *cg, LLVMValueRef shared, int count) {
  LLVMValueRef args[] = {shared, imm32(cg, count)};
  effect(cg, "llvm.nvvm.mbarrier.init.shared", 2, args);
}

void nvvm_mbar_arrive(Cg *cg, LLVMValueRef shared) {
  LLVMValueRef args[] = {shared, imm32(cg, 1)};
  effect(cg, "llvm.nvvm.mbarrier.arrive.scope.cta.space.cta", 2, args);
}

void nvvm_mbar_expect_tx(Cg *cg, LLVMValueRef shared, LLVMValueRef bytes) {
  LLVMValueRef args[] = {shared, bytes};
  effect(cg, "llvm.nvvm.mbarrier.expect.tx.scope.cta.space.cta", 2, args);
}

void nvvm_mbar_arrive_expect_tx(Cg *cg, LLVMValueRef shared, LLVMValueRef bytes) {
  LLVMValueRef args[] = {shared, bytes};
  effect(cg, "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", 2, args);
}

LLVMValueRef nvvm_mbar_try_wait_parity(Cg *cg, LLVMValueRef shared, LLVMValueRef parity) {
  LLVMValueRef args[] = {shared, parity};
  return effect(cg, "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta", 2, args);
}

void nvvm_fence_mbarrier_init(Cg *cg) {
  effect(cg, "llvm.nvvm.fence.mbarrier_init.release.cluster", 0, NULL);
}
void nvvm_fence_proxy_async(Cg *cg) {
  effect(cg, "llvm.nvvm.fence.proxy.async", 0, NULL);
}
void nvvm_fence_proxy_async_shared(Cg *cg) {
  effect(cg, "llvm.nvvm.fence.proxy.async.shared_cta", 0, NULL);
}

void nvvm_tma_load(Cg *cg, LLVMValueRef shared, LLVMValueRef mbar, LLVMValueRef map, int rank,
                   LLVMValueRef const *coordinates) {
  static const char *const names[] = {
      "llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.1d", "llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d",
      "llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.3d", "llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.4d",
      "llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.5d"};
  LLVMValueRef args[MAX_ARGS] = {shared, mbar, map};
  int n = 3;
  for (int i = 0; i < rank; i++) args[n++] = coordinates[i];
  args[n++] = LLVMConstInt(cg->i64, 0, false);  // no cache hint
  args[n++] = imm1(cg, false);
  effect(cg, names[rank - 1], n, args);
}

void nvvm_tma_store(Cg *cg, LLVMValueRef shared, LLVMValueRef map, int rank, LLVMValueRef const *coordinates,
                    bool adds) {
  char name[64];
  snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.%s.tile.%dd", adds ? "reduce.add" : "s2g",
           rank);
  LLVMValueRef args[MAX_ARGS] = {shared, map};
  int n = 2;
  for (int i = 0; i < rank; i++) args[n++] = coordinates[i];
  args[n++] = LLVMConstInt(cg->i64, 0, false);
  args[n++] = imm1(cg, false);
  effect(cg, name, n, args);
}

void nvvm_bulk_commit(Cg *cg) {
  effect(cg, "llvm.nvvm.cp.async.bulk.commit.group", 0, NULL);
}

void nvvm_bulk_wait(Cg *cg, int pending, bool read) {
  LLVMValueRef args[] = {imm32(cg, pending)};
  effect(cg, read ? "llvm.nvvm.cp.async.bulk.wait.group.read" : "llvm.nvvm.cp.async.bulk.wait.group", 1,
         args);
}

void nvvm_tcgen05_alloc(Cg *cg, LLVMValueRef shared, int columns) {
  LLVMValueRef args[] = {shared, imm32(cg, columns)};
  effect(cg, "llvm.nvvm.tcgen05.alloc.shared.cg1", 2, args);
}

void nvvm_tcgen05_relinquish(Cg *cg) {
  effect(cg, "llvm.nvvm.tcgen05.relinq.alloc.permit.cg1", 0, NULL);
}

void nvvm_tcgen05_dealloc(Cg *cg, LLVMValueRef tmem, int columns) {
  LLVMValueRef args[] = {tmem_pointer(cg, tmem), imm32(cg, columns)};
  effect(cg, "llvm.nvvm.tcgen05.dealloc.cg1", 2, args);
}

void nvvm_tcgen05_commit(Cg *cg, LLVMValueRef mbar) {
  LLVMValueRef args[] = {mbar};
  effect(cg, "llvm.nvvm.tcgen05.commit.shared.cg1", 1, args);
}

void nvvm_tcgen05_fence_before(Cg *cg) {
  effect(cg, "llvm.nvvm.tcgen05.fence.before.thread.sync", 0, NULL);
}
void nvvm_tcgen05_fence_after(Cg *cg) {
  effect(cg, "llvm.nvvm.tcgen05.fence.after.thread.sync", 0, NULL);
}
void nvvm_tcgen05_wait_ld(Cg *cg) {
  effect(cg, "llvm.nvvm.tcgen05.wait.ld", 0, NULL);
}
void nvvm_tcgen05_wait_st(Cg *cg) {
  effect(cg, "llvm.nvvm.tcgen05.wait.st", 0, NULL);
}

void nvvm_stmatrix(Cg *cg, LLVMValueRef shared, int n, LLVMValueRef const *registers) {
  enum { MOST = 4 };
  LLVMValueRef args[1 + MOST] = {shared};
  char name[64];
  for (int i = 0; i < n; i++) args[1 + i] = registers[i];
  snprintf(name, sizeof name, "llvm.nvvm.stmatrix.sync.aligned.m8n8.x%d.b16", n);
  call(cg, name, LLVMTypeOf(shared), 1 + n, args, true);
}

LLVMValueRef nvvm_tcgen05_ld(Cg *cg, LLVMValueRef tmem, int n, int split) {
  LLVMValueRef args[3] = {tmem_pointer(cg, tmem)};
  int nargs = 1;
  if (split) args[nargs++] = LLVMConstInt(cg->i64, (unsigned)split, false);
  args[nargs++] = imm1(cg, false);
  char name[64];
  snprintf(name, sizeof name, "llvm.nvvm.tcgen05.ld.%s.x%d", split ? "16x32bx2" : "32x32b", n);
  return effect(cg, name, nargs, args);
}

void nvvm_tcgen05_st(Cg *cg, LLVMValueRef tmem, LLVMValueRef registers, int n, int split) {
  LLVMValueRef args[4] = {tmem_pointer(cg, tmem)};
  int nargs = 1;
  if (split) args[nargs++] = LLVMConstInt(cg->i64, (unsigned)split, false);
  args[nargs++] = registers;
  args[nargs++] = imm1(cg, false);
  char name[64];
  snprintf(name, sizeof name, "llvm.nvvm.tcgen05.st.%s.x%d", split ? "16x32bx2" : "32x32b", n);
  effect(cg, name, nargs, args);
}

void nvvm_tcgen05_mma(Cg *cg, MmaForm form, LLVMValueRef tmem_d, LLVMValueRef a, LLVMValueRef b_descriptor,
                      LLVMValueRef instruction_descriptor, LLVMValueRef accumulate, MmaKind kind) {
  enum { CTA_GROUP = 1, COLLECTOR_B0 = 0, COLLECTOR_DISCARD = 0 };
  static const char *const names[] = {[MMA_FORM_PLAIN] = "llvm.nvvm.tcgen05.mma.shared",
                                      [MMA_FORM_A_IN_TMEM] = "llvm.nvvm.tcgen05.mma.tensor",
                                      [MMA_FORM_WS] = "llvm.nvvm.tcgen05.mma.ws.shared"};
  LLVMValueRef args[] = {tmem_pointer(cg, tmem_d),
                         form == MMA_FORM_A_IN_TMEM ? tmem_pointer(cg, a) : a,
                         b_descriptor,
                         instruction_descriptor,
                         accumulate,
                         imm32(cg, kind),
                         imm32(cg, form == MMA_FORM_WS ? COLLECTOR_B0 : CTA_GROUP),
                         imm32(cg, COLLECTOR_DISCARD)};
  effect(cg, names[form], 8, args);
}

void nvvm_wgmma_commit(Cg *cg) {
  effect(cg, "llvm.nvvm.wgmma.commit_group.sync.aligned", 0, NULL);
}

LLVMValueRef nvvm_ex2_approx(Cg *cg, LLVMValueRef x) {
  return call(cg, "llvm.nvvm.ex2.approx", cg->f32, 1, &x, false);
}
LLVMValueRef nvvm_lg2_approx(Cg *cg, LLVMValueRef x) {
  return value(cg, "llvm.nvvm.lg2.approx.f", 1, &x);
}
LLVMValueRef nvvm_rsqrt_approx(Cg *cg, LLVMValueRef x) {
  return value(cg, "llvm.nvvm.rsqrt.approx.f", 1, &x);
}
LLVMValueRef nvvm_rcp_approx(Cg *cg, LLVMValueRef x) {
  return value(cg, "llvm.nvvm.rcp.approx.ftz.f", 1, &x);
}
LLVMValueRef nvvm_sin_approx(Cg *cg, LLVMValueRef x) {
  return value(cg, "llvm.nvvm.sin.approx.f", 1, &x);
}
LLVMValueRef nvvm_cos_approx(Cg *cg, LLVMValueRef x) {
  return value(cg, "llvm.nvvm.cos.approx.f", 1, &x);
}
LLVMValueRef nvvm_sqrt_rn(Cg *cg, LLVMValueRef x) {
  return value(cg, "llvm.nvvm.sqrt.rn.f", 1, &x);
}

LLVMValueRef nvvm_f32_to_fp8(Cg *cg, LLVMValueRef x, bool e5m2) {
  LLVMValueRef args[] = {LLVMConstReal(cg->f32, 0.0), x};  // the second goes into the low byte
  LLVMValueRef pair = value(cg, e5m2 ? "llvm.nvvm.ff.to.e5m2x2.rn" : "llvm.nvvm.ff.to.e4m3x2.rn", 2, args);
  return LLVMBuildTrunc(cg->builder, pair, cg->i8, "");
}

LLVMValueRef nvvm_fp8_to_f32(Cg *cg, LLVMValueRef x, bool e5m2) {
  LLVMValueRef args[] = {LLVMBuildZExt(cg->builder, x, cg->i16, "")};
  LLVMValueRef pair =
      value(cg, e5m2 ? "llvm.nvvm.e5m2x2.to.f16x2.rn" : "llvm.nvvm.e4m3x2.to.f16x2.rn", 1, args);
  LLVMValueRef low = LLVMBuildExtractElement(cg->builder, pair, imm32(cg, 0), "");
  return LLVMBuildFPExt(cg->builder, low, cg->f32, "");
}
