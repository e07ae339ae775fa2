// Names, and the regions of staged control flow they were bound in.
//
// A Scope is one running function (or the module); a closure is a scope's parent. A Region is a staged loop,
// branch or parallel body being elaborated, or the kernel itself. Python code in a region runs once at
// compile time but stands for code that runs zero or many times, so a name bound outside cannot be bound
// again inside (that needs alloc_var), and a name bound inside has no value after it.
#ifndef TILEC_ELAB_SCOPE_H
#define TILEC_ELAB_SCOPE_H

#include "base/map.h"
#include "elab/value.h"

typedef enum {
  REGION_HOST,
  REGION_KERNEL,
  REGION_LOOP,
  REGION_BRANCH,
  REGION_PARALLEL,
  REGION_REST,  // of a function's body, after a return that the device decides on
} RegionKind;

struct Region {
  Region *parent;
  RegionKind kind;
  Span span;              // the header, for notes
  int depth;              // regions around it
  bool thread_dependent;  // threads of a block may disagree about running it
  Span parted;            // …since here
};

typedef struct {
  Value value;
  Region *region;
  Span span;
  const Stmt *lazy;  // a module-level statement that binds the name and has not run yet
  bool running;      // …and is running: a use now is a cycle
} Binding;

struct Scope {
  Arena *arena;
  Scope *parent;
  Map *names;  // Name -> Binding *
};

Scope *scope_new(Arena *arena, Scope *parent);
// In this scope alone; NULL when it has no such name.
Binding *scope_own(const Scope *scope, Name name);
// In this scope and those around it.
Binding *scope_find(const Scope *scope, Name name);
// Binds or rebinds without asking.
Binding *scope_bind(Scope *scope, Name name, Value value, Region *region, Span span);

// Whether `region` is `inner` or one around it.
bool region_encloses(const Region *region, const Region *inner);

#endif
