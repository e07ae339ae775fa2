// The rows of core.def: control, values, memory and synchronisation. Arithmetic rows differ in nothing but
// their name and group, so they are made from the list itself; every other op has its row written out.
#include "ops/ops.h"

#include <assert.h>

#include "ops/ops_internal.h"

static const char *const atomic_ops[] = {"add", "max", "min", NULL};
static const char *const loop_kinds[] = {"serial", "unroll", "pipelined", "tiles", NULL};

#define NO_ROW(name)
#define ROW_DECLARE NO_ROW
#define ROW_LAUNCH NO_ROW
#define ROW_VALUE NO_ROW
#define ROW_CONTROL NO_ROW
#define ROW_MEMORY NO_ROW
#define ROW_SYNC NO_ROW
#define ROW_UNARY(op)                                                                                        \
  [OP_##op] = {.name = #op,                                                                                  \
               .group = GROUP_UNARY,                                                                         \
               .operands = {{.name = "operand"}},                                                            \
               .noperands = 1,                                                                               \
               .nresults = 1,                                                                                \
               .pure = true},
#define ROW_OF_TWO(op, of_group)                                                                             \
  [OP_##op] = {.name = #op,                                                                                  \
               .group = of_group,                                                                            \
               .operands = {{.name = "lhs"}, {.name = "rhs"}},                                               \
               .noperands = 2,                                                                               \
               .nresults = 1,                                                                                \
               .pure = true},
#define ROW_BINARY(op) ROW_OF_TWO(op, GROUP_BINARY)
#define ROW_COMPARE(op) ROW_OF_TWO(op, GROUP_COMPARE)

static const OpDef arithmetic_ops[] = {
#define CORE_OP(name, group) ROW_##group(name)
#include "ops/core.def"
#undef CORE_OP
};

static const OpDef core_ops[] = {
    // launch block
    [OP_tensor] = {.name = "tensor", .group = GROUP_DECLARE, .variadic = true, .nresults = 1, .named = true},
    [OP_size] = {.name = "size", .group = GROUP_DECLARE, .nresults = 1, .named = true},
    [OP_param] = {.name = "param", .group = GROUP_DECLARE, .nresults = 1, .named = true},
    [OP_grid] = {.name = "grid", .group = GROUP_LAUNCH, .variadic = true},
    [OP_check] = {.name = "check",
                  .group = GROUP_LAUNCH,
                  .operands = {{.name = "condition"}},
                  .noperands = 1,
                  .named = true},
    // values
    [OP_const] = {.name = "const",
                  .group = GROUP_VALUE,
                  .attrs = {{.name = "bits", .kind = ATTR_FLOAT_BITS}},
                  .nresults = 1,
                  .pure = true},
    [OP_block_idx] =
        {.name = "block_idx", .group = GROUP_VALUE, .attrs = {{.name = "dim"}}, .nresults = 1, .pure = true},
    [OP_block_count] = {.name = "block_count",
                        .group = GROUP_VALUE,
                        .attrs = {{.name = "dim"}},
                        .nresults = 1,
                        .pure = true},
    [OP_thread_idx] = {.name = "thread_idx", .group = GROUP_VALUE, .nresults = 1, .pure = true},
    [OP_select] = {.name = "select",
                   .group = GROUP_VALUE,
                   .operands = {{.name = "condition"}, {.name = "yes"}, {.name = "no"}},
                   .noperands = 3,
                   .nresults = 1,
                   .pure = true},
    [OP_cast] = {.name = "cast",
                 .group = GROUP_VALUE,
                 .operands = {{.name = "operand"}},
                 .noperands = 1,
                 .nresults = 1,
                 .pure = true},
    // control
    [OP_for] = {.name = "for",
                .group = GROUP_CONTROL,
                .operands = {{.name = "lo"},
                             {.name = "hi"},
                             {.name = "step"},
                             {.name = "go", .access = READS, .optional = true}},
                .noperands = 4,
                .attrs = {{.name = "kind", .kind = ATTR_ENUM, .names = loop_kinds}, {.name = "stages"}},
                .nresults = 1,
                .nbodies = 1},
    [OP_while] = {.name = "while",
                  .group = GROUP_CONTROL,
                  .operands = {{.name = "go", .access = READS}},
                  .noperands = 1,
                  .nbodies = 1},
    [OP_parallel] =
        {.name = "parallel", .group = GROUP_CONTROL, .variadic = true, .nresults = -1, .nbodies = 1},
    [OP_if] = {.name = "if",
               .group = GROUP_CONTROL,
               .operands = {{.name = "condition"}},
               .noperands = 1,
               .nbodies = 2},
    [OP_role] = {.name = "role",
                 .group = GROUP_CONTROL,
                 .attrs = {{.name = "lo", .initial = -1},
                           {.name = "hi", .initial = -1},
                           {.name = "arm", .kind = ATTR_BOOL}},
                 .nbodies = 1},
    [OP_one_thread] = {.name = "one_thread", .group = GROUP_CONTROL, .nbodies = 1},
    // memory
    [OP_alloc] = {.name = "alloc",
                  .group = GROUP_MEMORY,
                  .operands = {{.name = "base", .optional = true}},
                  .noperands = 1,
                  .attrs = {{.name = "plain", .kind = ATTR_BOOL},
                            {.name = "ordered", .kind = ATTR_BOOL},
                            {.name = "late", .kind = ATTR_BOOL}},
                  .nresults = 1,
                  .named = true},
    [OP_alloc_barrier] =
        {.name = "alloc_barrier", .group = GROUP_MEMORY, .nresults = 1, .named = true, .listed = true},
    [OP_view] = {.name = "view",
                 .group = GROUP_MEMORY,
                 .operands = {{.name = "buffer", .spaces = IN_MEMORY | IN_BARRIER | IN_LOCAL}},
                 .noperands = 1,
                 .variadic = true,
                 .attrs = {{.name = "drop", .kind = ATTR_MASK}, {.name = "in_bounds", .kind = ATTR_BOOL}},
                 .nresults = 1,
                 .pure = true},
    [OP_reshape] = {.name = "reshape",
                    .group = GROUP_MEMORY,
                    .operands = {{.name = "buffer", .spaces = IN_SHARED | IN_TMEM}},
                    .noperands = 1,
                    .nresults = 1,
                    .pure = true},
    [OP_load] =
        {.name = "load",
         .group = GROUP_MEMORY,
         .operands = {{.name = "buffer", .access = READS, .spaces = (IN_MEMORY & ~IN_TMEM) | IN_LOCAL}},
         .noperands = 1,
         .variadic = true,
         .attrs = {{.name = "in_bounds", .kind = ATTR_BOOL}},
         .nresults = 1},
    [OP_store] = {.name = "store",
                  .group = GROUP_MEMORY,
                  .operands = {{.name = "buffer",
                                .access = WRITES,
                                .spaces = (IN_MEMORY & ~IN_TMEM) | IN_LOCAL},
                               {.name = "value"}},
                  .noperands = 2,
                  .variadic = true,
                  .attrs = {{.name = "in_bounds", .kind = ATTR_BOOL}}},
    [OP_atomic] =
        {.name = "atomic",
         .group = GROUP_MEMORY,
         .operands = {{.name = "dst", .access = READS | WRITES | ATOMIC, .spaces = IN_GLOBAL | IN_SHARED},
                      {.name = "value"}},
         .noperands = 2,
         .variadic = true,
         .attrs = {{.name = "in_bounds", .kind = ATTR_BOOL},
                   {.name = "order", .kind = ATTR_ENUM, .names = op_order_names},
                   {.name = "op", .kind = ATTR_ENUM, .names = atomic_ops},
                   {.name = "prev", .kind = ATTR_BOOL}},
         .nresults = 1,
         .check = op_check_atomic},
    [OP_atomic_load] =
        {.name = "atomic_load",
         .group = GROUP_MEMORY,
         .operands = {{.name = "src", .access = READS | ATOMIC, .spaces = IN_GLOBAL | IN_SHARED}},
         .noperands = 1,
         .variadic = true,
         .attrs = {{.name = "in_bounds", .kind = ATTR_BOOL},
                   {.name = "order", .kind = ATTR_ENUM, .names = op_order_names}},
         .nresults = 1,
         .check = op_check_atomic},
    [OP_atomic_store] =
        {.name = "atomic_store",
         .group = GROUP_MEMORY,
         .operands = {{.name = "dst", .access = WRITES | ATOMIC, .spaces = IN_GLOBAL | IN_SHARED},
                      {.name = "value"}},
         .noperands = 2,
         .variadic = true,
         .attrs = {{.name = "in_bounds", .kind = ATTR_BOOL},
                   {.name = "order", .kind = ATTR_ENUM, .names = op_order_names}},
         .check = op_check_atomic},
    [OP_print] = {.name = "print", .group = GROUP_MEMORY, .variadic = true, .named = true},
    [OP_trap] = {.name = "trap", .group = GROUP_MEMORY},
    [OP_cell] = {.name = "cell",
                 .group = GROUP_MEMORY,
                 .operands = {{.name = "initial", .optional = true}},
                 .noperands = 1,
                 .nresults = 1,
                 .named = true},
    [OP_get] = {.name = "get",
                .group = GROUP_MEMORY,
                .operands = {{.name = "cell", .access = READS}},
                .noperands = 1,
                .nresults = 1},
    [OP_set] = {.name = "set",
                .group = GROUP_MEMORY,
                .operands = {{.name = "cell", .access = WRITES}, {.name = "value"}},
                .noperands = 2},
    // synchronisation
    [OP_wait] = {.name = "wait", .group = GROUP_SYNC, .operands = {{.name = "token"}}, .noperands = 1},
    [OP_sync_threads] = {.name = "sync_threads",
                         .group = GROUP_SYNC,
                         .attrs = {{.name = "id"}, {.name = "count"}}},
    [OP_sync_warp] = {.name = "sync_warp", .group = GROUP_SYNC},
    [OP_prefetch_maps] = {.name = "prefetch_maps", .group = GROUP_SYNC},
    [OP_mbar_init] = {.name = "mbar_init",
                      .group = GROUP_SYNC,
                      .operands = {{.name = "barrier", .access = WRITES, .spaces = IN_BARRIER}},
                      .noperands = 1},
    [OP_fence_mbarrier_init] = {.name = "fence_mbarrier_init", .group = GROUP_SYNC},
    [OP_mbar_arrive] = {.name = "mbar_arrive",
                        .group = GROUP_SYNC,
                        .operands = {{.name = "barrier", .access = READS | WRITES, .spaces = IN_BARRIER}},
                        .noperands = 1},
    [OP_mbar_expect_tx] = {.name = "mbar_expect_tx",
                           .group = GROUP_SYNC,
                           .operands = {{.name = "barrier", .access = READS | WRITES, .spaces = IN_BARRIER},
                                        {.name = "bytes"}},
                           .noperands = 2,
                           .attrs = {{.name = "arrive", .kind = ATTR_BOOL, .initial = 1}}},
    [OP_mbarrier_wait_parity] = {.name = "mbarrier_wait_parity",
                                 .group = GROUP_SYNC,
                                 .operands = {{.name = "barrier", .access = READS, .spaces = IN_BARRIER},
                                              {.name = "parity"}},
                                 .noperands = 2},
    [OP_fence_proxy_async] = {.name = "fence_proxy_async", .group = GROUP_SYNC},
    [OP_bulk_commit] = {.name = "bulk_commit", .group = GROUP_SYNC},
    [OP_bulk_wait] = {.name = "bulk_wait",
                      .group = GROUP_SYNC,
                      .attrs = {{.name = "pending"}, {.name = "read", .kind = ATTR_BOOL}}},
    [OP_mma_wait] = {.name = "mma_wait",
                     .group = GROUP_SYNC,
                     .operands = {{.name = "accumulator", .access = ACCUMULATES, .spaces = IN_FRAGMENT}},
                     .noperands = 1,
                     .attrs = {{.name = "pending"}}},
    [OP_tmem_alloc] = {.name = "tmem_alloc",
                       .group = GROUP_SYNC,
                       .operands = {{.name = "slot", .access = WRITES, .spaces = IN_SHARED}},
                       .noperands = 1,
                       .attrs = {{.name = "columns"}}},
    [OP_tmem_dealloc] = {.name = "tmem_dealloc",
                         .group = GROUP_SYNC,
                         .operands = {{.name = "base"}},
                         .noperands = 1,
                         .attrs = {{.name = "columns"}}},
    [OP_tmem_release] = {.name = "tmem_release",
                         .group = GROUP_SYNC,
                         .operands = {{.name = "buffer", .access = READS | WRITES, .spaces = IN_TMEM}},
                         .noperands = 1},
    [OP_tcgen05_commit] = {.name = "tcgen05_commit",
                           .group = GROUP_SYNC,
                           .operands = {{.name = "barrier", .access = READS | WRITES, .spaces = IN_BARRIER}},
                           .noperands = 1},
    [OP_tcgen05_fence_before] = {.name = "tcgen05_fence_before", .group = GROUP_SYNC},
    [OP_tcgen05_fence_after] = {.name = "tcgen05_fence_after", .group = GROUP_SYNC},
    [OP_set_max_nreg] = {.name = "set_max_nreg",
                         .group = GROUP_SYNC,
                         .attrs = {{.name = "count"}, {.name = "inc", .kind = ATTR_BOOL}}},
    [OP_grid_wait] = {.name = "grid_wait", .group = GROUP_SYNC},
    [OP_grid_release] = {.name = "grid_release", .group = GROUP_SYNC},
};

static bool is_arithmetic(OpKind kind) {
  return (size_t)kind < sizeof arithmetic_ops / sizeof *arithmetic_ops && arithmetic_ops[kind].name;
}

const OpDef *op_core_def(OpKind kind) {
  if (is_arithmetic(kind)) return &arithmetic_ops[kind];
  assert((size_t)kind < sizeof core_ops / sizeof *core_ops && core_ops[kind].name);
  return &core_ops[kind];
}
