// What the threads and engines of a CTA have touched, per buffer and range of active threads, since the threads of that
// range last met. The barriers pass asks it before each op which threads must meet first, and whether generic
// writes need a proxy fence.
#ifndef TILEC_PASSES_HAZARDS_H
#define TILEC_PASSES_HAZARDS_H

#include "base/map.h"
#include "passes/pass.h"

// One word a root buffer and range, of flags and of the op that alone wrote it; a state is an array of them.
typedef uint32_t Touch;

typedef struct {
  TirThreads threads;
  bool protocol;  // of a role that orders itself against others, with barriers of the author
} HazardRange;

typedef struct {
  Arena *arena;
  Map *index;               // root TirValue -> slot + 1
  Map *writers;             // op -> number, of those that write by tiles that are apart or the same
  int count;                // of roots
  bool *used_by_async;      // by slot: an engine reads or writes it somewhere
  VEC(HazardRange) ranges;  // 0: the whole CTA; the others are those of roles
} Hazards;

// What must stand before an op so that it sees its predecessors' effects.
typedef struct {
  bool sync;         // the threads meet
  bool proxy_fence;  // every thread orders its generic writes before the async proxy, before meeting
  bool tmem_fence;   // tcgen05 fences around the meeting
} Meeting;

// Numbers the root buffers of the kernel that more than one thread can see.
Hazards hazards_new(Arena *arena, TirKernel *kernel);
Touch *hazards_state(const Hazards *hazards);  // nothing touched
Touch *hazards_copy(const Hazards *hazards, const Touch *state);
void hazards_set(const Hazards *hazards, Touch *into, const Touch *from);
bool hazards_join(const Hazards *hazards, Touch *into, const Touch *from);  // true when `into` grew

// The number of a range that some op of the kernel has.
int hazards_range(const Hazards *hazards, TirThreads threads);
bool threads_contain(TirThreads outer, TirThreads inner);
// What `op`, run by range `by`, needs before it because of what range `earlier` did. A parallel loop counts as one op with
// all accesses of its body. Nothing when the two ranges part and order themselves (HazardRange.protocol).
Meeting hazards_between(const Hazards *hazards, const Touch *state, TirOp *op, int by, int earlier);
// Whether tcgen05 loads or stores of these threads are outstanding: a meeting then hands TMEM over only between
// tcgen05 fences (PTX ISA 9.7.16.6).
bool hazards_in_tmem(const Hazards *hazards, const Touch *state, int range);
// Whether these threads wrote, in the generic proxy and without a fence since, what engines use.
bool hazards_unfenced(const Hazards *hazards, const Touch *state, int range);
void hazards_met(const Hazards *hazards, Touch *state, int range, Meeting meeting);
void hazards_after(const Hazards *hazards, Touch *state, TirOp *op, int range);
// Some threads of the range have passed a wait on this barrier and others may not have: its next phase must not
// complete yet.
bool hazards_may_lap(const Hazards *hazards, const Touch *state, TirValue *barrier, int range);
void hazards_waited(const Hazards *hazards, Touch *state, TirValue *barrier, int range);

Path op_path(const TirOp *op);  // PATH_NONE for an op without one
bool path_is_async(Path path);
bool path_is_mma(Path path);  // the tensor core's

#endif
