// Launches through the public API on a recording device: the parameter block byte by byte, tensor maps,
// variants, and one message for each way in which arguments do not fit.
#include <stdlib.h>

#include "check.h"
#include "core/module.h"

static const char info[] =
    "tile-launch-info 1\n"
    "entry gemm_tma\nkernel gemm\nvariant tma\narch sm_100a\nblock 128\n"
    "grid (ceildiv N 256) (ceildiv M 128) 1\ncluster 1 1 1\nshared 4096\n"
    "tensor A bf16 read (M) (K)\ntensor B bf16 read (N) (K)\ntensor C f32 write (M) (N)\n"
    "map 0 A box 128 64 swizzle 128 load\nmap 1 C box 32 32 swizzle 0 store\n"
    "guard A load\nguard B load\nguard C store\n"
    "check (eq (floormod K 8) 0) k.tile:3:1: K must be a multiple of 8\n"
    "param ptr A\nparam ptr B\nparam ptr C\nparam size M\nparam size N\nparam size K\n"
    "param stride A 0\nparam stride B 0\nparam stride C 0\nparam map 0\nparam map 1\nparam scalar scale "
    "f16\nparam scalar n i32\n"
    "end\n"
    "entry gemm_general\nkernel gemm\nvariant general\narch sm_100a\nblock 96\n"
    "grid (ceildiv N 256) (ceildiv M 128) 1\ncluster 1 1 1\nshared 0\n"
    "tensor A bf16 read (M) (K)\ntensor B bf16 read (N) (K)\ntensor C f32 write (M) (N)\n"
    "check (eq (floormod K 8) 0) k.tile:3:1: K must be a multiple of 8\n"
    "param ptr A\nparam ptr B\nparam ptr C\nparam size M\nparam size K\nparam stride C 0\nparam scalar scale "
    "f16\nparam scalar n i32\n"
    "end\n"
    "entry halve\nkernel halve\nvariant only\narch sm_100a\nblock 32\n"
    "grid (P) (floordiv N 2) 1\ncluster 1 2 1\nshared 0\n"
    "tensor X u8 read (N) (mul N 2)\ntensor Y u8 readwrite (N)\n"
    "guard X load\nparam ptr X\nparam ptr Y\nparam size P\n"
    "end\n"
    "entry fill\nkernel fill\nvariant only\narch sm_100a\nblock 32\n"
    "grid (mul $sm_count 2) 1 1\ncluster 1 1 1\nshared 0\n"
    "tensor Y u8 write (N)\nparam ptr Y\nparam size $sm_count\n"
    "end\n";

// ---- A device that records

typedef struct {
  char entry[32];
  uint32_t grid[3];
  uint8_t block[512];
  TensorMap maps[4];  // the last ones
  int nmaps, launches;
} Record;

static TileError *fake_load(void *device, const Artifact *artifact, const LaunchInfo *info, void **code) {
  (void)artifact;
  *code = device;
  return strcmp(info->entries[0].arch, "sm_100a") == 0 ? NULL : error_new(TILE_INVALID, "arch");
}

static int fake_sm_count(const void *device, const void *code, int entry) {
  (void)device;
  (void)code;
  (void)entry;
  return 5;
}

static void fake_unload(void *device, void *code) {
  (void)device;
  (void)code;
}

static TileError *fake_encode(void *device, const TensorMap *map, uint8_t *out) {
  Record *record = device;
  if ((uintptr_t)out % 64) return error_new(TILE_FAULT, "a map is not aligned");
  int index = record->nmaps++ % 4;
  memset(out, 0xB0 + index, 128);
  record->maps[index] = *map;
  return NULL;
}

static TileError *fake_launch(void *device, void *code, const LaunchPlan *plan, void *stream,
                              double *seconds) {
  Record *record = device;
  (void)code;
  (void)stream;
  (void)seconds;
  snprintf(record->entry, sizeof record->entry, "%s", plan->entry->entry);
  memcpy(record->grid, plan->grid, sizeof plan->grid);
  memcpy(record->block, plan->block, plan->entry->param_bytes);
  record->launches++;
  return NULL;
}

static const Backend recorder = {.name = "emu",
                                 .sm_count = fake_sm_count,
                                 .load = fake_load,
                                 .unload = fake_unload,
                                 .encode_map = fake_encode,
                                 .launch = fake_launch};

// ---- A module, a call and what came of it

typedef struct {
  Record record;
  TileDevice *device;
  TileModule *module;
  const TileKernel *kernel;
  TileCall *call;
} Fixture;

// PTX text around the launch information.
static char *make_ptx(void) {
  char *text = malloc(8 * sizeof info);
  int n = sprintf(text, ".version 8.6\n.const .align 1 .b8 __tile_launch_info[%zu] = {", sizeof info - 1);
  for (size_t i = 0; i + 1 < sizeof info; i++) n += sprintf(text + n, "%s%d", i ? ", " : "", info[i]);
  sprintf(text + n, "};\n");
  return text;
}

static bool open_fixture(Checks *checks, Fixture *f, const char *kernel) {
  *f = (Fixture){0};
  char *ptx = make_ptx();
  TileError *error = tile_module_open_memory(ptx, strlen(ptx), "k.ptx", &f->module);
  if (!error) error = device_of(&recorder, &f->record, &f->device);
  if (!error) error = tile_module_load(f->module, f->device);
  if (!error) error = tile_module_find(f->module, kernel, &f->kernel);
  if (!error) error = tile_call_new(f->kernel, &f->call);
  if (error) fprintf(stderr, "  %s\n", tile_error_message(error));
  bool ok = CHECK(checks, !error);
  tile_error_free(error);
  free(ptx);
  return ok;
}

static void close_fixture(Fixture *f) {
  tile_call_free(f->call);
  tile_module_close(f->module);
  free(f->device);
}

static TileError *bind(Fixture *f, const char *name, TileDType dtype, uint64_t address, int rank,
                       const int64_t *shape, const int64_t *strides) {
  TileTensor tensor = {address, dtype, rank, shape, strides};
  return tile_call_tensor(f->call, name, &tensor);
}

static void ok(Checks *checks, TileError *error) {
  if (!CHECK(checks, error == NULL)) fprintf(stderr, "  %s\n", tile_error_message(error));
  tile_error_free(error);
}

static void says(Checks *checks, TileError *error, const char *message) {
  CHECK_INT(checks, tile_error_status(error), TILE_INVALID);
  CHECK_TEXT(checks, tile_error_message(error), message);
  tile_error_free(error);
}

// A [m, k], B [n, k], C [m, n], compact, far from each other.
static void bind_gemm(Checks *checks, Fixture *f, int64_t m, int64_t n, int64_t k) {
  ok(checks, bind(f, "A", TILE_BF16, 0x10000, 2, (int64_t[]){m, k}, NULL));
  ok(checks, bind(f, "B", TILE_BF16, 0x4000000, 2, (int64_t[]){n, k}, NULL));
  ok(checks, bind(f, "C", TILE_F32, 0x8000000, 2, (int64_t[]){m, n}, NULL));
  ok(checks, tile_call_float(f->call, "scale", 1.5));
  ok(checks, tile_call_int(f->call, "n", -2));
}

static uint64_t at(const Fixture *f, int offset, int bytes) {
  uint64_t value = 0;
  memcpy(&value, f->record.block + offset, (size_t)bytes);
  return value;
}

// ---- Tests

static void test_block(Checks *checks) {
  Fixture f;
  if (!open_fixture(checks, &f, "gemm")) return;
  bind_gemm(checks, &f, 300, 512, 64);
  ok(checks, tile_call_launch(f.call, NULL));
  CHECK_TEXT(checks, f.record.entry, "gemm_tma");
  CHECK_INT(checks, f.record.grid[0], 2);
  CHECK_INT(checks, f.record.grid[1], 3);
  CHECK_INT(checks, at(&f, 0, 8), 0x10000);
  CHECK_INT(checks, at(&f, 16, 8), 0x8000000);
  CHECK_INT(checks, at(&f, 24, 4), 300);
  CHECK_INT(checks, at(&f, 28, 4), 512);
  CHECK_INT(checks, at(&f, 32, 4), 64);
  CHECK_INT(checks, at(&f, 40, 8), 64);   // stride of A, behind 4 bytes of padding
  CHECK_INT(checks, at(&f, 56, 8), 512);  // stride of C
  CHECK_INT(checks, at(&f, 64, 1), 0xB0);
  CHECK_INT(checks, at(&f, 192, 1), 0xB1);
  CHECK_INT(checks, at(&f, 320, 2), 0x3E00);  // 1.5 in f16
  CHECK_INT(checks, (int32_t)at(&f, 324, 4), -2);
  const TensorMap *map = &f.record.maps[0];
  CHECK_INT(checks, map->type, 9);
  CHECK_INT(checks, map->rank, 2);
  CHECK(checks, map->size[0] == 64 && map->size[1] == 300 && map->stride[0] == 128);
  CHECK(checks, map->box[0] == 64 && map->box[1] == 128 && map->swizzle == 3 && map->l2_promotion == 2);
  map = &f.record.maps[1];
  CHECK(checks, map->type == 7 && map->size[0] == 512 && map->size[1] == 300 && map->stride[0] == 2048 &&
                    map->swizzle == 0);
  close_fixture(&f);
}

static void variant_is(Checks *checks, Fixture *f, const char *want) {
  TilePlan plan;
  TileError *error = tile_call_plan(f->call, &plan);
  CHECK_TEXT(checks, error ? tile_error_message(error) : plan.variant, want);
  tile_error_free(error);
}

static void test_variants(Checks *checks) {
  Fixture f;
  if (!open_fixture(checks, &f, "gemm")) return;
  bind_gemm(checks, &f, 300, 512, 64);
  variant_is(checks, &f, "tma");
  ok(checks, bind(&f, "A", TILE_BF16, 0x10002, 2, (int64_t[]){300, 64}, NULL));  // address
  variant_is(checks, &f, "general");
  ok(checks,
     bind(&f, "A", TILE_BF16, 0x10000, 2, (int64_t[]){300, 64}, (int64_t[]){68, 1}));  // stride of 136 bytes
  variant_is(checks, &f, "general");
  ok(checks, bind(&f, "A", TILE_BF16, 0x10000, 2, (int64_t[]){300, 64}, (int64_t[]){72, 1}));  // 144 bytes
  variant_is(checks, &f, "tma");
  ok(checks,
     bind(&f, "A", TILE_BF16, 0x10000, 2, (int64_t[]){300, 64}, (int64_t[]){0, 1}));  // a row repeated
  variant_is(checks, &f, "tma");
  bind_gemm(checks, &f, 300, 510, 64);  // rows of C are 2040 bytes: no store
  variant_is(checks, &f, "general");
  bind_gemm(checks, &f, 300, 512, 0);  // no map of a size 0
  variant_is(checks, &f, "general");
  // A dimension of size 1 may carry any stride; TMA gets one that it can take.
  bind_gemm(checks, &f, 1, 512, 64);
  ok(checks, bind(&f, "A", TILE_BF16, 0x10000, 2, (int64_t[]){1, 64}, (int64_t[]){-3, 1}));
  variant_is(checks, &f, "tma");
  ok(checks, tile_call_launch(f.call, NULL));
  CHECK_INT(checks, at(&f, 40, 8), 64);
  close_fixture(&f);
}

static void test_empty(Checks *checks) {
  Fixture f;
  if (!open_fixture(checks, &f, "gemm")) return;
  bind_gemm(checks, &f, 0, 512, 64);
  TilePlan plan;
  ok(checks, tile_call_plan(f.call, &plan));
  CHECK(checks, plan.nothing);
  ok(checks, tile_call_launch(f.call, NULL));
  CHECK_INT(checks, f.record.launches, 0);
  close_fixture(&f);
}

static void test_misfits(Checks *checks) {
  Fixture f;
  if (!open_fixture(checks, &f, "gemm")) return;
  says(checks, bind(&f, "A", TILE_F16, 0, 2, (int64_t[]){512, 64}, NULL),
       "A: expected bf16[M, K], given f16[512, 64]");
  says(checks, bind(&f, "A", TILE_BF16, 0, 1, (int64_t[]){512}, NULL),
       "A: expected bf16[M, K], given bf16[512]");
  says(checks, bind(&f, "A", TILE_BF16, 1, 2, (int64_t[]){8, 8}, NULL),
       "A: its address 0x1 is not a multiple of the element's 2 bytes");
  says(checks, bind(&f, "A", TILE_BF16, 0, 2, (int64_t[]){8, 8}, (int64_t[]){1, 8}),
       "A: the innermost stride must be 1, given 8");
  says(checks, bind(&f, "A", TILE_BF16, 0, 2, (int64_t[]){8, 8}, (int64_t[]){-8, 1}),
       "A: stride -8 of dimension 0 is negative");
  says(checks, bind(&f, "A", TILE_BF16, 0, 2, (int64_t[]){-1, 8}, NULL),
       "A: dimension 0 is -1; a size is 0 to 2^31 - 1");
  says(checks, bind(&f, "C", TILE_F32, 0, 2, (int64_t[]){8, 8}, (int64_t[]){0, 1}),
       "C is written, but its strides put several elements at one address");
  says(checks, bind(&f, "AA", TILE_BF16, 0, 2, (int64_t[]){8, 8}, NULL),
       "kernel gemm has no tensor AA; did you mean A?");
  says(checks, tile_call_int(f.call, "scales", 1), "kernel gemm has no scalar scales; did you mean scale?");
  says(checks, tile_call_int(f.call, "n", INT64_C(1) << 31), "n: 2147483648 does not fit i32");
  says(checks, tile_call_float(f.call, "n", 1.5), "n: expected an integer of type i32, given 1.5");
  says(checks, tile_call_size(f.call, "Q", 3), "kernel gemm has no size Q; it has M, K, N");
  says(checks, tile_call_launch(f.call, NULL), "tensor A is not bound");
  bind_gemm(checks, &f, 300, 512, 64);
  ok(checks, bind(&f, "B", TILE_BF16, 0x4000000, 2, (int64_t[]){512, 72}, NULL));
  says(checks, tile_call_launch(f.call, NULL), "K is 64 by A and 72 by B");
  bind_gemm(checks, &f, 300, 512, 60);
  says(checks, tile_call_launch(f.call, NULL), "k.tile:3:1: K must be a multiple of 8 (K = 60)");
  bind_gemm(checks, &f, 300, 512, 64);
  ok(checks, tile_call_size(f.call, "M", 299));
  says(checks, tile_call_launch(f.call, NULL), "M is 300 by A and 299 as fixed by the caller");
  CHECK_INT(checks, f.record.launches, 0);
  close_fixture(&f);
}

static void test_overlap(Checks *checks) {
  Fixture f;
  if (!open_fixture(checks, &f, "gemm")) return;
  bind_gemm(checks, &f, 64, 64, 64);
  ok(checks, bind(&f, "C", TILE_F32, 0x10000 + 64 * 64 * 2 - 4, 2, (int64_t[]){64, 64}, NULL));
  says(checks, tile_call_launch(f.call, NULL), "C, which is written, overlaps A in memory");
  ok(checks, bind(&f, "C", TILE_F32, 0x10000 + 64 * 64 * 2, 2, (int64_t[]){64, 64}, NULL));
  ok(checks, tile_call_launch(f.call, NULL));
  // Two column blocks of one matrix with rows of 512 bytes: interleaved, and apart.
  ok(checks, bind(&f, "A", TILE_BF16, 0x10000, 2, (int64_t[]){64, 64}, (int64_t[]){256, 1}));
  ok(checks, bind(&f, "C", TILE_F32, 0x10080, 2, (int64_t[]){64, 64}, (int64_t[]){128, 1}));
  ok(checks, tile_call_launch(f.call, NULL));
  ok(checks, bind(&f, "C", TILE_F32, 0x1007c, 2, (int64_t[]){64, 64}, (int64_t[]){128, 1}));
  says(checks, tile_call_launch(f.call, NULL), "C, which is written, overlaps A in memory");
  // Inputs may be one tensor.
  bind_gemm(checks, &f, 64, 64, 64);
  ok(checks, bind(&f, "B", TILE_BF16, 0x10000, 2, (int64_t[]){64, 64}, NULL));
  ok(checks, tile_call_launch(f.call, NULL));
  close_fixture(&f);
}

// The device says how many SMs it has, unless the caller does.
static void test_sm_count(Checks *checks) {
  Fixture f;
  if (!open_fixture(checks, &f, "fill")) return;
  ok(checks, bind(&f, "Y", TILE_U8, 0x1000, 1, (int64_t[]){12}, NULL));
  ok(checks, tile_call_launch(f.call, NULL));
  CHECK(checks, f.record.grid[0] == 10 && at(&f, 8, 4) == 5);
  ok(checks, tile_call_size(f.call, "$sm_count", 3));
  ok(checks, tile_call_launch(f.call, NULL));
  CHECK(checks, f.record.grid[0] == 6 && at(&f, 8, 4) == 3);
  close_fixture(&f);
}

static void test_derived_sizes(Checks *checks) {
  Fixture f;
  if (!open_fixture(checks, &f, "halve")) return;
  int64_t shape[2];
  says(checks, tile_call_shape(f.call, "X", shape),
       "dimension 0 of X needs N, which no bound tensor settles; fix it with a value");
  ok(checks, bind(&f, "Y", TILE_U8, 0x1000, 1, (int64_t[]){12}, NULL));
  ok(checks, tile_call_shape(f.call, "X", shape));
  CHECK(checks, shape[0] == 12 && shape[1] == 24);
  ok(checks, bind(&f, "X", TILE_U8, 0x2000, 2, (int64_t[]){12, 25}, NULL));
  says(checks, tile_call_launch(f.call, NULL), "X: dimension 1 is N*2 = 24, given 25");
  ok(checks, bind(&f, "X", TILE_U8, 0x2000, 2, (int64_t[]){12, 24}, NULL));
  // Its only variant's guard: rows of 24 bytes are no multiple of 16.
  says(checks, tile_call_launch(f.call, NULL),
       "kernel halve cannot run on these tensors: X: its stride of dimension 0, 24 elements of u8, is not a "
       "multiple of 16 bytes");
  ok(checks, bind(&f, "X", TILE_U8, 0x2000, 2, (int64_t[]){12, 24}, (int64_t[]){32, 1}));
  says(checks, tile_call_launch(f.call, NULL),
       "the grid needs P, which no bound tensor settles; fix it with a value");
  ok(checks, tile_call_size(f.call, "P", 3));
  ok(checks, tile_call_launch(f.call, NULL));
  CHECK(checks, f.record.grid[0] == 3 && f.record.grid[1] == 6 && at(&f, 16, 4) == 3);
  ok(checks, bind(&f, "Y", TILE_U8, 0x1000, 1, (int64_t[]){10}, NULL));
  ok(checks, bind(&f, "X", TILE_U8, 0x2000, 2, (int64_t[]){10, 20}, (int64_t[]){32, 1}));
  says(checks, tile_call_launch(f.call, NULL),
       "grid y of kernel halve is 5, not a multiple of the cluster's 2");
  ok(checks, bind(&f, "Y", TILE_U8, 0x1000, 1, (int64_t[]){200000}, NULL));
  ok(checks, bind(&f, "X", TILE_U8, 0x2000000, 2, (int64_t[]){200000, 400000}, NULL));
  says(checks, tile_call_launch(f.call, NULL), "grid y of kernel halve is 100000, the limit is 65535");
  close_fixture(&f);
}

static void test_inspection(Checks *checks) {
  Fixture f;
  if (!open_fixture(checks, &f, "gemm")) return;
  CHECK_INT(checks, tile_module_kernel_count(f.module), 3);
  CHECK_INT(checks, tile_kernel_param_count(f.kernel), 5);
  const TileParam *c = tile_kernel_param(f.kernel, 2);
  CHECK(checks,
        c->kind == TILE_PARAM_TENSOR && c->dtype == TILE_F32 && c->access == TILE_WRITE && c->rank == 2);
  CHECK_TEXT(checks, c->shape[1], "N");
  CHECK_TEXT(checks, tile_kernel_param(f.kernel, 3)->name, "scale");
  CHECK(checks, tile_kernel_param(f.kernel, 5) == NULL);
  CHECK_INT(checks, tile_kernel_size_count(f.kernel), 3);
  CHECK_TEXT(checks, tile_kernel_size_name(f.kernel, 1), "K");
  const TileKernel *none;
  says(checks, tile_module_find(f.module, NULL, &none), "k.ptx has 3 kernels, choose one: gemm, halve, fill");
  says(checks, tile_module_find(f.module, "x", &none), "k.ptx has no kernel x; it has gemm, halve, fill");
  close_fixture(&f);
}

static void test_dlpack(Checks *checks) {
  Fixture f;
  if (!open_fixture(checks, &f, "gemm")) return;
  bind_gemm(checks, &f, 64, 64, 64);
  int64_t shape[] = {64, 64};
  TileDLTensor tensor = {.data = (void *)0x100000,
                         .device = {12, 0},
                         .ndim = 2,
                         .dtype = {4, 16, 1},
                         .shape = shape,
                         .byte_offset = 32};
  ok(checks, tile_call_dlpack(f.call, "A", &tensor));
  ok(checks, tile_call_launch(f.call, NULL));
  CHECK_INT(checks, at(&f, 0, 8), 0x100020);
  tensor.dtype.code = 2;
  says(checks, tile_call_dlpack(f.call, "A", &tensor), "A: expected bf16[M, K], given f16[64, 64]");
  tensor.dtype.code = 5;
  says(checks, tile_call_dlpack(f.call, "A", &tensor),
       "A has DLPack type code 5 with 16 bits and 1 lanes, which no kernel takes");
  tensor.dtype.code = 4;
  tensor.device.device_type = 2;
  ok(checks, tile_call_dlpack(f.call, "A", &tensor));
  says(checks, tile_call_launch(f.call, NULL),
       "A is on DLPack device type 2, but the kernel runs on backend emu");
  tensor.device.device_type = 1;
  says(checks, tile_call_dlpack(f.call, "A", &tensor),
       "A is on DLPack device type 1; copy it to the device first (tile_alloc, tile_write)");
  close_fixture(&f);
}

int main(void) {
  Checks checks = {0};
  test_block(&checks);
  test_variants(&checks);
  test_empty(&checks);
  test_misfits(&checks);
  test_overlap(&checks);
  test_derived_sizes(&checks);
  test_sm_count(&checks);
  test_inspection(&checks);
  test_dlpack(&checks);
  return check_report(&checks);
}
