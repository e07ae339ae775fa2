// What the pass `roles` found out about a kernel before it changes anything: which warps do which op, and through which
// buffers they hand work to each other.
//
// Three roles run the kernel's ops in source order, each only its own: the loader what TMA brings in pipelined loops, the
// products (where one thread issues them) the tensor core's, the author's threads everything else. Each role is a
// subsequence of the source, so the source itself is a schedule in which nobody blocks for ever (rule P12), as long as
// every hand-over has room for what is alive at once.
//
// A hand-over is a ring or a channel. A ring belongs to a pipelined loop: its tiles exist once for every stage, stage s
// is filled by the loader (barrier full[s]), perhaps worked on by threads (ready[s]), and given back by its readers
// (empty[s]). A channel is any other buffer that products and threads use in turn: its accesses in one block, its home, are
// segments of one role each, and behind every segment stands a barrier that lets the next begin. In a home that runs many
// times the last segment lets the next turn's first begin; an accumulator that products fill and threads drain exists
// twice there, so that one is filled while the other is drained.
#ifndef TILEC_PASSES_ROLES_PLAN_H
#define TILEC_PASSES_ROLES_PLAN_H

#include "passes/hazards.h"
#include "passes/tile.h"

enum { WARP = 32, GROUP = 128, MOST_THREADS = 1024, MOST_STAGES = 8 };

typedef enum { ROLE_loader, ROLE_products, ROLE_author, ROLES } Role;
typedef unsigned RoleSet;  // bit r: role r

typedef struct {
  TirOp *loop;
  VEC(TirValue *) tiles;  // as the author allocated them
  VEC(TirValue *) rings;  // likewise, with a first dimension of stages
  int stages;
  RoleSet readers;  // that touch tiles, the loader apart
  TirOp *filled;    // the last load; the loader's arrival follows it
  TirOp *handed;    // the last op of the body by which threads work on tiles that products read later; NULL
  bool straight;    // the author's threads only multiply: one round's products may run during the next
  int nproducts;    // in the body itself
  TirValue *full, *ready, *empty;
} Ring;

typedef struct {
  Role role;
  TirOp *first, *last;  // ops of the home
  TirValue *passed;     // the barriers behind the segment, one a version; NULL: the next is of the same role
} Segment;

typedef struct {
  TirValue *buffer, *versions;  // as allocated; with a first dimension of versions, or NULL when there is one
  TirBlock *home;
  VEC(Segment) segments;
  int count;     // of versions
  bool repeats;  // the home runs more than once
} Channel;

typedef struct {
  PassCx *cx;
  TirKernel *kernel;
  bool quiet;  // no remarks
  TirOpList all;
  Map *sets;           // op -> RoleSet: its role, or those of the ops in its bodies
  bool by_warpgroups;  // the author's threads issue the products
  int spare, ample;    // registers of a thread of the loader, of the author, if they differ; 0
  VEC(Ring) rings;
  VEC(Channel) channels;
} RolePlan;

// False: the kernel stays as it is; a remark says why.
bool plan_roles(RolePlan *plan, PassCx *cx, TirKernel *kernel, bool quiet);
bool plan_channels(RolePlan *plan);
bool plan_registers(RolePlan *plan);  // false: reported
int64_t plan_kept_registers(const RolePlan *plan,
                            const TirOp *result);   // of a thread that keeps a result for the next tile
int64_t plan_most_registers(const RolePlan *plan);  // that a thread of the author's can have
bool plan_is_accumulator(const RolePlan *plan, const TirValue *fragment);
int64_t plan_accumulators(const RolePlan *plan);  // 32-bit registers of a thread that products add to
bool plan_depths(RolePlan *plan);
void plan_slots(const RolePlan *plan);  // changes the kernel
// The loader's threads, and of all roles but the author's.
int plan_loader_threads(const RolePlan *plan);
int plan_extra_threads(const RolePlan *plan);
int64_t plan_shared_bytes(const RolePlan *plan);  // that the kernel will take, about
int64_t plan_stage_bytes(const Ring *ring);       // of one stage's tiles
// Carries the plan out.
void emit_roles(RolePlan *plan);
// Results that pass defer marked leave under the next tile's products. After emit_roles.
void send_late(PassCx *cx, TirKernel *kernel);
// A clear in front of a pipelined loop becomes part of its first product; zeros for a sum without rounds come after the loop.
void fold_clears(PassCx *cx, TirKernel *kernel);

// False, with a remark about the loop.
bool plan_refuse(const RolePlan *plan, const TirOp *op, const char *why);
RoleSet plan_roles_of(const RolePlan *plan, const TirOp *op);
bool plan_has(const RolePlan *plan, const TirOp *op, Role role);
Ring *plan_ring_of_loop(const RolePlan *plan, const TirOp *loop);
// The ring that this buffer, or what it is a part of, is a tile of; NULL: of none.
Ring *plan_ring_of_tile(const RolePlan *plan, const TirValue *buffer);
Channel *plan_channel_of(const RolePlan *plan, const TirValue *buffer);
bool plan_is_load(const TirOp *op);     // by TMA, waited for by the compiler
bool plan_is_product(const TirOp *op);  // likewise
bool plan_by_hand(const TirOp *op);     // orders asynchronous work with barriers of the author's
// Does something, and is done by one role as a whole: no control around other ops, no declaration.
bool plan_is_work(const TirOp *op);
// How `op`, its bodies included, accesses the buffer that is allocated as `root`: READS | WRITES.
unsigned plan_access(TirOp *op, const TirValue *root);
// The roles of the work in `op` that accesses it.
RoleSet plan_users(const RolePlan *plan, TirOp *op, const TirValue *root);
// The op of `block` that `op` is, or is inside of; NULL: none.
TirOp *plan_child(const TirBlock *block, TirOp *op);
bool plan_in_loop(const TirBlock *block);

#endif
