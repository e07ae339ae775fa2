// Layouts of fragments as a small constraint problem. Fragments and the iteration spaces of Parallel loops are
// nodes. An access F[i, j] in a loop over (i, j), or a copy between fragments, wants two nodes to have one layout. An
// access G[j], or a reduction into G, wants G's layout to be a projection. Fixed are fragments that TMEM is copied
// to or from (there the hardware says who holds what) and those whose elements are used one by one, by every thread
// (replicated). What nothing fixes is spread flat, or by rows or blocks where more of the other wishes come true. A
// wish that is not granted costs a way through shared memory (fragment_staging.c), never a wrong answer.
#include "passes/fragment_layouts.h"

#include "passes/hazards.h"
#include "passes/thread_groups.h"

typedef struct {
  TirValue *value;  // an alloc's result, or the first variable of a Parallel loop
  Type type;
  int parent;         // union-find
  const TirOp *seed;  // the op for which hardware says who holds what: a copy of TMEM, an MMA on registers
  bool every;         // every thread must hold every element
  bool known;         // of a group's representative: layout is decided
  Layout layout;
} Node;

// `part` should be the projection of `over` on some dimensions.
typedef struct {
  int over, part;  // nodes
  int dims[TYPE_MAX_RANK], ndims;
  bool reduction;  // else an access in a Parallel loop
  bool failed;     // there is no such layout
} Projection;

typedef struct {
  PassCx *cx;
  int threads;
  VEC(Node) nodes;
  VEC(Projection) projections;
  bool ok;
} Solver;

FragmentAccess fragment_access(const TirOp *parallel, const TirOp *access) {
  FragmentAccess found = {.kind = ACCESS_PROJECTION};
  int first = access->kind == OP_store ? 2 : 1;
  const Type *type = &access->args[0]->type;
  unsigned seen = 0;
  for (int d = 0; d < type->rank; d++) {
    const TirValue *index = access->args[first + d];
    int64_t number;
    if (type->shape[d] == 1 && tir_const_int(index, &number) && number == 0) continue;
    if (index->op != parallel || seen >> index->index & 1) return (FragmentAccess){.kind = ACCESS_ANY};
    seen |= 1u << index->index;
    if (!tir_const_int(parallel->args[index->index], &number) || number != type->shape[d])
      found.kind = ACCESS_ANY;
    found.dims[found.ndims++] = index->index;
  }
  if (found.kind == ACCESS_ANY || found.ndims == 0) return (FragmentAccess){.kind = ACCESS_ANY};
  bool identity = found.ndims == parallel->nresults;
  for (int i = 0; i < found.ndims; i++) identity = identity && found.dims[i] == i;
  if (identity) found.kind = ACCESS_IDENTITY;
  return found;
}

bool fragment_access_constant(const TirOp *access) {
  int64_t number;
  for (int i = access->kind == OP_store ? 2 : 1; i < access->nargs; i++)
    if (!tir_const_int(access->args[i], &number)) return false;
  return true;
}

Type fragment_loop_type(const TirOp *parallel) {
  int64_t shape[TYPE_MAX_RANK] = {0};
  for (int i = 0; i < parallel->nresults; i++)
    if (!tir_const_int(parallel->args[i], &shape[i])) shape[i] = DIM_DYNAMIC;
  return type_buffer(DTYPE_f32, SPACE_FRAGMENT, parallel->nresults, shape);
}

bool fragment_access_fits(const TirOp *parallel, const TirOp *access) {
  const Layout *loop = parallel->results[0]->layout, *part = access->args[0]->layout;
  FragmentAccess found = fragment_access(parallel, access);
  Type shape = fragment_loop_type(parallel);
  Layout wanted;
  if (access->kind == OP_load && fragment_access_constant(access)) return layout_held_whole(part);
  if (!loop || found.kind == ACCESS_ANY) return false;
  if (found.kind == ACCESS_IDENTITY) return layout_equal(loop, part);
  return layout_project(loop, &shape, found.dims, found.ndims, &wanted) && layout_equal(&wanted, part);
}

static int find_group(Solver *s, int node) {
  while (s->nodes.data[node].parent != node) node = s->nodes.data[node].parent;
  return node;
}

static int node_of(Solver *s, TirValue *value, Type type) {
  for (int i = 0; i < s->nodes.len; i++)
    if (s->nodes.data[i].value == value) return i;
  Node node = {.value = value, .type = type, .parent = s->nodes.len};
  vec_push(s->cx->scratch, &s->nodes, node);
  return s->nodes.len - 1;
}

static int fragment_number(Solver *s, TirValue *fragment) {
  return node_of(s, fragment, fragment->type);
}

// Valid until the next node is made.
static Node *fragment_node(Solver *s, TirValue *fragment) {
  int number = fragment_number(s, fragment);
  return &s->nodes.data[number];
}

static int loop_number(Solver *s, TirOp *parallel) {
  return node_of(s, parallel->results[0], fragment_loop_type(parallel));
}

static bool whole_fragment(const TirValue *value) {
  return tile_is_fragment(value) && value->op->kind == OP_alloc;
}

// ---- fixed layouts

static bool element_access(const TirOp *op) {
  return tile_is_element(op) && tile_is_fragment(op->args[0]);
}

enum { FEW = 64 };  // elements that every thread may as well hold

// Elements used outside of Parallel are used by every thread; so are those at constant places in it.
static bool wants_every(TirOp *op) {
  bool few = type_elements(&op->args[0]->type) <= FEW, stores = op->kind == OP_store;
  if (!tile_outermost(op, OP_parallel)) return few || stores;
  return few && !stores && fragment_access_constant(op);
}

static void find_replicated(Solver *s, TirOpList ops) {
  for (int i = 0; i < ops.len; i++)
    if (element_access(ops.data[i]) && wants_every(ops.data[i]))
      fragment_node(s, ops.data[i]->args[0])->every = true;
}

static void seed(Solver *s, TirValue *fragment, const TirOp *op) {
  if (!tile_is_fragment(fragment) || !whole_fragment(fragment)) return;
  Node *node = fragment_node(s, fragment);
  if (!node->seed) node->seed = op;
}

static void find_seeds(Solver *s, TirOpList ops) {
  for (int i = 0; i < ops.len; i++) {
    const TirOp *op = ops.data[i];
    TirValue *src, *dst;
    for (int a = 0; a < op->nargs && op_path(op) == PATH_WGMMA; a++) seed(s, op->args[a], op);
    bool through_tmem = op_path(op) == PATH_TMEM_LOAD || op_path(op) == PATH_TMEM_STORE;
    if (!through_tmem || !tile_move(op, &src, &dst)) continue;
    seed(s, tile_is_fragment(src) ? src : dst, op);
  }
}

// Rows of a TMEM access (PTX ISA 9.7.16.8.1): warp w mod 4 reaches lanes 32 w to 32 w + 31.
enum { LANES = 128 };

// Every access to TMEM by threads needs whole groups of four warps.
static void check_threads(Solver *s, TirOpList ops) {
  for (int i = 0; i < ops.len && s->threads % LANES; i++) {
    const TirOp *op = ops.data[i];
    if (op_path(op) != PATH_TMEM_LOAD && op_path(op) != PATH_TMEM_STORE) continue;
    diag_error(
        s->cx->ds, DIAG_fragment_threads, op->span,
        "threads=%d does not suit an access to TMEM: each group of 4 warps covers the %d lanes, so threads "
        "is a multiple of %d",
        s->threads, LANES, LANES);
    s->ok = false;
    return;
  }
}

// TMEM is written in words of 32 bits, which narrower elements share.
static bool fills_words(const Type *type, const Layout *row) {
  return row->nregister_modes == 0 ? dtype_bits(type->dtype) >= 32
                                   : row->reg[0].extent * dtype_bits(type->dtype) % 32 == 0;
}

// Warpgroups that share the columns of an accumulator would each need all of A.
static bool seed_mma(Solver *s, const Node *node, Layout *out) {
  const Type *type = &node->type;
  bool whole_rows = type->rank == 2 && type->shape[0] >= (int64_t)s->threads / LANES * (LANES / 2);
  bool accumulates = false;
  for (int i = 0; i < node->seed->nargs; i++)
    accumulates |= node->seed->args[i] == node->value && tile_access(node->seed, i) == ACCUMULATES;
  if ((accumulates || whole_rows) && layout_mma(type, s->threads, out)) return true;
  s->ok = false;
  diag_error(s->cx->ds, DIAG_fragment_threads, node->seed->span,
             "threads=%d does not suit %s of %lld x %lld in registers: warpgroups of %d threads share its "
             "blocks of %d rows evenly%s",
             s->threads, tir_buffer_name(node->value), (long long)type->shape[0], (long long)type->shape[1],
             LANES, LANES / 2, accumulates ? ", or its columns in multiples of 8" : "");
  return false;
}

static bool seed_layout(Solver *s, const Node *node, Layout *out) {
  const Type *type = &node->type;
  if (op_path(node->seed) == PATH_WGMMA) return seed_mma(s, node, out);
  if (layout_row(type, s->threads, out) && fills_words(type, out)) return true;
  s->ok = false;
  bool half = type->rank == 2 && type->shape[0] == LANES / 2;
  bool quarter = type->rank == 2 && type->shape[0] == LANES / 4;
  if (type->rank != 2 || (type->shape[0] % LANES && !half && !quarter))
    diag_error(s->cx->ds, DIAG_tmem_rows, node->seed->span,
               "%s has %lld rows; TMEM is copied in %d or %d rows or multiples of %d",
               tir_buffer_name(node->value), (long long)type->shape[0], LANES / 4, LANES / 2, LANES);
  else
    diag_error(s->cx->ds, DIAG_fragment_threads, node->seed->span,
               "threads=%d does not suit a fragment of %lld columns: %d groups of 4 warps share the columns "
               "evenly%s%s",
               s->threads, (long long)type->shape[1], s->threads / LANES,
               half      ? ", and with 64 rows the halves of a warp do"
               : quarter ? ", and with 32 rows the warps do"
                         : "",
               dtype_bits(type->dtype) < 32 ? ", in whole words of 32 bits" : "");
  return false;
}

static void decide(Solver *s, int group, Layout layout) {
  s->nodes.data[group].known = true;
  s->nodes.data[group].layout = layout;
}

static void decide_fixed(Solver *s) {
  for (int i = 0; i < s->nodes.len; i++) {
    Node *node = &s->nodes.data[i];
    Layout layout;
    if (node->seed && !seed_layout(s, node, &layout)) return;
    if (node->every) layout = layout_replicated(&node->type, s->threads);
    if (node->seed || node->every) decide(s, i, layout);
  }
}

// ---- wishes

// Two groups become one, unless both are decided and differ.
static void join_groups(Solver *s, int a, int b) {
  a = find_group(s, a), b = find_group(s, b);
  Node *first = &s->nodes.data[a < b ? a : b], *second = &s->nodes.data[a < b ? b : a];
  if (a == b || (first->known && second->known && !layout_equal(&first->layout, &second->layout))) return;
  if (second->known) {
    first->known = true;
    first->layout = second->layout;
  }
  second->parent = a < b ? a : b;
}

static void add_projection(Solver *s, int over, int part, const int *dims, int ndims, bool reduction) {
  Projection projection = {.over = over, .part = part, .ndims = ndims, .reduction = reduction};
  for (int i = 0; i < ndims; i++) projection.dims[i] = dims[i];
  vec_push(s->cx->scratch, &s->projections, projection);
}

// Whether iterations differ in variables that do not index.
static bool meets_itself(const TirOp *parallel, const FragmentAccess *access) {
  int64_t all = 1, used = 1, extent;
  for (int i = 0; i < parallel->nresults; i++) all *= tir_const_int(parallel->args[i], &extent) ? extent : 2;
  for (int i = 0; i < access->ndims; i++)
    used *= tir_const_int(parallel->args[access->dims[i]], &extent) ? extent : 1;
  return all != used;
}

static void add_access(Solver *s, TirOp *op) {
  TirValue *fragment = op->args[0];
  TirOp *parallel = tile_outermost(op, OP_parallel);
  if (!parallel || fragment_node(s, fragment)->every) return;
  FragmentAccess access = fragment_access(parallel, op);
  if (access.kind == ACCESS_IDENTITY) {
    join_groups(s, loop_number(s, parallel), fragment_number(s, fragment));
  } else if (access.kind == ACCESS_PROJECTION && op->kind == OP_store && meets_itself(parallel, &access)) {
    diag_error(s->cx->ds, DIAG_fragment_access, op->span,
               "%s: several iterations of the Parallel loop store to the same element",
               tir_buffer_name(fragment));
    s->ok = false;
  } else if (access.kind == ACCESS_PROJECTION) {
    add_projection(s, loop_number(s, parallel), fragment_number(s, fragment), access.dims, access.ndims,
                   false);
  }
}

static void add_reduction(Solver *s, const TileReduction *r) {
  if (!tile_is_fragment(r->src) || !tile_is_fragment(r->dst)) return;
  add_projection(s, fragment_number(s, r->src), fragment_number(s, r->dst), r->kept, r->nkept, true);
}

static void add_wishes(Solver *s, TirOpList ops) {
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    TirValue *src, *dst;
    TileReduction reduction;
    if (op->kind == OP_alloc && tile_is_fragment(op->results[0])) fragment_number(s, op->results[0]);
    if (element_access(op)) add_access(s, op);
    if (tile_reduction(op, &reduction)) add_reduction(s, &reduction);
    if (tile_move(op, &src, &dst) && whole_fragment(src) && whole_fragment(dst))
      join_groups(s, fragment_number(s, src), fragment_number(s, dst));
  }
}

// ---- solution

// Results that most threads would hold are better spread: they are many, and come through shared memory anyway.
static bool is_wasteful(Solver *s, const Projection *p, const Layout *layout) {
  enum { MANY = 16, TIMES = 4 };
  Layout flat = layout_flat(&s->nodes.data[p->part].type, s->threads);
  int64_t registers = layout_registers(layout);
  return p->reduction && registers > MANY && registers > TIMES * layout_registers(&flat);
}

static bool project(Solver *s, const Projection *p, const Layout *over, Layout *out) {
  const Type *shape = &s->nodes.data[p->over].type;
  return type_is_static(shape) && layout_project(over, shape, p->dims, p->ndims, out) &&
         !is_wasteful(s, p, out);
}

// From nodes whose layout is known to the fragments that follow them with some of their dimensions.
static void propagate(Solver *s) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < s->projections.len; i++) {
      Projection *p = &s->projections.data[i];
      int over = find_group(s, p->over), part = find_group(s, p->part);
      Layout layout;
      if (!s->nodes.data[over].known || s->nodes.data[part].known || p->failed) continue;
      p->failed = !project(s, p, &s->nodes.data[over].layout, &layout);
      if (!p->failed) decide(s, part, layout);
      changed = true;
    }
  }
}

// How many fragments that follow this group partly could not follow the layout.
static int count_misfits(Solver *s, int group, const Layout *candidate) {
  int count = 0;
  for (int i = 0; i < s->projections.len; i++) {
    const Projection *p = &s->projections.data[i];
    if (find_group(s, p->over) != group) continue;
    const Node *part = &s->nodes.data[find_group(s, p->part)];
    Layout layout;
    if (!project(s, p, candidate, &layout) || (part->known && !layout_equal(&part->layout, &layout))) count++;
  }
  return count;
}

// The type of a group's flat layout: its widest fragment, so that no thread moves more than 16 bytes at a
// time.
static const Type *widest(Solver *s, int group) {
  const Type *found = NULL;
  for (int i = 0; i < s->nodes.len; i++) {
    const Node *node = &s->nodes.data[i];
    bool fragment = node->value->op->kind == OP_alloc;
    if (find_group(s, i) != group || !type_is_static(&node->type)) continue;
    if (!found || (fragment && dtype_bits(node->type.dtype) > dtype_bits(found->dtype))) found = &node->type;
  }
  return found;
}

// Whether blocks are as good as flat vectors and cheaper to compute: where a round of all threads neither fills whole
// rows nor divides one, the flat layout's coordinates carry from one dimension into the next.
static bool blocks_are_better(const Type *type, int threads, const Layout *flat, const Layout *blocked) {
  int64_t inner = type->shape[type->rank - 1];
  int64_t round = threads > 1 ? threads * flat->thread[0].stride : 1;
  bool carries = round % inner != 0 && inner % round != 0;
  return carries && type->rank > 1 && layout_registers(blocked) <= layout_registers(flat);
}

static void decide_free(Solver *s, int group) {
  const Type *type = widest(s, group);
  const TirValue *value = s->nodes.data[group].value;
  if (!type) {
    diag_error(s->cx->ds, DIAG_fragment_access, value->op->span,
               "the extents of a Parallel loop over a fragment must be known at compile time");
    s->ok = false;
    return;
  }
  const int wasted = s->projections.len + 1;  // worse than any misfits
  Layout candidates[3] = {layout_flat(type, s->threads), layout_blocked(type, s->threads)};
  int count = layout_row(type, s->threads, &candidates[2]) ? 3 : 2;
  bool blocks_first = blocks_are_better(type, s->threads, &candidates[0], &candidates[1]);
  const int order[2][3] = {{0, 2, 1}, {1, 0, 2}};
  int best = -1, least = 0;
  for (int i = 0; i < 3; i++) {
    int c = order[blocks_first][i];
    if (c >= count) continue;
    int misfits = count_misfits(s, group, &candidates[c]);
    if (layout_registers(&candidates[c]) > 2 * layout_registers(&candidates[0])) misfits += wasted;
    if (best >= 0 && misfits >= least) continue;
    best = c;
    least = misfits;
  }
  decide(s, group, candidates[best]);
}

static bool follows_unknown(Solver *s, int group) {
  for (int i = 0; i < s->projections.len; i++) {
    const Projection *p = &s->projections.data[i];
    int over = find_group(s, p->over);
    if (find_group(s, p->part) == group && over != group && !s->nodes.data[over].known) return true;
  }
  return false;
}

static int next_free(Solver *s) {
  int first = -1;
  for (int i = 0; i < s->nodes.len; i++) {
    if (find_group(s, i) != i || s->nodes.data[i].known) continue;
    if (!follows_unknown(s, i)) return i;
    if (first < 0) first = i;
  }
  return first;
}

static void write_layouts(Solver *s) {
  for (int i = 0; i < s->nodes.len; i++) {
    Layout *layout = ARENA_NEW(s->cx->module->arena, Layout);
    *layout = s->nodes.data[find_group(s, i)].layout;
    s->nodes.data[i].value->layout = layout;
  }
}

static bool lay_out_group(PassCx *cx, const ThreadGroup *group) {
  Solver solver = {.cx = cx, .threads = tir_thread_count(group->threads), .ok = true};
  Solver *s = &solver;
  TirOpList ops = group->ops;
  check_threads(s, ops);
  if (!s->ok) return false;
  find_replicated(s, ops);
  find_seeds(s, ops);
  decide_fixed(s);
  if (s->ok) add_wishes(s, ops);
  if (s->ok) propagate(s);
  for (int group; s->ok && (group = next_free(s)) >= 0;) {
    decide_free(s, group);
    propagate(s);
  }
  if (s->ok) write_layouts(s);
  return s->ok;
}

// Roles share no fragments, so each range of threads is a problem of its own.
bool lay_out_fragments(PassCx *cx, TirKernel *kernel) {
  ThreadGroups groups = {0};
  bool ok = thread_groups(cx, kernel, tile_collect(cx->scratch, kernel->body), &groups);
  for (int i = 0; i < groups.len && ok; i++) ok = lay_out_group(cx, &groups.data[i]);
  return ok;
}
