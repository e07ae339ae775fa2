// The command line of a process that is to be started.
#ifndef TILE_CORE_TOOL_ARGS_H
#define TILE_CORE_TOOL_ARGS_H

#include <stdbool.h>

// Texts are copied; `data` ends with NULL.
typedef struct {
  char **data;
  int count;
  bool failed;  // no memory
} ArgList;

__attribute__((format(printf, 2, 3))) void args_add(ArgList *list, const char *format, ...);
// Adds FLAG=VALUE, unless the value is NULL.
void args_add_flag(ArgList *list, const char *flag, const char *value);
void args_free(ArgList *list);

#endif
