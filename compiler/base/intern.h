// Interned names: one pointer per distinct spelling, so that names compare with ==.
#ifndef TILEC_BASE_INTERN_H
#define TILEC_BASE_INTERN_H

#include "base/arena.h"

typedef const char *Name;  // NUL-terminated, unique within its Interner

typedef struct Interner Interner;

Interner *interner_new(Arena *arena);
Name intern(Interner *interner, const char *text);
Name intern_n(Interner *interner, const char *text, size_t len);

#endif
