// Bounds and divisors of staged integers: what is proven, and what must not be.
#include "base/gcd.h"
#include "tir/ranges.h"

#include "check.h"
#include "tir/build.h"

typedef struct {
  Checks *c;
  TirBuilder b;
} Bench;

static void expect(Bench *t, const TirValue *value, int64_t lo, int64_t hi, int64_t multiple) {
  TirRange r = tir_known_range(value);
  CHECK_INT(t->c, r.lo, lo);
  CHECK_INT(t->c, r.hi, hi);
  CHECK_INT(t->c, r.multiple, multiple);
}

static void check_blocks(Bench *t) {
  TirValue *extents[] = {tir_int(&t->b, 4), tir_size(&t->b, intern(t->b.module->names, "M"))};
  tir_grid(&t->b, 2, extents);
  TirValue *bx = tir_block_idx(&t->b, 0), *by = tir_block_idx(&t->b, 1);
  TirValue *k128 = tir_int(&t->b, 128);
  expect(t, bx, 0, 3, 1);
  expect(t, tir_binary(&t->b, OP_mul, bx, k128), 0, 384, 128);
  TirValue *row = tir_binary(&t->b, OP_mul, by, k128);
  CHECK_INT(t->c, tir_known_range(row).lo, 0);
  CHECK_INT(t->c, tir_known_multiple(row), 128);
  expect(t, tir_binary(&t->b, OP_sub, bx, tir_int(&t->b, 1)), -1, 2, 1);
  CHECK_INT(t->c, tir_known_multiple(tir_binary(&t->b, OP_add, row, tir_int(&t->b, 24))), 8);
}

static void check_loops(Bench *t) {
  TirOp *loop = tir_for(&t->b, LOOP_SERIAL, tir_int(&t->b, 16), tir_int(&t->b, 100), tir_int(&t->b, 32));
  expect(t, loop->results[0], 16, 80, 16);
  TirOp *down = tir_for(&t->b, LOOP_SERIAL, tir_int(&t->b, 7), tir_int(&t->b, -1), tir_int(&t->b, -1));
  expect(t, down->results[0], 0, 7, 1);
  TirValue *extent = tir_int(&t->b, 64);
  TirOp *parallel = tir_parallel(&t->b, 1, &extent);
  expect(t, parallel->results[0], 0, 63, 1);
  TirValue *thread = tir_thread_idx(&t->b);
  expect(t, thread, 0, 127, 1);
}

static void check_division(Bench *t) {
  TirOp *loop = tir_for(&t->b, LOOP_SERIAL, tir_int(&t->b, -8), tir_int(&t->b, 9), tir_int(&t->b, 4));
  TirValue *v = loop->results[0];  // -8, -4, 0, 4, 8
  TirValue *three = tir_int(&t->b, 3), *two = tir_int(&t->b, 2);
  expect(t, v, -8, 8, 4);
  expect(t, tir_binary(&t->b, OP_floordiv, v, two), -4, 4, 2);
  expect(t, tir_binary(&t->b, OP_floordiv, v, three), -3, 2, 1);
  expect(t, tir_binary(&t->b, OP_floormod, v, three), 0, 2, 1);
  expect(t, tir_binary(&t->b, OP_floormod, v, two), 0, 0, 0);
  expect(t, tir_binary(&t->b, OP_ceildiv, v, three), -2, 3, 1);
  // Truncation of a value that may be negative is left alone.
  CHECK_INT(t->c, tir_known_multiple(tir_binary(&t->b, OP_truncdiv, v, two)), 1);
}

// Signed results are cut to the type; unsigned ones may have wrapped.
static void check_types(Bench *t) {
  TirValue *size = tir_size(&t->b, intern(t->b.module->names, "N"));
  CHECK_INT(t->c, tir_known_range(tir_binary(&t->b, OP_mul, size, size)).lo, 0);
  TirValue *param = tir_param(&t->b, intern(t->b.module->names, "p"), DTYPE_u32);
  TirValue *scaled = tir_binary(&t->b, OP_mul, param, tir_int_typed(&t->b, DTYPE_u32, 24));
  expect(t, scaled, 0, UINT32_MAX, 8);
  TirValue *flag = tir_binary(&t->b, OP_lt, size, tir_int(&t->b, 5));
  expect(t, tir_select(&t->b, flag, tir_int(&t->b, 32), tir_int(&t->b, 48)), 32, 48, 16);
  CHECK_INT(t->c, base_gcd(0, -12), 12);
}

// A conversion that does not fit may have wrapped, and so may arithmetic narrower than an index.
static void check_casts(Bench *t) {
  TirValue *wide = tir_param(&t->b, intern(t->b.module->names, "q"), DTYPE_u32);
  TirValue *scaled = tir_binary(&t->b, OP_mul, wide, tir_int_typed(&t->b, DTYPE_u32, 24));
  expect(t, tir_cast(&t->b, DTYPE_i32, scaled), INT32_MIN, INT32_MAX, 8);
  TirOp *loop = tir_for(&t->b, LOOP_SERIAL, tir_int(&t->b, 0), tir_int(&t->b, 100), tir_int(&t->b, 12));
  TirValue *narrow = tir_cast(&t->b, DTYPE_i8, loop->results[0]);
  expect(t, narrow, 0, 96, 12);
  expect(t, tir_cast(&t->b, DTYPE_i32, tir_binary(&t->b, OP_add, narrow, narrow)), -128, 127, 4);
  TirValue *below = tir_binary(&t->b, OP_sub, loop->results[0], tir_int(&t->b, 24));
  expect(t, tir_cast(&t->b, DTYPE_u8, below), 0, 255, 4);
}

static void check_same(Bench *t) {
  TirValue *a = tir_binary(&t->b, OP_mul, tir_block_idx(&t->b, 0), tir_int(&t->b, 128));
  TirValue *b = tir_binary(&t->b, OP_mul, tir_block_idx(&t->b, 0), tir_int(&t->b, 128));
  TirValue *other = tir_binary(&t->b, OP_mul, tir_block_idx(&t->b, 1), tir_int(&t->b, 128));
  CHECK(t->c, tir_same_value(a, b));
  CHECK(t->c, !tir_same_value(a, other));
  TirValue *cell = tir_cell(&t->b, intern(t->b.module->names, "c"), DTYPE_i32, a);
  CHECK(t->c, !tir_same_value(tir_get(&t->b, cell), tir_get(&t->b, cell)));
}

int main(void) {
  Checks c = {0};
  Arena *arena = arena_new();
  Interner *names = interner_new(arena);
  TirModule *module = tir_module_new(arena, names);
  TirKernel *kernel = tir_kernel_new(module, intern(names, "k"), (Span){0, 0});
  kernel->threads = 128;
  Bench t = {&c, tir_builder_at_end(module, kernel->body, (Span){0, 0})};
  check_blocks(&t);
  check_loops(&t);
  check_division(&t);
  check_types(&t);
  check_casts(&t);
  check_same(&t);
  arena_free(arena);
  return check_report(&c);
}
