// Layouts of fragments as a small constraint problem. Fragments and the iteration spaces of Parallel loops
// are nodes. An access F[i, j] in a loop over (i, j), or a copy between fragments, makes two nodes one group
// with one layout. An access G[j] makes G's layout the projection of the loop's. Seeds are fragments that
// TMEM is copied to or from: there the hardware says who holds what. Fragments whose elements are used one by
// one, by every thread, are replicated. What no seed reaches is spread flat, or by rows or blocks where a vector
// along rows or columns must follow. A group that would need two layouts is reported: only shared memory can
// move elements between threads.
#include "passes/fragment_layouts.h"

#include "passes/hazards.h"

typedef struct {
  TirValue *value;  // an alloc's result, or the first variable of a Parallel loop
  Type type;
  int parent;          // union-find
  const TirOp *seed;   // the copy between TMEM and this fragment
  const TirOp *every;  // the access that needs every thread to hold every element
  bool known;          // of a group's representative: layout is decided,
  Layout layout;       // this is it,
  const TirOp *why;    // because of this op
} Node;

typedef struct {
  int over, part;  // nodes
  FragmentAccess access;
  const TirOp *op;
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
      found.kind = ACCESS_EXTENT;
    found.dims[found.ndims++] = index->index;
  }
  if (found.kind == ACCESS_EXTENT) return found;
  if (found.ndims == 0) return (FragmentAccess){.kind = ACCESS_ANY};
  bool identity = found.ndims == parallel->nresults;
  for (int i = 0; i < found.ndims; i++) identity = identity && found.dims[i] == i;
  if (identity) found.kind = ACCESS_IDENTITY;
  return found;
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
  int64_t shape[TYPE_MAX_RANK] = {0};
  for (int i = 0; i < parallel->nresults; i++)
    if (!tir_const_int(parallel->args[i], &shape[i])) shape[i] = DIM_DYNAMIC;
  return node_of(s, parallel->results[0], type_buffer(DTYPE_f32, SPACE_FRAGMENT, parallel->nresults, shape));
}

static void report(Solver *s, const TirOp *op, const char *sentence, const TirValue *fragment) {
  diag_error(s->cx->ds, DIAG_fragment_access, op->span, "%s: %s", tir_buffer_name(fragment), sentence);
  s->ok = false;
}

// ---- which fragments every thread must hold whole

static void demand_every(Solver *s, TirValue *fragment, const TirOp *op) {
  Node *node = fragment_node(s, fragment);
  if (!node->every) node->every = op;
}

static bool held_by_every(Solver *s, TirValue *fragment) {
  return fragment_node(s, fragment)->every != NULL;
}

static bool element_access(const TirOp *op) {
  return (op->kind == OP_load || op->kind == OP_store) && tile_is_fragment(op->args[0]);
}

static void find_replicated(Solver *s, TirOpList ops) {
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    if (!element_access(op)) continue;
    TirOp *parallel = tile_outermost(op, OP_parallel);
    if (!parallel || fragment_access(parallel, op).kind == ACCESS_ANY) demand_every(s, op->args[0], op);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < ops.len; i++) {
      TirValue *src, *dst;
      if (!tile_move(ops.data[i], &src, &dst) || !tile_is_fragment(src) || !tile_is_fragment(dst)) continue;
      if (held_by_every(s, dst) == held_by_every(s, src)) continue;
      demand_every(s, held_by_every(s, dst) ? src : dst, ops.data[i]);
      changed = true;
    }
  }
}

// ---- constraints

static void join_groups(Solver *s, int a, int b) {
  a = find_group(s, a), b = find_group(s, b);
  if (a < b) s->nodes.data[b].parent = a;
  if (b < a) s->nodes.data[a].parent = b;
}

static void report_store_to_replicated(Solver *s, const TirOp *op, const TirValue *fragment, int kind) {
  const TirOp *every = fragment_node(s, (TirValue *)fragment)->every;
  if (kind == ACCESS_ANY) {
    report(s, op,
           "Parallel sets an element of a fragment at the loop's variables themselves, not at values of them",
           fragment);
    diag_hint(s->cx->ds, "to shift or permute, copy it to shared memory and read it there");
    return;
  }
  report(s, op,
         "every thread holds this fragment whole, so one iteration of a Parallel loop cannot set an element",
         fragment);
  bool in_loop = tile_outermost((TirOp *)every, OP_parallel) != NULL;
  diag_note(s->cx->ds, every->span, "because its elements are used one by one here%s",
            in_loop ? ", at values other than the loop's variables" : "");
}

static void add_access(Solver *s, TirOp *op) {
  TirValue *fragment = op->args[0];
  TirOp *parallel = tile_outermost(op, OP_parallel);
  if (!parallel) return;
  FragmentAccess access = fragment_access(parallel, op);
  if (access.kind == ACCESS_EXTENT) {
    report(s, op,
           "a Parallel loop over a fragment must cover each dimension it indexes, from 0 to its extent",
           fragment);
  } else if (held_by_every(s, fragment)) {
    if (op->kind == OP_store) report_store_to_replicated(s, op, fragment, access.kind);
  } else if (access.kind == ACCESS_IDENTITY) {
    join_groups(s, loop_number(s, parallel), fragment_number(s, fragment));
  } else if (op->kind == OP_store && access.ndims < parallel->nresults) {
    report(s, op, "several iterations of the Parallel loop store to the same element", fragment);
  } else {
    Projection projection = {loop_number(s, parallel), fragment_number(s, fragment), access, op};
    vec_push(s->cx->scratch, &s->projections, projection);
  }
}

static void add_move(Solver *s, const TirOp *op, TirValue *src, TirValue *dst) {
  if (tile_is_fragment(src) && tile_is_fragment(dst)) {
    if (!held_by_every(s, src)) join_groups(s, fragment_number(s, src), fragment_number(s, dst));
    return;
  }
  bool through_tmem = op_path(op) == PATH_TMEM_LOAD || op_path(op) == PATH_TMEM_STORE;
  if (!through_tmem || (!tile_is_fragment(src) && !tile_is_fragment(dst))) return;
  Node *node = fragment_node(s, tile_is_fragment(src) ? src : dst);
  if (!node->seed) node->seed = op;
}

static bool check_whole(Solver *s, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++) {
    if (!op->args[i] || !tile_is_fragment(op->args[i]) || op->args[i]->op->kind != OP_view) continue;
    report(s, op, "slices of a fragment cannot be used: its elements are spread over the threads",
           op->args[i]);
    diag_hint(s->cx->ds, "copy the whole fragment to shared memory, and slices from there");
    return false;
  }
  return true;
}

static void add_constraints(Solver *s, TirOpList ops) {
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    TirValue *src, *dst;
    if (op->kind == OP_alloc && tile_is_fragment(op->results[0])) fragment_number(s, op->results[0]);
    if (element_access(op)) add_access(s, op);
    if (tile_move(op, &src, &dst)) add_move(s, op, src, dst);
  }
}

// ---- solution

static void decide(Solver *s, int group, Layout layout, const TirOp *why) {
  Node *node = &s->nodes.data[group];
  node->known = true;
  node->layout = layout;
  node->why = why;
}

static void conflict(Solver *s, const TirOp *op, const TirValue *value, const TirOp *other) {
  diag_error(s->cx->ds, DIAG_fragment_conflict, op->span,
             "%s would have to be spread over the threads in two ways: this use needs another than an "
             "earlier one; go through "
             "shared memory in between",
             value->op->kind == OP_parallel ? "this Parallel loop" : tir_buffer_name(value));
  if (other) diag_note(s->cx->ds, other->span, "the other use is here");
  s->ok = false;
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

static bool seed_layout(Solver *s, const Node *node, Layout *out) {
  const Type *type = &node->type;
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

static void decide_seeds(Solver *s) {
  for (int i = 0; i < s->nodes.len; i++) {
    Node *node = &s->nodes.data[i];
    int group = find_group(s, i);
    Layout layout;
    if (node->seed && node->every) {
      conflict(s, node->every, node->value, node->seed);
    } else if (node->seed) {
      if (!seed_layout(s, node, &layout)) return;
      Node *leader = &s->nodes.data[group];
      if (leader->known && !layout_equal(&leader->layout, &layout))
        conflict(s, node->seed, node->value, leader->why);
      else
        decide(s, group, layout, node->seed);
    } else if (node->every) {
      decide(s, group, layout_replicated(&node->type, s->threads), node->every);
    }
  }
}

static bool project(Solver *s, const Projection *p, const Layout *over, Layout *out) {
  const Type *shape = &s->nodes.data[p->over].type;
  return type_is_static(shape) && layout_project(over, shape, p->access.dims, p->access.ndims, out);
}

// From loops whose layout is known to the fragments they index with some of their variables.
static void propagate(Solver *s) {
  for (bool changed = true; changed && s->ok;) {
    changed = false;
    for (int i = 0; i < s->projections.len; i++) {
      const Projection *p = &s->projections.data[i];
      int over = find_group(s, p->over), part = find_group(s, p->part);
      Layout layout;
      if (!s->nodes.data[over].known || s->nodes.data[part].known) continue;
      if (!project(s, p, &s->nodes.data[over].layout, &layout)) {
        conflict(s, p->op, s->nodes.data[p->part].value, s->nodes.data[over].why);
        return;
      }
      decide(s, part, layout, p->op);
      changed = true;
    }
  }
}

// Whether fragments that this group's loops index partly can follow the layout.
static bool suits(Solver *s, int group, const Layout *candidate) {
  for (int i = 0; i < s->projections.len; i++) {
    const Projection *p = &s->projections.data[i];
    if (find_group(s, p->over) != group) continue;
    const Node *part = &s->nodes.data[find_group(s, p->part)];
    Layout layout;
    if (!project(s, p, candidate, &layout)) return false;
    if (part->known && !layout_equal(&part->layout, &layout)) return false;
  }
  return true;
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
    report(s, value->op, "the extents of a Parallel loop over a fragment must be known at compile time",
           value);
    return;
  }
  Layout flat = layout_flat(type, s->threads), blocked = layout_blocked(type, s->threads), row;
  if (blocks_are_better(type, s->threads, &flat, &blocked) && suits(s, group, &blocked))
    decide(s, group, blocked, value->op);
  else if (suits(s, group, &flat))
    decide(s, group, flat, value->op);
  else if (layout_row(type, s->threads, &row) && suits(s, group, &row))
    decide(s, group, row, value->op);
  else if (suits(s, group, &blocked))
    decide(s, group, blocked, value->op);
  else
    conflict(s, value->op, value, NULL);
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

static void check_projections(Solver *s) {
  for (int i = 0; i < s->projections.len && s->ok; i++) {
    const Projection *p = &s->projections.data[i];
    const Node *over = &s->nodes.data[find_group(s, p->over)], *part = &s->nodes.data[find_group(s, p->part)];
    Layout layout;
    if (!project(s, p, &over->layout, &layout) || !layout_equal(&layout, &part->layout))
      conflict(s, p->op, s->nodes.data[p->part].value, part->why == p->op ? over->why : part->why);
  }
}

static void forget(TirOpList ops) {
  for (int i = 0; i < ops.len; i++) {
    TirOp *op = ops.data[i];
    if (op->kind == OP_parallel || (op->kind == OP_alloc && tile_is_fragment(op->results[0])))
      op->results[0]->layout = NULL;
  }
}

static void write_layouts(Solver *s) {
  for (int i = 0; i < s->nodes.len; i++) {
    Layout *layout = ARENA_NEW(s->cx->module->arena, Layout);
    *layout = s->nodes.data[find_group(s, i)].layout;
    s->nodes.data[i].value->layout = layout;
  }
}

bool lay_out_fragments(PassCx *cx, TirKernel *kernel) {
  Solver solver = {.cx = cx, .threads = kernel->threads, .ok = true};
  Solver *s = &solver;
  TirOpList ops = tile_collect(cx->scratch, kernel->body);
  forget(ops);
  for (int i = 0; i < ops.len; i++)
    if (ops.data[i]->kind != OP_view) check_whole(s, ops.data[i]);
  check_threads(s, ops);
  if (!s->ok) return false;
  find_replicated(s, ops);
  add_constraints(s, ops);
  if (s->ok) decide_seeds(s);
  if (s->ok) propagate(s);
  for (int group; s->ok && (group = next_free(s)) >= 0;) {
    decide_free(s, group);
    propagate(s);
  }
  check_projections(s);
  if (s->ok) write_layouts(s);
  return s->ok;
}
