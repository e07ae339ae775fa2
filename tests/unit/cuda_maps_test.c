// What the CUDA backend asks the driver's encoder for: every element type, rank, swizzle and kind of stride, on the
// fake driver library. The numbers of the driver's enumerations are written down here a second time.
#include <stdlib.h>

#include "fake_cuda.h"

typedef struct {
  Checks *checks;
  const Fake *fake;
  TileDevice *device;
} Maps;

// Launches a kernel whose only parameter is a map of tensor A, and compares the calls of the encoder with `want`; "":
// none. `dims` are the tensor's declared dimensions, `box` the box's, both outermost first.
static void encoded(const Maps *maps, const char *dtype, const char *dims, const char *box, int swizzle,
                    const TileTensor *tensor, const char *want) {
  char info[600];
  const char *got;
  TileModule *module;
  const TileKernel *kernel;
  TileCall *call;
  snprintf(info, sizeof info,
           "tile-launch-info 1\nentry k\nkernel k\nvariant only\narch sm_100a\nblock 32\ngrid 1 1 1\n"
           "cluster 1 1 1\nshared 0\ntensor A %s read %s\nmap 0 A box %s swizzle %d load\nparam map 0\nend\n",
           dtype, dims, box, swizzle);
  Checks *checks = maps->checks;
  ok(checks, fake_module(info, &module));
  ok(checks, tile_module_load(module, maps->device));
  ok(checks, tile_module_find(module, "k", &kernel));
  ok(checks, tile_call_new(kernel, &call));
  ok(checks, tile_call_tensor(call, "A", tensor));
  maps->fake->reset();
  maps->fake->params(false);
  ok(checks, tile_call_launch(call, NULL));
  got = strstr(maps->fake->log(), "cuTensorMapEncodeTiled(");
  char line[600] = "";
  if (got) snprintf(line, sizeof line, "%.*s", (int)strcspn(got, "\n"), got);
  CHECK_TEXT(checks, line, want);
  CHECK_INT(checks, maps->fake->calls("cuTensorMapEncodeTiled"), *want != '\0');
  tile_call_free(call);
  tile_module_close(module);
}

typedef struct {
  const char *name;
  TileDType dtype;
  int bytes, code;  // code: CUtensorMapDataType
} TypeRow;

static const TypeRow types[] = {
    {"u8", TILE_U8, 1, 0},     {"i8", TILE_I8, 1, 0},       {"bool", TILE_BOOL, 1, 0},
    {"e4m3", TILE_E4M3, 1, 0}, {"e5m2", TILE_E5M2, 1, 0},   {"u16", TILE_U16, 2, 1},
    {"i16", TILE_I16, 2, 1},   {"u32", TILE_U32, 4, 2},     {"i32", TILE_I32, 4, 3},
    {"u64", TILE_U64, 8, 4},   {"i64", TILE_I64, 8, 5},     {"f16", TILE_F16, 2, 6},
    {"f32", TILE_F32, 4, 7},   {"f64", TILE_F64, 8, 8},     {"bf16", TILE_BF16, 2, 9},
    {"tf32", TILE_TF32, 4, 7}, {"ue8m0", TILE_UE8M0, 1, 0},
};

// The driver's code of a swizzle.
static int swizzle_code(int bytes) {
  return bytes == 0 ? 0 : bytes == 32 ? 1 : bytes == 64 ? 2 : 3;
}

static void test_types(const Maps *maps) {
  static const int swizzles[] = {0, 32, 64, 128};
  for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
    for (int s = 0; s < 4; s++) {
      const TypeRow *type = &types[t];
      char box[40], want[300];
      int wide = (swizzles[s] ? swizzles[s] : 16) / type->bytes;
      // 50 rows of 160 bytes that use 144 of them
      int64_t shape[] = {50, 144 / type->bytes}, strides[] = {160 / type->bytes, 1};
      TileTensor tensor = {0x40000, type->dtype, 2, shape, strides};
      snprintf(box, sizeof box, "16 %d", wide);
      snprintf(
          want, sizeof want,
          "cuTensorMapEncodeTiled(aligned 1, type %d, rank 2, 0x40000, size %d 50, stride 160, box %d 16, "
          "step 1 1, 0 %d 2 0)",
          type->code, 144 / type->bytes, wide, swizzle_code(swizzles[s]));
      encoded(maps, type->name, "(M) (N)", box, swizzles[s], &tensor, want);
    }
}

// One to five dimensions; strides go from the second innermost outwards, in bytes.
static void test_ranks(const Maps *maps) {
  int64_t shape[] = {2, 3, 4, 5, 24}, strides[] = {7680, 2560, 640, 128, 1};
  static const char *const dims[] = {"(A) (B) (C) (D) (E)", "(B) (C) (D) (E)", "(C) (D) (E)", "(D) (E)",
                                     "(E)"};
  static const char *const boxes[] = {"1 1 2 4 8", "1 2 4 8", "2 4 8", "4 8", "8"};
  static const char *const wants[] = {
      "rank 5, 0x8000, size 24 5 4 3 2, stride 256 1280 5120 15360, box 8 4 2 1 1, step 1 1 1 1 1, 0 0 2 0)",
      "rank 4, 0x8000, size 24 5 4 3, stride 256 1280 5120, box 8 4 2 1, step 1 1 1 1, 0 0 2 0)",
      "rank 3, 0x8000, size 24 5 4, stride 256 1280, box 8 4 2, step 1 1 1, 0 0 2 0)",
      "rank 2, 0x8000, size 24 5, stride 256, box 8 4, step 1 1, 0 0 2 0)",
      "rank 1, 0x8000, size 24, stride, box 8, step 1, 0 0 2 0)"};
  for (int skip = 0; skip < 5; skip++) {
    TileTensor tensor = {0x8000, TILE_BF16, 5 - skip, shape + skip, strides + skip};
    char want[300];
    snprintf(want, sizeof want, "cuTensorMapEncodeTiled(aligned 1, type 9, %s", wants[skip]);
    encoded(maps, "bf16", dims[skip], boxes[skip], 0, &tensor, want);
  }
}

// A dimension of size 1 may carry any stride; the encoder gets one that it takes.
static void test_strides(const Maps *maps) {
  int64_t shape[] = {1, 24, 64}, strides[] = {7, 72, 1};
  TileTensor tensor = {0x8000, TILE_BF16, 3, shape, strides};
  encoded(maps, "bf16", "(A) (B) (C)", "1 8 64", 128, &tensor,
          "cuTensorMapEncodeTiled(aligned 1, type 9, rank 3, 0x8000, size 64 24 1, stride 144 3456, box 64 8 "
          "1, step 1 "
          "1 1, 0 3 2 0)");
  int64_t row[] = {1, 63}, odd[] = {-5, 99};  // compact, but 126 bytes are no multiple of 16
  tensor = (TileTensor){0x8000, TILE_BF16, 2, row, odd};
  odd[1] = 1;
  encoded(maps, "bf16", "(B) (C)", "8 32", 64, &tensor,
          "cuTensorMapEncodeTiled(aligned 1, type 9, rank 2, 0x8000, size 63 1, stride 128, box 32 8, step 1 "
          "1, 0 2 2 "
          "0)");
  int64_t column[] = {300, 1}, pitch[] = {16, 77};  // the innermost too
  tensor = (TileTensor){0x8000, TILE_U8, 2, column, pitch};
  encoded(maps, "u8", "(B) (C)", "8 16", 0, &tensor,
          "cuTensorMapEncodeTiled(aligned 1, type 0, rank 2, 0x8000, size 1 300, stride 16, box 16 8, step 1 "
          "1, 0 0 2 "
          "0)");
  int64_t same[] = {24, 64}, none[] = {0, 1};  // one row for all
  tensor = (TileTensor){0x8000, TILE_BF16, 2, same, none};
  encoded(maps, "bf16", "(B) (C)", "8 64", 128, &tensor,
          "cuTensorMapEncodeTiled(aligned 1, type 9, rank 2, 0x8000, size 64 24, stride 0, box 64 8, step 1 "
          "1, 0 3 2 "
          "0)");
}

// Two variants: K = 0 takes the one without maps; M = 0 launches nothing.
static void test_empty(const Maps *maps) {
  static const char info[] =
      "tile-launch-info 1\nentry fast\nkernel k\nvariant tma\narch sm_100a\nblock 32\ngrid M 1 1\ncluster 1 "
      "1 1\n"
      "shared 0\ntensor A bf16 read (M) (K)\nmap 0 A box 8 64 swizzle 128 load\nguard A load\nparam map "
      "0\nend\n"
      "entry slow\nkernel k\nvariant general\narch sm_100a\nblock 32\ngrid M 1 1\ncluster 1 1 1\nshared 0\n"
      "tensor A bf16 read (M) (K)\nparam ptr A\nparam size M\nparam size K\nend\n";
  static const struct {
    int64_t m, k;
    int maps, launches;
  } rows[] = {{5, 64, 1, 1}, {5, 0, 0, 1}, {0, 64, 0, 0}, {0, 0, 0, 0}};
  Checks *checks = maps->checks;
  for (int i = 0; i < 4; i++) {
    TileModule *module;
    const TileKernel *kernel;
    TileCall *call;
    TileTensor tensor = {0x8000, TILE_BF16, 2, (int64_t[]){rows[i].m, rows[i].k}, NULL};
    ok(checks, fake_module(info, &module));
    ok(checks, tile_module_load(module, maps->device));
    ok(checks, tile_module_find(module, "k", &kernel));
    ok(checks, tile_call_new(kernel, &call));
    ok(checks, tile_call_tensor(call, "A", &tensor));
    maps->fake->reset();
    maps->fake->params(false);
    ok(checks, tile_call_launch(call, NULL));
    CHECK_INT(checks, maps->fake->calls("cuTensorMapEncodeTiled"), rows[i].maps);
    CHECK_INT(checks, maps->fake->calls("cuLaunchKernelEx"), rows[i].launches);
    tile_call_free(call);
    tile_module_close(module);
  }
}

int main(void) {
  Checks checks = {0};
  Fake fake;
  if (!CHECK(&checks, fake_load(&fake))) return check_report(&checks);
  Maps maps = {&checks, &fake, NULL};
  ok(&checks, fake_open(NULL, "sm_100a", &maps.device));
  if (maps.device) {
    test_types(&maps);
    test_ranks(&maps);
    test_strides(&maps);
    test_empty(&maps);
  }
  tile_device_close(maps.device);
  CHECK_INT(&checks, fake.alive(), 0);
  return check_report(&checks);
}
