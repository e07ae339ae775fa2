// Fragment and shared layouts: which element sits where, written down by hand or counted exhaustively.
#include "types/layout.h"

#include <stdlib.h>

#include "check.h"

static Type buffer(DType dtype, Space space, int rank, int64_t a, int64_t b) {
  int64_t shape[] = {a, b};
  return type_buffer(dtype, space, rank, shape);
}

// Every element is held, and by exactly `holders` (thread, register) pairs.
static void check_cover(Checks *c, const Layout *layout, int64_t elements, int holders) {
  int *held = calloc((size_t)elements, sizeof *held);
  for (int64_t t = 0; t < layout_threads(layout); t++)
    for (int64_t r = 0; r < layout_registers(layout); r++) {
      int64_t element = layout_element(layout, t, r);
      CHECK(c, element >= 0);
      if (element < elements) held[element]++;
    }
  bool all = true;
  for (int64_t i = 0; i < elements; i++) all = all && held[i] == holders;
  CHECK(c, all);
  free(held);
}

static void test_flat(Checks *c) {
  Type type = buffer(DTYPE_bf16, SPACE_FRAGMENT, 2, 128, 64);
  Layout layout = layout_flat(&type, 128);
  CHECK_INT(c, layout_threads(&layout), 128);
  CHECK_INT(c, layout_registers(&layout), 64);
  CHECK_INT(c, layout_element(&layout, 1, 0), 8);     // the next thread holds the next 16 bytes
  CHECK_INT(c, layout_element(&layout, 0, 8), 1024);  // and then it starts over
  check_cover(c, &layout, 128 * 64, 1);
  static const struct {
    DType dtype;
    int rank, threads;
    int64_t a, b;
  } cases[] = {{DTYPE_f32, 1, 128, 100, 0}, {DTYPE_f32, 1, 128, 1000, 0}, {DTYPE_f16, 2, 128, 7, 9},
               {DTYPE_i8, 2, 256, 3, 48},   {DTYPE_f64, 1, 96, 1, 0},     {DTYPE_e2m1, 2, 32, 16, 64},
               {DTYPE_e2m3, 1, 32, 640, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    type = buffer(cases[i].dtype, SPACE_FRAGMENT, cases[i].rank, cases[i].a, cases[i].b);
    layout = layout_flat(&type, cases[i].threads);
    CHECK_INT(c, layout_threads(&layout), cases[i].threads);
    check_cover(c, &layout, type_elements(&type), 1);
  }
}

static void test_row(Checks *c) {
  Type type = buffer(DTYPE_f32, SPACE_FRAGMENT, 2, 256, 64);
  Layout layout;
  CHECK(c, layout_row(&type, 128, &layout));
  CHECK_INT(c, layout_element(&layout, 5, 0), 5 * 64);
  CHECK_INT(c, layout_element(&layout, 5, 63), 5 * 64 + 63);
  CHECK_INT(c, layout_element(&layout, 5, 64), (128 + 5) * 64);
  check_cover(c, &layout, 256 * 64, 1);
  CHECK(c, layout_row(&type, 256, &layout));
  CHECK_INT(c, layout_element(&layout, 128 + 5, 0), 5 * 64 + 32);  // the second warpgroup: the right half
  check_cover(c, &layout, 256 * 64, 1);
  CHECK(c, !layout_row(&type, 96, &layout));
  type = buffer(DTYPE_f32, SPACE_FRAGMENT, 2, 64, 64);
  CHECK(c, layout_row(&type, 128, &layout));  // 16 rows a warp, halves of the columns
  CHECK_INT(c, layout_element(&layout, 32 + 5, 3), (16 + 5) * 64 + 3);
  CHECK_INT(c, layout_element(&layout, 32 + 16 + 5, 3), (16 + 5) * 64 + 32 + 3);
  check_cover(c, &layout, 64 * 64, 1);
  CHECK(c, layout_row(&type, 256, &layout));
  CHECK_INT(c, layout_element(&layout, 128 + 16 + 5, 3), 5 * 64 + 32 + 16 + 3);
  check_cover(c, &layout, 64 * 64, 1);
  type = buffer(DTYPE_f32, SPACE_FRAGMENT, 2, 64, 33);
  CHECK(c, !layout_row(&type, 128, &layout));
  type = buffer(DTYPE_f32, SPACE_FRAGMENT, 2, 96, 64);
  CHECK(c, !layout_row(&type, 128, &layout));
  type = buffer(DTYPE_f32, SPACE_FRAGMENT, 2, 128, 33);
  CHECK(c, !layout_row(&type, 256, &layout));
}

static void test_replicated(Checks *c) {
  Type type = buffer(DTYPE_f32, SPACE_FRAGMENT, 1, 17, 0);
  Layout layout = layout_replicated(&type, 64);
  CHECK_INT(c, layout_threads(&layout), 64);
  check_cover(c, &layout, 17, 64);
}

// The register of the projected layout that holds what iteration (thread, reg) needs must exist in that
// thread.
static void check_projection(Checks *c, const Layout *over, const Type *shape, int dim) {
  Layout projected;
  if (!CHECK(c, layout_project(over, shape, &dim, 1, &projected))) return;
  CHECK_INT(c, layout_threads(&projected), layout_threads(over));
  bool all = true;
  for (int64_t t = 0; t < layout_threads(over); t++)
    for (int64_t r = 0; r < layout_registers(over); r++) {
      int64_t element = layout_element(over, t, r), columns = shape->shape[1];
      int64_t wanted = dim == 0 ? element / columns : element % columns;
      bool found = element >= type_elements(shape);
      for (int64_t q = 0; q < layout_registers(&projected) && !found; q++)
        found = layout_element(&projected, t, q) == wanted;
      all = all && found;
    }
  CHECK(c, all);
}

static void test_blocked(Checks *c) {
  static const struct {
    int64_t rows, columns;
    int threads;
  } cases[] = {{128, 64, 128}, {64, 96, 128}, {5, 3, 32},  {1, 7, 32},
               {16, 24, 32},   {3, 64, 224},  {33, 40, 96}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Type type = buffer(DTYPE_f32, SPACE_FRAGMENT, 2, cases[i].rows, cases[i].columns);
    Layout layout = layout_blocked(&type, cases[i].threads);
    CHECK_INT(c, layout_threads(&layout), cases[i].threads);
    check_cover(c, &layout, cases[i].rows * cases[i].columns, 1);
    check_projection(c, &layout, &type, 0);
    check_projection(c, &layout, &type, 1);
  }
  Type type = buffer(DTYPE_f32, SPACE_FRAGMENT, 2, 64, 96);
  Layout layout = layout_blocked(&type, 128);  // 8 threads a row, 3 vectors each
  CHECK_INT(c, layout_element(&layout, 1, 0), 4);
  CHECK_INT(c, layout_element(&layout, 8, 0), 96);
  CHECK_INT(c, layout_element(&layout, 0, 4), 32);
  CHECK_INT(c, layout_element(&layout, 0, 12), 16 * 96);
}

static void test_project(Checks *c) {
  Type type = buffer(DTYPE_f32, SPACE_FRAGMENT, 2, 128, 64);
  Layout row, flat = layout_flat(&type, 128), projected;
  CHECK(c, layout_row(&type, 256, &row));
  for (int dim = 0; dim < 2; dim++) {
    check_projection(c, &row, &type, dim);
    check_projection(c, &flat, &type, dim);
  }
  int rows = 0, columns = 1;
  CHECK(c, layout_project(&row, &type, &rows, 1, &projected));
  CHECK_INT(c, layout_registers(&projected), 1);
  CHECK_INT(c, layout_element(&projected, 7, 0), 7);
  CHECK_INT(c, layout_element(&projected, 128 + 7, 0), 7);
  CHECK(c, layout_project(&row, &type, &columns, 1, &projected));
  CHECK_INT(c, layout_registers(&projected), 32);
  CHECK_INT(c, layout_element(&projected, 128 + 7, 3), 35);
  type = buffer(DTYPE_f32, SPACE_FRAGMENT, 2, 10, 10);
  flat = layout_flat(&type, 128);
  CHECK(c, !layout_project(&flat, &type, &columns, 1, &projected));  // 128 threads do not end at a row of 10
}

// The XOR written out bit by bit (PTX ISA 5.5.7, tables of the 16-byte chunks).
static int64_t chunk_of(int span, int64_t row, int64_t chunk) {
  int64_t line = row * span / 128, within = row * span % 128 / 16 + chunk;
  int64_t mask = span == 128 ? line % 8 : span == 64 ? line % 4 : line % 2;
  return line * 128 + (within ^ mask) * 16;
}

static void test_swizzle(Checks *c) {
  static const int spans[] = {32, 64, 128};
  for (int s = 0; s < 3; s++) {
    int span = spans[s], columns = span / 2;
    Type type = buffer(DTYPE_bf16, SPACE_SHARED, 2, 16, 3 * columns);
    Layout layout = {.kind = LAYOUT_SHARED, .span = span, .offset = 0};
    CHECK_INT(c, layout_shared_bytes(&layout, &type), 3 * 16 * span);
    CHECK_INT(c, layout_shared_alignment(&layout), span * 8 > 128 ? span * 8 : 128);
    for (int64_t row = 0; row < 16; row++)
      for (int64_t column = 0; column < 3 * columns; column++) {
        int64_t index[] = {row, column}, panel = column / columns, inside = column % columns;
        int64_t wanted = panel * 16 * span + chunk_of(span, row, inside / 8) + inside % 8 * 2;
        if (layout_shared_offset(&layout, &type, index) != wanted) {
          CHECK_INT(c, layout_shared_offset(&layout, &type, index), wanted);
          return;
        }
      }
  }
  Type ragged = buffer(DTYPE_bf16, SPACE_SHARED, 2, 16, 65);
  Layout layout = {.kind = LAYOUT_SHARED, .span = 128, .offset = 0};
  CHECK_INT(c, layout_shared_bytes(&layout, &ragged), 2 * 16 * 128);
  layout.span = 0;
  int64_t index[] = {2, 3};
  CHECK_INT(c, layout_shared_offset(&layout, &ragged, index), (2 * 65 + 3) * 2);
  CHECK_INT(c, layout_shared_bytes(&layout, &ragged), 16 * 65 * 2);
}

static void test_text(Checks *c, Arena *arena) {
  static const char *const texts[] = {"frag t(128:64, 2:32) r(32:1)",
                                      "frag t() r()",
                                      "shared 128B +4096",
                                      "shared rows",
                                      "shared rows +0",
                                      "shared 32B",
                                      "tmem cols 0+256",
                                      "tmem cols ?+64"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    Layout layout, again;
    const char *end = layout_parse(texts[i], &layout);
    if (!CHECK(c, end && *end == 0)) continue;
    TextBuf out = {.arena = arena};
    layout_print(&out, &layout);
    CHECK_TEXT(c, out.data, texts[i]);
    CHECK(c, layout_parse(out.data, &again) && layout_equal(&layout, &again));
  }
  static const char *const wrong[] = {"",
                                      "frag",
                                      "frag t(0:1) r()",
                                      "frag t(1:1",
                                      "frag t(1:1,) r()",
                                      "shared 48B",
                                      "shared",
                                      "tmem cols",
                                      "tmem cols 1",
                                      "frag t(1048577:1) r()",
                                      "frag t(1024:1, 1024:1, 2:1) r()",
                                      "frag t(1:1,1:1,1:1,1:1,1:1,1:1,1:1) r()"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Layout layout;
    if (layout_parse(wrong[i], &layout)) CHECK_TEXT(c, wrong[i], "refused");
  }
}

static void test_types(Checks *c, Arena *arena) {
  DType dtype;
  CHECK(c, dtype_parse("bfloat16", &dtype) && dtype == DTYPE_bf16);
  CHECK(c, dtype_parse("float8_e4m3fn", &dtype) && dtype == DTYPE_e4m3);
  CHECK(c, !dtype_parse("bf17", &dtype));
  CHECK_INT(c, dtype_bytes(DTYPE_e2m1), 0);
  Type type = buffer(DTYPE_e2m1, SPACE_GLOBAL, 2, 3, 3);
  CHECK_INT(c, type_bytes(&type), 5);
  type.shape[0] = DIM_DYNAMIC;
  TextBuf out = {.arena = arena};
  type_print(&out, &type);
  CHECK_TEXT(c, out.data, "e2m1[?, 3] global");
  CHECK(c, !type_is_static(&type));
  type = buffer(DTYPE_f32, SPACE_SHARED, 2, INT64_C(1) << 40, INT64_C(1) << 40);
  CHECK(c, type_elements(&type) == INT64_MAX && type_bytes(&type) == INT64_MAX);
}

// Eight threads that access 16 bytes each, at the same columns of eight rows, reach all 32 banks: so store a warp's threads that hold a
// row each, eight at a time, and so does stmatrix for each of its matrices.
static void test_banks(Checks *c) {
  enum { ROWS = 128, SIDE = 8, CHUNK = 16, LINE = 128 };
  for (int span = 32; span <= 128; span *= 2) {
    Type type = buffer(DTYPE_bf16, SPACE_SHARED, 2, ROWS, span / 2);
    Layout layout = {.kind = LAYOUT_SHARED, .span = span, .offset = 0};
    for (int64_t first = 0; first < ROWS; first += SIDE)
      for (int64_t column = 0; column < span / 2; column += CHUNK / 2) {
        unsigned reached = 0;
        for (int64_t row = first; row < first + SIDE; row++) {
          int64_t index[] = {row, column}, offset = layout_shared_offset(&layout, &type, index);
          CHECK_INT(c, offset % CHUNK, 0);
          reached |= 1u << offset % LINE / CHUNK;
        }
        CHECK_INT(c, reached, 0xFF);
      }
  }
}

int main(void) {
  Checks checks = {0};
  Arena *arena = arena_new();
  test_types(&checks, arena);
  test_flat(&checks);
  test_row(&checks);
  test_blocked(&checks);
  test_replicated(&checks);
  test_project(&checks);
  test_swizzle(&checks);
  test_banks(&checks);
  test_text(&checks, arena);
  arena_free(arena);
  return check_report(&checks);
}
