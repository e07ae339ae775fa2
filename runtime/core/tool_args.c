// What could not be added is missing from the list, which then says so.
#include "core/tool_args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void args_add(ArgList *list, const char *format, ...) {
  char **data = realloc(list->data, (size_t)(list->count + 2) * sizeof *data);
  va_list args;
  if (data) list->data = data;
  va_start(args, format);
  if (!data || vasprintf(&data[list->count], format, args) < 0)
    list->failed = true;
  else
    data[++list->count] = NULL;
  va_end(args);
}

void args_add_flag(ArgList *list, const char *flag, const char *value) {
  if (value) args_add(list, "%s=%s", flag, value);
}

void args_free(ArgList *list) {
  for (int i = 0; i < list->count; i++) free(list->data[i]);
  free(list->data);
  *list = (ArgList){0};
}
