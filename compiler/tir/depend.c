// Whether a value may differ between the threads of a CTA: a search backwards from the value for anything that does.
// Through a cell (read, or deciding whether a loop goes on) the search goes on at everything that is ever set in it,
// and at the conditions and loop bounds that decide whether it is set; through a load at its indices and, since
// threads that come at different times may see different memory, at the control around it. An element of a fragment
// is the same in all threads that hold it unless something that sets the fragment tells them apart; an iteration of
// Parallel does not, since it sets the same element in each. The threads in question are those of the role in which
// the value is used: what other roles do does not part them, and a role around all of them neither.
#include <stdlib.h>

#include "tir/roles.h"
#include "tir/tir.h"

typedef struct {
  TirThreads threads;  // that use the value
  const TirOp *user;   // what computes the value in question
  bool *seen;          // by value id
  TirValue **stack;    // each value is pushed at most once
  int depth, count;
  bool found;
} Search;

static void push(Search *search, TirValue *value) {
  if (!value || value->id < 0 || value->id >= search->count || search->seen[value->id]) return;
  search->seen[value->id] = true;
  search->stack[search->depth++] = value;
}

static void push_args(Search *search, const TirOp *op) {
  for (int i = 0; i < op->nargs; i++) push(search, op->args[i]);
}

static bool covers(const TirOp *role, TirThreads threads) {
  return role->attrs[ROLE_lo] <= threads.lo && role->attrs[ROLE_hi] >= threads.hi;
}

// Whether the value in question is one of these iterations' own.
static bool is_around_user(const Search *search, const TirOp *parallel) {
  return search->user == parallel || tir_inside(search->user, parallel);
}

typedef enum { ITERATIONS_DIFFER, ITERATIONS_AROUND_USER_DIFFER } Iterations;

// What decides whether and how often `op` runs.
static void push_control(Search *search, const TirOp *op, Iterations iterations) {
  for (const TirOp *at = tir_parent(op); at; at = tir_parent(at)) {
    if (at->kind == OP_parallel)
      search->found = search->found || iterations == ITERATIONS_DIFFER || is_around_user(search, at);
    else if (at->kind == OP_one_thread)
      search->found = true;
    else if (at->kind == OP_role)
      search->found = search->found || !covers(at, search->threads);
    else
      push_args(search, at);
  }
}

typedef struct {
  Search *search;
  const TirValue *what;
} Setters;

// Whether threads in question run it: others set copies of their own.
static bool is_among(const Search *search, const TirOp *op) {
  TirThreads here = tir_active_threads(op->parent), there = search->threads;
  return here.hi > there.lo && here.lo < there.hi;
}

static bool visit_set(void *context, TirOp *op) {
  Setters *of = context;
  if (op->kind != OP_set || op->args[0] != of->what || !is_among(of->search, op)) return true;
  push(of->search, op->args[1]);
  push_control(of->search, op, ITERATIONS_DIFFER);
  return !of->search->found;
}

static void search_cell(Search *search, const TirValue *cell) {
  Setters of = {search, cell};
  if (cell->op->nargs) push(search, cell->op->args[0]);
  tir_walk(cell->op->parent->kernel->body, visit_set, &of);
}

// Whether it may change what the fragment holds.
static bool sets_fragment(const TirOp *op, const TirValue *fragment) {
  const OpDef *def = op_def(op->kind);
  for (int i = 0; i < op->nargs; i++) {
    bool is_buffer = op->args[i] && op->args[i]->type.kind == TYPE_BUFFER;
    bool writes = i >= def->noperands || def->operands[i].access & (WRITES | ATOMIC);
    if (is_buffer && writes && tir_root(op->args[i]) == fragment) return true;
  }
  return false;
}

static bool visit_fragment_setter(void *context, TirOp *op) {
  Setters *of = context;
  if (op->kind == OP_view || !sets_fragment(op, of->what) || !is_among(of->search, op)) return true;
  push_args(of->search, op);
  push_control(of->search, op, ITERATIONS_AROUND_USER_DIFFER);
  return !of->search->found;
}

static void search_buffer(Search *search, const TirValue *buffer) {
  Setters of = {search, buffer};
  if (buffer->type.space == SPACE_LOCAL) search->found = true;
  if (buffer->type.space == SPACE_FRAGMENT)
    tir_walk(buffer->op->parent->kernel->body, visit_fragment_setter, &of);
}

static void search_value(Search *search, const TirValue *value) {
  const TirOp *op = value->op;
  bool differs = op->kind == OP_atomic || op->kind == OP_atomic_load;  // each thread at its own time
  if (op->kind == OP_thread_idx || differs)
    search->found = true;
  else if (op->kind == OP_parallel)
    search->found = is_around_user(search, op);
  else if (op->kind == OP_get)
    search_cell(search, op->args[0]);
  else if (op->kind == OP_cell)
    search_cell(search, value);
  else if (op->kind == OP_alloc)
    search_buffer(search, value);
  else
    push_args(search, op);
  if (op->kind == OP_load) push_control(search, op, ITERATIONS_AROUND_USER_DIFFER);
}

bool tir_differs_among(const TirValue *value, TirThreads threads) {
  if (!value->op->parent) return true;
  int count = value->op->parent->kernel->next_id;
  Search search = {.count = count, .threads = threads, .user = value->op};
  if (tir_thread_count(threads) == 1 || tir_threads_agree(value, threads)) return false;
  search.seen = calloc((size_t)count + 1, sizeof *search.seen);
  search.stack = calloc((size_t)count + 1, sizeof *search.stack);
  search.found = !search.seen || !search.stack;  // without memory: the safe answer
  if (!search.found) push(&search, (TirValue *)value);
  while (search.depth > 0 && !search.found) search_value(&search, search.stack[--search.depth]);
  free(search.seen);
  free(search.stack);
  return search.found;
}

bool tir_thread_dependent(const TirValue *value) {
  return !value->op->parent || tir_differs_among(value, tir_active_threads(value->op->parent));
}
