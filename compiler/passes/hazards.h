// What the threads and engines of a CTA have touched since its threads last met, per buffer. The barriers
// pass asks it before each op whether the CTA must meet first, and whether generic writes need a proxy fence.
#ifndef TILEC_PASSES_HAZARDS_H
#define TILEC_PASSES_HAZARDS_H

#include "base/map.h"
#include "passes/pass.h"

// One word of flags a root buffer; a state is an array of them.
typedef unsigned Touch;

typedef struct {
  Arena *arena;
  Map *index;  // root TirValue -> slot + 1
  int count;
} Hazards;

// What must stand before an op so that it sees its predecessors' effects.
typedef struct {
  bool sync;         // all threads meet
  bool proxy_fence;  // every thread orders its generic writes before the async proxy, before meeting
  bool tmem_fence;   // tcgen05 fences around the meeting
} Meeting;

// Numbers the root buffers of the kernel that more than one thread can see.
Hazards hazards_new(Arena *arena, TirKernel *kernel);
Touch *hazards_state(const Hazards *hazards);  // nothing touched
Touch *hazards_copy(const Hazards *hazards, const Touch *state);
bool hazards_join(const Hazards *hazards, Touch *into, const Touch *from);  // true when `into` grew

// What `op` needs before it in this state. A parallel loop counts as one op with all accesses of its body.
Meeting hazards_before(const Hazards *hazards, const Touch *state, TirOp *op);
// Whether tcgen05 loads or stores are outstanding: a meeting then hands TMEM over only between tcgen05 fences
// (PTX ISA 9.7.16.6).
bool hazards_in_tmem(const Hazards *hazards, const Touch *state);
void hazards_met(const Hazards *hazards, Touch *state, Meeting meeting);
void hazards_after(const Hazards *hazards, Touch *state, TirOp *op);
// Some threads have passed a wait on this barrier and others may not have: its next phase must not complete
// yet.
bool hazards_may_lap(const Hazards *hazards, const Touch *state, TirValue *barrier);
void hazards_waited(const Hazards *hazards, Touch *state, TirValue *barrier);

Path op_path(const TirOp *op);  // PATH_NONE for an op without one
bool path_is_async(Path path);

#endif
