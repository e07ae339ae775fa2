// Scopes are chains of maps; regions are chains of parents.
#include "elab/scope.h"

Scope *scope_new(Arena *arena, Scope *parent) {
  Scope *scope = ARENA_NEW(arena, Scope);
  scope->arena = arena;
  scope->parent = parent;
  scope->names = map_new(arena);
  return scope;
}

Binding *scope_own(const Scope *scope, Name name) {
  return map_get(scope->names, name);
}

Binding *scope_find(const Scope *scope, Name name) {
  for (; scope; scope = scope->parent) {
    Binding *binding = scope_own(scope, name);
    if (binding) return binding;
  }
  return NULL;
}

Binding *scope_bind(Scope *scope, Name name, Value value, Region *region, Span span) {
  Binding *binding = scope_own(scope, name);
  if (!binding) {
    binding = ARENA_NEW(scope->arena, Binding);
    map_put(scope->names, name, binding);
  }
  *binding = (Binding){.value = value, .region = region, .span = span};
  return binding;
}

bool region_encloses(const Region *region, const Region *inner) {
  for (; inner; inner = inner->parent)
    if (inner == region) return true;
  return false;
}
