// The builder's folding and hoisting, thread dependence, clones, the op tables, and a reader that survives
// any bytes.
#include "tir/tir.h"

#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "tir/build.h"
#include "tir/fold.h"
#include "tir/text.h"

typedef struct {
  Checks *c;
  Arena *arena;
  Interner *names;
  TirModule *module;
  TirKernel *kernel;
  TirBuilder b;
} Bench;

static Bench bench_new(Checks *c, Arena *arena) {
  Bench bench = {.c = c, .arena = arena, .names = interner_new(arena)};
  bench.module = tir_module_new(arena, bench.names);
  bench.kernel = tir_kernel_new(bench.module, intern(bench.names, "k"), (Span){0, 0});
  bench.kernel->threads = 128;
  bench.b = tir_builder_at_end(bench.module, bench.kernel->body, (Span){0, 0});
  return bench;
}

static const char *printed(Bench *bench) {
  TextBuf out = {.arena = bench->arena};
  tir_print(&out, bench->module);
  return out.data;
}

static bool verified(Bench *bench) {
  Diags *ds = diags_new(bench->arena, NULL);
  bool ok = tir_verify(bench->module, ds);
  if (!ok) diags_print(ds, stderr, &(DiagStyle){.json = false});
  return ok;
}

// ---- folding

static void check_fold(Bench *t, OpKind kind, int64_t a, int64_t b, int64_t want) {
  int64_t got = 0;
  TirValue *value = tir_binary(&t->b, kind, tir_int(&t->b, a), tir_int(&t->b, b));
  if (CHECK(t->c, tir_const_int(value, &got))) CHECK_INT(t->c, got, want);
}

static void check_no_fold(Bench *t, OpKind kind, int64_t a, int64_t b) {
  int64_t got;
  CHECK(t->c, !tir_const_int(tir_binary(&t->b, kind, tir_int(&t->b, a), tir_int(&t->b, b)), &got));
}

static void test_integers(Checks *c, Arena *arena) {
  Bench t = bench_new(c, arena);
  check_fold(&t, OP_floordiv, -7, 2, -4);
  check_fold(&t, OP_floordiv, 7, -2, -4);
  check_fold(&t, OP_floormod, -7, 2, 1);
  check_fold(&t, OP_floormod, 7, -2, -1);
  check_fold(&t, OP_truncdiv, -7, 2, -3);
  check_fold(&t, OP_truncmod, -7, 2, -1);
  check_fold(&t, OP_ceildiv, 7, 2, 4);
  check_fold(&t, OP_ceildiv, -7, 2, -3);
  check_fold(&t, OP_ceildiv, 7, -2, -3);
  check_fold(&t, OP_shr, -8, 1, -4);
  check_fold(&t, OP_shl, 3, 4, 48);
  check_fold(&t, OP_min, 3, -4, -4);
  check_fold(&t, OP_lt, 3, 4, 1);
  check_no_fold(&t, OP_floordiv, 1, 0);
  check_no_fold(&t, OP_floormod, 1, 0);
  check_no_fold(&t, OP_add, INT32_MAX, 1);
  check_no_fold(&t, OP_mul, 65536, 65536);
  check_no_fold(&t, OP_floordiv, INT32_MIN, -1);
  check_no_fold(&t, OP_shl, 1, 31);
  check_no_fold(&t, OP_shl, 1, 32);
  int64_t got;
  CHECK(c, !tir_const_int(tir_unary(&t.b, OP_neg, tir_int(&t.b, INT32_MIN)), &got));
  CHECK(c, tir_const_int(tir_cast(&t.b, DTYPE_i8, tir_int(&t.b, 200)), &got) && got == -56);
  CHECK(c, tir_const_int(tir_cast(&t.b, DTYPE_u8, tir_int(&t.b, -1)), &got) && got == 255);
  CHECK(c, tir_const_int(tir_cast(&t.b, DTYPE_i32, tir_float(&t.b, DTYPE_f32, -2.9)), &got) && got == -2);
  CHECK(c, tir_const_int(tir_cast(&t.b, DTYPE_i8, tir_float(&t.b, DTYPE_f32, 1e9)), &got) && got == 127);
}

static void test_floats(Checks *c, Arena *arena) {
  Bench t = bench_new(c, arena);
  double got;
  CHECK(c, fold_round(DTYPE_bf16, 1 + 1.0 / 256, &got) && got == 1);  // a tie goes to even
  CHECK(c, fold_round(DTYPE_bf16, 1 + 3.0 / 256, &got) && got == 1 + 4.0 / 256);
  CHECK(c, fold_round(DTYPE_f16, 65519, &got) && got == 65504);
  CHECK(c, fold_round(DTYPE_f16, 65520, &got) && got == INFINITY);
  CHECK(c, fold_round(DTYPE_f16, ldexp(1, -25), &got) && got == 0);  // half the least subnormal
  CHECK(c, fold_round(DTYPE_f16, ldexp(1.5, -25), &got) && got == ldexp(1, -24));
  CHECK(c, fold_round(DTYPE_e4m3, 17, &got) && got == 16);  // a tie
  CHECK(c, fold_round(DTYPE_e4m3, 1e9, &got) && got == 448);
  CHECK(c, fold_round(DTYPE_e5m2, -INFINITY, &got) && got == -57344);
  CHECK(c, fold_round(DTYPE_e5m2, ldexp(1, -17), &got) && got == 0);  // half the least subnormal
  CHECK(c, !fold_round(DTYPE_e2m1, 1, &got));
  TirValue *third = tir_float(&t.b, DTYPE_f32, 1.0 / 3);
  CHECK(c, tir_const_float(third, &got) && got == (double)(float)(1.0 / 3));
  CHECK(c, tir_const_float(tir_binary(&t.b, OP_mul, third, tir_float(&t.b, DTYPE_f32, 3)), &got) && got == 1);
  // x + 0 is not x for x = -0, so floats have no such identity.
  TirValue *x = tir_param(&t.b, intern(t.names, "x"), DTYPE_f32);
  CHECK(c, tir_binary(&t.b, OP_add, x, tir_float(&t.b, DTYPE_f32, 0)) != x);
  CHECK(c, !tir_const_float(tir_unary(&t.b, OP_exp, third), &got));
  CHECK(c, !tir_const_float(tir_binary(&t.b, OP_div, third, third), &got));
}

static void test_identities(Checks *c, Arena *arena) {
  Bench t = bench_new(c, arena);
  TirValue *x = tir_thread_idx(&t.b), *zero = tir_int(&t.b, 0), *one = tir_int(&t.b, 1);
  CHECK(c, tir_binary(&t.b, OP_add, x, zero) == x);
  CHECK(c, tir_binary(&t.b, OP_add, zero, x) == x);
  CHECK(c, tir_binary(&t.b, OP_mul, x, one) == x);
  CHECK(c, tir_binary(&t.b, OP_mul, x, zero) == zero);
  CHECK(c, tir_binary(&t.b, OP_floordiv, x, one) == x);
  CHECK(c, tir_binary(&t.b, OP_floormod, x, one) == zero);
  CHECK(c, tir_binary(&t.b, OP_floordiv, x, zero)->op->kind == OP_floordiv);
  CHECK(c, tir_unary(&t.b, OP_neg, tir_unary(&t.b, OP_neg, x)) == x);
  CHECK(c, tir_select(&t.b, tir_bool(&t.b, true), x, zero) == x);
  CHECK(c, tir_cast(&t.b, DTYPE_i32, x) == x);
}

// ---- hoisting

static void test_launch_block(Checks *c, Arena *arena) {
  Bench t = bench_new(c, arena);
  TirValue *m = tir_size(&t.b, intern(t.names, "M"));
  CHECK(c, m == tir_size(&t.b, intern(t.names, "M")));
  TirValue *tiles = tir_binary(&t.b, OP_ceildiv, m, tir_int(&t.b, 128));
  CHECK(c, tir_in_launch(tiles));
  CHECK(c, tiles == tir_binary(&t.b, OP_ceildiv, m, tir_int(&t.b, 128)));
  CHECK(c, tiles != tir_binary(&t.b, OP_ceildiv, m, tir_int(&t.b, 64)));
  CHECK(c, tir_int(&t.b, 1) != tir_int_typed(&t.b, DTYPE_i64, 1));
  TirValue *bx = tir_block_idx(&t.b, 0);
  CHECK(c, !tir_in_launch(bx) && !tir_in_launch(tir_binary(&t.b, OP_mul, bx, m)));
  tir_grid(&t.b, 1, &tiles);
  TirValue *tensor =
      tir_tensor(&t.b, intern(t.names, "A"), DTYPE_bf16, 2, (TirValue *[]){m, tir_int(&t.b, 64)});
  CHECK(c, tensor->type.shape[0] == DIM_DYNAMIC && tensor->type.shape[1] == 64);
  // Before an op of the launch block nothing may be used that stands after it.
  TirBuilder before = tir_builder_before(t.module, m->op);
  TirValue *early = tir_int(&before, 64);
  CHECK(c, early->op->next == m->op);
  CHECK(c, verified(&t));
}

static void test_views(Checks *c, Arena *arena) {
  Bench t = bench_new(c, arena);
  int64_t shape[] = {4, 64}, extents[] = {1, 64};
  TirValue *zero = tir_int(&t.b, 0), *stage = tir_thread_idx(&t.b);
  TirValue *buffer = tir_alloc(&t.b, intern(t.names, "S"), type_buffer(DTYPE_f32, SPACE_SHARED, 2, shape));
  CHECK(c, tir_view(&t.b, buffer, (TirValue *[]){zero, zero}, shape, 0) == buffer);
  TirValue *view = tir_view(&t.b, buffer, (TirValue *[]){stage, zero}, extents, 1);
  CHECK(c, view->type.rank == 1 && view->type.shape[0] == 64);
  CHECK(c, tir_root(view) == buffer);
  Layout layout = {.kind = LAYOUT_SHARED, .offset = -1};
  buffer->layout = &layout;
  CHECK(c, tir_layout(view) == &layout);
  CHECK(c, verified(&t));
}

// ---- thread dependence

static void test_thread_dependent(Checks *c, Arena *arena) {
  Bench t = bench_new(c, arena);
  TirBuilder *b = &t.b;
  TirValue *thread = tir_thread_idx(b), *block = tir_block_idx(b, 0), *one = tir_int(b, 1);
  CHECK(c, tir_thread_dependent(thread) && !tir_thread_dependent(block) && !tir_thread_dependent(one));
  CHECK(c, tir_thread_dependent(tir_binary(b, OP_add, block, thread)));
  TirValue *uniform = tir_cell(b, intern(t.names, "u"), DTYPE_i32, one);
  TirValue *by_value = tir_cell(b, intern(t.names, "v"), DTYPE_i32, one);
  TirValue *by_control = tir_cell(b, intern(t.names, "w"), DTYPE_i32, one);
  TirValue *by_one = tir_cell(b, intern(t.names, "x"), DTYPE_i32, one);
  TirValue *early = tir_get(b, by_value);
  tir_set(b, uniform, tir_binary(b, OP_add, tir_get(b, uniform), block));
  tir_set(b, by_value, thread);
  TirOp *branch = tir_if(b, tir_binary(b, OP_lt, thread, one));
  TirBuilder inside = tir_builder_at_end(t.module, branch->bodies[0], (Span){0, 0});
  tir_set(&inside, by_control, tir_int(b, 2));
  TirBuilder alone = tir_builder_at_end(t.module, tir_one_thread(b)->bodies[0], (Span){0, 0});
  tir_set(&alone, by_one, tir_int(b, 2));
  CHECK(c, !tir_thread_dependent(tir_get(b, uniform)));
  CHECK(c, tir_thread_dependent(tir_get(b, by_value)));
  CHECK(c, tir_thread_dependent(early));  // a loop may come back to it
  CHECK(c, tir_thread_dependent(tir_get(b, by_control)));
  CHECK(c, tir_thread_dependent(tir_get(b, by_one)));
  TirOp *loop = tir_for(b, LOOP_SERIAL, one, tir_get(b, by_value), one);
  CHECK(c, tir_thread_dependent(loop->results[0]));
  CHECK(c, !tir_thread_dependent(tir_for(b, LOOP_SERIAL, one, block, one)->results[0]));
  CHECK(c, tir_thread_dependent(tir_parallel(b, 1, &one)->results[0]));
  int64_t shape = 8;
  TirValue *shared = tir_alloc(b, NULL, type_buffer(DTYPE_i32, SPACE_SHARED, 1, &shape));
  TirValue *fragment = tir_alloc(b, NULL, type_buffer(DTYPE_i32, SPACE_FRAGMENT, 1, &shape));
  CHECK(c, !tir_thread_dependent(tir_load(b, shared, &one, 1)));
  CHECK(c, tir_thread_dependent(tir_load(b, shared, &thread, 1)));
  CHECK(c, tir_thread_dependent(tir_load(&inside, shared, &one, 1)));
  TirOp *parallel = tir_parallel(b, 1, &one);
  inside = tir_builder_at_end(t.module, parallel->bodies[0], (Span){0, 0});
  tir_store(&inside, fragment, parallel->results[0], parallel->results, 1);
  CHECK(c, !tir_thread_dependent(
               tir_load(b, fragment, &one, 1)));  // an iteration sets one element, in all threads
  CHECK(c, tir_thread_dependent(tir_load(&inside, fragment, &one, 1)));
  CHECK(c, tir_thread_dependent(tir_load(b, fragment, &thread, 1)));
  tir_store(b, fragment, thread, &one, 1);
  CHECK(c, tir_thread_dependent(tir_load(b, fragment, &one, 1)));
  // In a role only its own threads count, and what they themselves set.
  TirThreads warp = {32, 64};
  TirBuilder role = tir_builder_at_end(t.module, tir_role(b, warp)->bodies[0], (Span){0, 0});
  TirValue *of_role = tir_cell(b, NULL, DTYPE_i32, one);
  tir_set(&role, of_role, tir_int(b, 3));
  CHECK(c, !tir_thread_dependent(tir_get(&role, of_role)) && tir_thread_dependent(tir_get(b, of_role)));
  TirValue *warps = tir_binary(b, OP_floordiv, thread, tir_int(b, 32));
  CHECK(c, tir_thread_dependent(warps) && !tir_differs_among(warps, warp));
  CHECK(c, !tir_differs_among(thread, (TirThreads){7, 8}));
  TirThreads active = tir_active_threads(role.block);
  CHECK(c, active.lo == 32 && active.hi == 64 && tir_active_threads(b->block).hi == t.kernel->threads);
  // A value that is used twice at every step: the search must not double each time.
  TirValue *twice = block;
  for (int i = 0; i < 200; i++) twice = tir_binary(b, OP_add, twice, twice);
  CHECK(c, !tir_thread_dependent(twice));
}

// ---- clones and walks

static void test_clone(Checks *c, Arena *arena) {
  Bench t = bench_new(c, arena);
  TirValue *m = tir_size(&t.b, intern(t.names, "M"));
  TirValue *a = tir_tensor(&t.b, intern(t.names, "A"), DTYPE_f32, 1, &m);
  TirOp *loop = tir_for(&t.b, LOOP_PIPELINED, tir_int(&t.b, 0), m, tir_int(&t.b, 1));
  TirBuilder inside = tir_builder_at_end(t.module, loop->bodies[0], (Span){0, 0});
  tir_store(&inside, a, tir_load(&inside, a, loop->results, 1), loop->results, 1);
  TirGuard guard = {a, true};
  vec_push(arena, &t.kernel->guards, guard);
  const char *before = printed(&t);
  TirKernel *copy = tir_kernel_clone(t.module, t.kernel);
  CHECK(c, copy->guards.data[0].tensor != a && copy->guards.data[0].tensor->op->parent == copy->launch);
  CHECK(c, verified(&t));
  t.module->kernels.len = 1;
  t.module->kernels.data[0] = copy;
  CHECK_TEXT(c, printed(&t), before);
  TirBuilder again = tir_builder_at_end(t.module, copy->body, (Span){0, 0});
  CHECK(c,
        tir_size(&again, intern(t.names, "M")) == copy->launch->first->results[0]);  // found in a clone too
  tir_remove(copy->body->first);
  CHECK(c, !copy->body->first && !copy->body->last);
}

static bool remove_sync(void *context, TirOp *op) {
  ++*(int *)context;
  if (op->kind == OP_sync_threads) tir_remove(op);
  return true;
}

static void test_walk(Checks *c, Arena *arena) {
  Bench t = bench_new(c, arena);
  TirBuilder inside = tir_builder_at_end(t.module, tir_one_thread(&t.b)->bodies[0], (Span){0, 0});
  tir_op(&inside, OP_sync_threads, 0, NULL, 0, NULL);
  tir_op(&t.b, OP_sync_threads, 0, NULL, 0, NULL);
  tir_op(&t.b, OP_fence_proxy_async, 0, NULL, 0, NULL);
  int visited = 0;
  tir_walk(t.kernel->body, remove_sync, &visited);
  CHECK_INT(c, visited, 4);
  CHECK(c, t.kernel->body->first->next == t.kernel->body->last && !t.kernel->body->first->bodies[0]->first);
  CHECK(c, tir_inside(t.kernel->body->first, NULL) == false);
}

// ---- tables

static void check_slots(Checks *c, OpKind kind, const char *const *names) {
  const OpDef *def = op_def(kind);
  for (int i = 0; names[i]; i++) CHECK_INT(c, op_attr_index(def, names[i]), i);
}

#define SLOTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_tables(Checks *c) {
  for (int i = 0; i < OP_COUNT; i++) {
    const OpDef *def = op_def((OpKind)i);
    OpKind back;
    CHECK(c, op_lookup(str_of(def->name), &back) && (int)back == i);
    int operands = 0;
    while (operands < OP_MAX_OPERANDS && def->operands[operands].name) operands++;
    if (operands != def->noperands) CHECK_TEXT(c, def->name, "a row whose noperands counts its operands");
  }
  CHECK(c, op_def(OP_add)->group == GROUP_BINARY && op_def(OP_lt)->group == GROUP_COMPARE);
  CHECK(c, op_def(OP_exp)->group == GROUP_UNARY && op_def(OP_gemm)->group == GROUP_TILE);
  check_slots(c, OP_const, SLOTS("bits"));
  check_slots(c, OP_alloc, SLOTS("plain"));
  check_slots(c, OP_block_idx, SLOTS("dim"));
  check_slots(c, OP_block_count, SLOTS("dim"));
  check_slots(c, OP_for, SLOTS("kind", "stages"));
  check_slots(c, OP_role, SLOTS("lo", "hi", "arm"));
  check_slots(c, OP_sync_threads, SLOTS("id", "count"));
  check_slots(c, OP_mbar_expect_tx, SLOTS("arrive"));
  check_slots(c, OP_view, SLOTS("drop"));
  check_slots(c, OP_load, SLOTS("in_bounds"));
  check_slots(c, OP_store, SLOTS("in_bounds"));
  check_slots(c, OP_bulk_wait, SLOTS("pending", "read"));
  check_slots(c, OP_tmem_alloc, SLOTS("columns"));
  check_slots(c, OP_tmem_dealloc, SLOTS("columns"));
  check_slots(c, OP_copy, SLOTS("path", "map", "bounded"));
  check_slots(c, OP_fill, SLOTS("path"));
  check_slots(c, OP_gemm, SLOTS("path", "trans_a", "trans_b", "explicit"));
  int64_t attrs[OP_MAX_ATTRS] = {0};
  char letters[TYPE_MAX_RANK + 1];
  CHECK(c, op_operand_index(op_def(OP_gemm), 0, attrs, letters));
  CHECK_TEXT(c, letters, "mk");
  attrs[GEMM_trans_a] = 1;
  CHECK(c, op_operand_index(op_def(OP_gemm), 0, attrs, letters));
  CHECK_TEXT(c, letters, "km");
  CHECK(c, !op_operand_index(op_def(OP_gemm), 3, attrs, letters));
}

// ---- the reader

static const char sample[] = "kernel @k variant(tma) threads(128) facts(typed) {\n"
                             "  map 0 %A box [64, 64] swizzle 128 load\n"
                             "  guard %A load\n"
                             "launch:\n"
                             "  %M = size \"M\" : i32\n"
                             "  %A = tensor \"A\" %M, %M : bf16[?, ?] global\n"
                             "  %2 = const {bits = 0} : i32\n"
                             "  %3 = const {bits = 1} : i32\n"
                             "  %4 = const {bits = 1} : bool\n"
                             "  %5 = const {bits = 0.5} : f32\n"
                             "  check \"a \\\"b\\\" \\x41\" %4\n"
                             "body:\n"
                             "  %S = alloc \"S\" : bf16[64, 64] shared @ shared 128B +1024\n"
                             "  %F = alloc \"F\" : f32[128] fragment @ frag t(128:1) r()\n"
                             "  %b = alloc_barrier \"b\" [1, 2] : u64[2] barrier\n"
                             "  %k.9 = for %2, %M, %3 {kind = pipelined, stages = 3} : i32 {\n"
                             "    %10 = view %A, %k.9, %2 : bf16[64, 64] global\n"
                             "    %11 = copy %10, %S, _ {path = tma_load, map = 0} : token\n"
                             "    if %4 {\n"
                             "    } else {\n"
                             "      wait %11\n"
                             "    }\n"
                             "  }\n"
                             "}\n";

// Any bytes: a module or a diagnostic, never a crash; what reads as valid prints as something that reads
// back.
static void read_bytes(Checks *c, const char *text, size_t len) {
  Arena *arena = arena_new();
  Interner *names = interner_new(arena);
  const Source *source = source_from_text(arena, "test.tir", text, (uint32_t)len);
  Diags *ds = diags_new(arena, source);
  TirModule *module = tir_parse(arena, names, source, ds);
  if (!module) {
    CHECK(c, diags_errors(ds) > 0);
  } else if (tir_verify(module, ds)) {
    TextBuf out = {.arena = arena}, again = {.arena = arena};
    tir_print(&out, module);
    const Source *second = source_from_text(arena, "test.tir", out.data, (uint32_t)out.len);
    TirModule *reread = tir_parse(arena, names, second, ds);
    if (CHECK(c, reread != NULL)) {
      tir_print(&again, reread);
      CHECK_TEXT(c, again.data, out.data);
    }
  }
  arena_free(arena);
}

static uint32_t next_random(uint32_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static void mutate(char *text, size_t *len, uint32_t *random) {
  static const char spice[] = "%.{}[]():,=@\"\\#-?_0129axe\n \x80";
  size_t at = next_random(random) % *len, span = next_random(random) % 12;
  switch (next_random(random) % 4) {
  case 0:
    text[at] = spice[next_random(random) % (sizeof spice - 1)];
    break;
  case 1:  // delete
    if (span > *len - at) span = *len - at;
    if (span == *len) return;
    memmove(text + at, text + at + span, *len - at - span);
    *len -= span;
    break;
  case 2:  // cut off
    *len = at + 1;
    break;
  case 3:  // copy a piece over another
    if (at + span > *len) return;
    memmove(text + next_random(random) % (*len - span + 1), text + at, span);
    break;
  }
}

static void test_mutations(Checks *c) {
  const char *many = getenv("TILE_TEST_LONG");
  int rounds = many && *many == '1' ? 200000 : 4000;
  uint32_t random = 12345;
  char text[sizeof sample];
  for (int i = 0; i < rounds; i++) {
    size_t len = sizeof sample - 1;
    memcpy(text, sample, sizeof sample);
    for (uint32_t n = 1 + next_random(&random) % 3; n > 0; n--) mutate(text, &len, &random);
    text[len] = 0;
    if (memchr(text, 0, len)) continue;
    read_bytes(c, text, len);
  }
}

static void test_nesting(Checks *c) {
  static const char open[] = "one_thread {\n", head[] = "kernel @k threads(1) {\nlaunch:\nbody:\n";
  size_t depth = 100000, len = sizeof head - 1 + depth * (sizeof open - 1);
  char *text = malloc(len + 1);
  memcpy(text, head, sizeof head);
  for (size_t i = 0; i < depth; i++)
    memcpy(text + sizeof head - 1 + i * (sizeof open - 1), open, sizeof open);
  text[len] = 0;
  read_bytes(c, text, len);
  free(text);
}

int main(void) {
  Checks checks = {0};
  Arena *arena = arena_new();
  test_tables(&checks);
  test_integers(&checks, arena);
  test_floats(&checks, arena);
  test_identities(&checks, arena);
  test_launch_block(&checks, arena);
  test_views(&checks, arena);
  test_thread_dependent(&checks, arena);
  test_clone(&checks, arena);
  test_walk(&checks, arena);
  test_mutations(&checks);
  test_nesting(&checks);
  arena_free(arena);
  return check_report(&checks);
}
