// VEC(T): a growable array in an arena. The only container macro of the project.
#ifndef TILEC_BASE_VEC_H
#define TILEC_BASE_VEC_H

#include "base/arena.h"

#define VEC(T)                                                                                               \
  struct {                                                                                                   \
    T *data;                                                                                                 \
    int len, cap;                                                                                            \
  }

// Makes room for `extra` more elements of `size` bytes and returns the (perhaps moved) data.
void *vec_reserve(Arena *arena, void *data, int len, int *cap, int extra, size_t size);

#define vec_push(arena, vec, value)                                                                          \
  ((vec)->data = vec_reserve((arena), (vec)->data, (vec)->len, &(vec)->cap, 1, sizeof *(vec)->data),         \
   (vec)->data[(vec)->len++] = (value))

#endif
