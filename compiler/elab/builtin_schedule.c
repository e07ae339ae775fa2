// Which block computes which tiles: loops over the tiles of a worker, tile schedulers, the order of blocks.
//
// All of them walk a domain of tiles in groups (tir/tiles.h), so that workers that run at the same time read the same rows
// and columns.
#include "elab/elab_internal.h"

#include <inttypes.h>
#include <string.h>

#include "tir/ranges.h"
#include "tir/tiles.h"

enum { MAX_GROUP = 65535, MAX_CLUSTER = 16 };

struct Scheduler {
  TirValue *fast, *slow, *total;  // extents of the domain, and their product
  TirValue *group, *workers;
  int64_t swizzle_size, cluster_size;
  bool column_major;
  TirValue *m, *n, *linear, *iteration;  // cells; NULL without state
};

static bool given(const Value *value) {
  return value->kind != VALUE_ABSENT && value->kind != VALUE_NONE;
}

static TirValue *op(Elab *e, OpKind kind, TirValue *a, TirValue *b) {
  return tir_binary(&e->b, kind, a, b);
}

// A number of workers or tiles that must be at least 1: refused now, or at launch.
static bool check_positive(Elab *e, TirValue *value, Span span, const char *what) {
  int64_t number;
  if (tir_known_range(value).lo >= 1) return true;
  if (tir_const_int(value, &number)) {
    diag_error(e->ds, DIAG_value_kind, span, "%s is %" PRId64 "; it must be at least 1", what, number);
    return false;
  }
  if (tir_in_launch(value))
    launch_check(e, op(e, OP_ge, value, tir_int(&e->b, 1)), span,
                 text_printf(e->arena, "%s must be at least 1", what));
  return true;
}

// ---- Persistent

static Value boxed_value(Elab *e, TirValue *value) {
  int64_t number;
  (void)e;
  return tir_const_int(value, &number) ? value_int(number) : value_staged(value);
}

static Value *box(Elab *e, TirValue *value) {
  Value *out = ARENA_NEW(e->arena, Value);
  *out = boxed_value(e, value);
  return out;
}

static TirValue *unbox(Elab *e, const Value *value) {
  return value->kind == VALUE_INT ? tir_int(&e->b, value->integer) : value->staged;
}

// The extents as numbers, and their product. False: reported.
static bool read_domain(Elab *e, const Call *call, LoopSpec *spec, TirValue **total) {
  const Value *items;
  if (!need_items(e, &call->args[0], &items, &spec->nextents)) return false;
  if (spec->nextents < 1 || spec->nextents > TYPE_MAX_RANK) {
    diag_error(e->ds, DIAG_value_kind, call->spans[0], "a domain has 1 to %d dimensions, not %d",
               TYPE_MAX_RANK, spec->nextents);
    return false;
  }
  spec->extents = ARENA_ARRAY(e->arena, Value, spec->nextents);
  *total = tir_int(&e->b, 1);
  for (int i = 0; i < spec->nextents; i++) {
    TirValue *extent = staged_index(e, &items[i], call->spans[0], "an extent of Persistent");
    if (!extent) return false;
    spec->extents[i] = boxed_value(e, extent);
    *total = op(e, OP_mul, *total, extent);
  }
  return true;
}

static TirValue *read_group(Elab *e, const Call *call) {
  TirValue *most = tir_int(&e->b, MAX_GROUP);
  if (!given(&call->args[3])) return tir_int(&e->b, call->args[3].kind == VALUE_NONE ? 1 : 8);
  TirValue *group = staged_index(e, &call->args[3], call->spans[3], "group_size");
  if (!group || !check_positive(e, group, call->spans[3], "group_size")) return NULL;
  if (tir_known_range(group).lo >= 1 && tir_known_range(group).hi <= MAX_GROUP) return group;
  return op(e, OP_max, op(e, OP_min, group, most), tir_int(&e->b, 1));
}

static Value run_persistent(Elab *e, const Call *call) {
  LoopSpec *spec = ARENA_NEW(e->arena, LoopSpec);
  TirValue *total;
  if (!elab_placed(e, call->span, "Persistent", false)) return value_poison();
  e->b.span = call->span;
  if (!read_domain(e, call, spec, &total)) return value_poison();
  TirValue *wave = staged_index(e, &call->args[1], call->spans[1], "wave_size");
  TirValue *index = wave ? staged_index(e, &call->args[2], call->spans[2], "index") : NULL;
  TirValue *group = index ? read_group(e, call) : NULL;
  if (!group || !check_positive(e, wave, call->spans[1], "wave_size")) return value_poison();
  spec->persistent = true;
  spec->lo = box(e, index);
  spec->hi = box(e, total);
  spec->step = box(e, tir_known_range(wave).lo >= 1 ? wave : op(e, OP_max, wave, tir_int(&e->b, 1)));
  spec->group = box(e, group);
  return (Value){.kind = VALUE_LOOP, .loop = spec};
}

// The last dimension is the slow one; the others, in row-major order, are the fast one.
void schedule_coordinates(Elab *e, const LoopSpec *loop, TirValue *tile, TirValue **out) {
  int last = loop->nextents - 1;
  TirValue *fast = tir_int(&e->b, 1), *rest;
  for (int i = 0; i < last; i++) fast = op(e, OP_mul, fast, unbox(e, &loop->extents[i]));
  if (last == 0) {
    out[0] = tile;
    return;
  }
  tir_tile_at(&e->b, tile, fast, unbox(e, &loop->extents[last]), unbox(e, loop->group), &rest, &out[last]);
  for (int i = last - 1; i > 0; i--) {
    TirValue *extent = unbox(e, &loop->extents[i]);
    out[i] = op(e, OP_truncmod, rest, extent);
    rest = op(e, OP_truncdiv, rest, extent);
  }
  out[0] = rest;
}

// ---- PersistentTileScheduler

enum { ARG_m, ARG_n, ARG_workers, ARG_swizzle, ARG_column_major, ARG_cluster, ARG_stateful, ARG_name };

static bool option(Elab *e, const Call *call, int arg, const char *what, int64_t most, int64_t *out) {
  if (!given(&call->args[arg])) return true;
  if (!need_int(e, &call->args[arg], call->spans[arg], what, out)) return false;
  if (*out >= 1 && *out <= most) return true;
  diag_error(e->ds, DIAG_value_kind, call->spans[arg], "%s is %" PRId64 "; legal are 1 to %" PRId64, what,
             *out, most);
  return false;
}

static bool flag(Elab *e, const Call *call, int arg, const char *what, bool *out) {
  return !given(&call->args[arg]) || need_bool(e, &call->args[arg], call->spans[arg], what, out);
}

static TirValue *state(Elab *e, const char *prefix, const char *name) {
  const char *full = prefix ? text_printf(e->arena, "%s_%s", prefix, name) : name;
  return tir_cell(&e->b, intern(e->names, full), DTYPE_i32, tir_int(&e->b, 0));
}

static bool make_state(Elab *e, const Call *call, Scheduler *out) {
  Str name = {"", 0};
  if (given(&call->args[ARG_name]) &&
      !need_string(e, &call->args[ARG_name], call->spans[ARG_name], "name", &name))
    return false;
  const char *prefix = name.len ? text_printf(e->arena, "%.*s", (int)name.len, name.data) : NULL;
  out->m = state(e, prefix, "m_idx");
  out->n = state(e, prefix, "n_idx");
  out->linear = state(e, prefix, "linear_idx");
  out->iteration = state(e, prefix, "current_iter");
  return true;
}

static bool read_workers(Elab *e, const Call *call, Scheduler *out) {
  TirValue *cluster = tir_int(&e->b, out->cluster_size);
  if (!given(&call->args[ARG_workers])) {
    out->workers = op(e, OP_floordiv, tir_sm_count(&e->b), cluster);
    return check_positive(e, out->workers, call->span, "the number of clusters that the device holds");
  }
  out->workers = staged_index(e, &call->args[ARG_workers], call->spans[ARG_workers], "num_workers");
  return out->workers && check_positive(e, out->workers, call->spans[ARG_workers], "num_workers");
}

// Clusters group tiles along m; the domain is then one of clusters.
static Value run_scheduler(Elab *e, const Call *call) {
  Scheduler *out = ARENA_NEW(e->arena, Scheduler);
  bool stateful = true;
  *out = (Scheduler){.swizzle_size = 1, .cluster_size = 1, .column_major = true};
  if (!elab_placed(e, call->span, "PersistentTileScheduler", false)) return value_poison();
  e->b.span = call->span;
  TirValue *m = staged_index(e, &call->args[ARG_m], call->spans[ARG_m], "num_m_tiles");
  TirValue *n = m ? staged_index(e, &call->args[ARG_n], call->spans[ARG_n], "num_n_tiles") : NULL;
  if (!n || !option(e, call, ARG_swizzle, "swizzle_size", MAX_GROUP, &out->swizzle_size) ||
      !option(e, call, ARG_cluster, "cluster_size", MAX_CLUSTER, &out->cluster_size) ||
      !flag(e, call, ARG_column_major, "column_major", &out->column_major) ||
      !flag(e, call, ARG_stateful, "stateful", &stateful) || !read_workers(e, call, out))
    return value_poison();
  TirValue *clusters = op(e, OP_ceildiv, m, tir_int(&e->b, out->cluster_size));
  out->fast = out->column_major ? clusters : n;
  out->slow = out->column_major ? n : clusters;
  e->b.span = span_join(call->spans[ARG_m], call->spans[ARG_n]);
  out->total = op(e, OP_mul, clusters, n);
  e->b.span = call->span;
  out->group = tir_int(&e->b, out->swizzle_size);
  if (stateful && !make_state(e, call, out)) return value_poison();
  return (Value){.kind = VALUE_SCHEDULER, .scheduler = out};
}

static void coordinates(Elab *e, const Scheduler *s, TirValue *tile, TirValue **m, TirValue **n) {
  if (s->column_major)
    tir_tile_at(&e->b, tile, s->fast, s->slow, s->group, m, n);
  else
    tir_tile_at(&e->b, tile, s->fast, s->slow, s->group, n, m);
}

static bool has_state(Elab *e, const Call *call) {
  if (!elab_placed(e, call->span, call->builtin->name, false)) return false;
  e->b.span = call->span;
  if (call->self.scheduler->linear) return true;
  diag_error(e->ds, DIAG_value_kind, call->span, "'%s' needs the state that stateful=False leaves out",
             call->builtin->name);
  diag_hint(e->ds, "use coord(tile), or leave out stateful=False");
  return false;
}

static void move_to(Elab *e, const Scheduler *s, TirValue *tile) {
  TirValue *m, *n;
  coordinates(e, s, tile, &m, &n);
  tir_set(&e->b, s->linear, tile);
  tir_set(&e->b, s->m, m);
  tir_set(&e->b, s->n, n);
}

static Value method_init(Elab *e, const Call *call) {
  const Scheduler *s = call->self.scheduler;
  if (!has_state(e, call)) return value_poison();
  TirValue *worker = staged_index(e, &call->args[0], call->spans[0], "worker_id");
  if (!worker) return value_poison();
  tir_set(&e->b, s->iteration, tir_int(&e->b, 0));
  move_to(e, s, worker);
  return value_none();
}

static Value method_next_tile(Elab *e, const Call *call) {
  const Scheduler *s = call->self.scheduler;
  if (!has_state(e, call)) return value_poison();
  tir_set(&e->b, s->iteration, op(e, OP_add, tir_get(&e->b, s->iteration), tir_int(&e->b, 1)));
  move_to(e, s, op(e, OP_add, tir_get(&e->b, s->linear), s->workers));
  return value_none();
}

static Value method_valid(Elab *e, const Call *call) {
  const Scheduler *s = call->self.scheduler;
  if (!has_state(e, call)) return value_poison();
  return value_staged(op(e, OP_lt, tir_get(&e->b, s->linear), s->total));
}

static Value method_coord(Elab *e, const Call *call) {
  TirValue *m, *n, *tile = staged_index(e, &call->args[0], call->spans[0], "tile_id");
  if (!tile) return value_poison();
  e->b.span = call->span;
  coordinates(e, call->self.scheduler, tile, &m, &n);
  Value items[] = {boxed_value(e, m), boxed_value(e, n)};
  return value_sequence(e->arena, VALUE_TUPLE, e->region, items, 2);
}

Value scheduler_attribute(Elab *e, const Scheduler *s, const char *name) {
  const struct {
    const char *name;
    TirValue *cell;
  } cells[] = {{"m_idx", s->m}, {"n_idx", s->n}, {"linear_idx", s->linear}, {"current_iter", s->iteration}};
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
    if (cells[i].cell && strcmp(name, cells[i].name) == 0) return value_staged(tir_get(&e->b, cells[i].cell));
  if (strcmp(name, "num_workers") == 0) return boxed_value(e, s->workers);
  if (strcmp(name, "swizzle_size") == 0) return value_int(s->swizzle_size);
  if (strcmp(name, "cluster_size") == 0) return value_int(s->cluster_size);
  return (Value){.kind = VALUE_ABSENT};
}

// ---- the order of blocks

const TirOp *schedule_grid(const Elab *e) {
  for (const TirOp *at = e->kernel->launch->first; at; at = at->next)
    if (at->kind == OP_grid) return at;
  return NULL;
}

static bool read_order(Elab *e, const Call *call, BlockOrder *out) {
  Str order = str_of("row");
  if (given(&call->args[1]) && !need_string(e, &call->args[1], call->spans[1], "order", &order)) return false;
  *out = str_is(order, "column") ? BLOCKS_BY_COLUMNS : BLOCKS_BY_ROWS;
  if (str_is(order, "row") || str_is(order, "column")) return true;
  diag_error(e->ds, DIAG_value_kind, call->spans[1], "order is \"%.*s\"; legal are \"row\" and \"column\"",
             (int)order.len, order.data);
  return false;
}

void schedule_check_count(Elab *e, TirValue *blocks, Span span, const char *what) {
  TirValue *fits = op(e, OP_le, blocks, tir_int(&e->b, INT32_MAX));
  int64_t known;
  if (tir_const_int(fits, &known) && !known)
    diag_error(e->ds, DIAG_value_kind, span, "%s numbers fewer than 2^31 blocks; this grid has more", what);
  else if (!tir_const_int(fits, &known))
    launch_check(e, fits, span, text_printf(e->arena, "%s numbers fewer than 2^31 blocks", what));
}

// Blocks are numbered by 32 bits, and so are those of a panel.
static void check_block_count(Elab *e, Span span, int64_t panel, BlockOrder order) {
  const TirOp *grid = schedule_grid(e);
  if (!grid || grid->nargs < 2) return;
  TirValue *length = grid->args[order == BLOCKS_BY_ROWS ? 0 : 1];
  schedule_check_count(e, op(e, OP_mul, grid->args[0], grid->args[1]), span, "use_swizzle");
  schedule_check_count(e, op(e, OP_mul, length, tir_int(&e->b, panel)), span, "use_swizzle");
}

static Value run_use_swizzle(Elab *e, const Call *call) {
  int64_t panel;
  bool enable = true;
  BlockOrder order;
  if (!elab_placed(e, call->span, "use_swizzle", false) ||
      !need_int(e, &call->args[0], call->spans[0], "panel_size", &panel) || !read_order(e, call, &order) ||
      !flag(e, call, 2, "enable", &enable) || !enable)
    return value_none();
  if (panel < 1 || panel > MAX_GROUP)
    diag_error(e->ds, DIAG_value_kind, call->spans[0], "panel_size is %" PRId64 "; legal are 1 to %d", panel,
               MAX_GROUP);
  else if (e->kernel->block_order)
    diag_error(e->ds, DIAG_kernel_form, call->span, "use_swizzle stands twice in this kernel");
  if (panel < 1 || panel > MAX_GROUP || e->kernel->block_order) return value_none();
  e->b.span = call->span;
  e->kernel->block_order = order;
  e->kernel->panel = (int)panel;
  check_block_count(e, call->span, panel, order);
  return value_none();
}

static Value run_get_num_sms(Elab *e, const Call *call) {
  e->b.span = call->span;
  return value_staged(tir_sm_count(&e->b));
}

const Builtin builtins_schedule[] = {
    {"Persistent", "domain wave_size index group_size?", run_persistent},
    {"PersistentTileScheduler",
     "num_m_tiles num_n_tiles num_workers? swizzle_size? column_major? cluster_size? stateful? name?",
     run_scheduler},
    {"use_swizzle", "panel_size order? enable?", run_use_swizzle},
    {"get_num_sms", "device~", run_get_num_sms},
    {NULL, NULL, NULL},
};

const Builtin builtins_scheduler[] = {
    {"init", "worker_id", method_init},
    {"next_tile", "", method_next_tile},
    {"valid", "", method_valid},
    {"coord", "tile_id", method_coord},
    {NULL, NULL, NULL},
};
