// Bytes as a specification of candidates (tile-bench --tune); every candidate must have settings that stand in order.
#include "bench/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "fuzz.h"

static void check(const Candidates *candidates) {
  for (int i = 0; i < candidates->count; i++) {
    const Candidate *candidate = &candidates->all[i];
    size_t length = 0;
    for (int k = 0; k < candidate->count; k++) length += strlen(candidate->settings[k]) + (k > 0);
    if (length != strlen(candidate->text)) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Candidates candidates;
  char *text = calloc(size + 1, 1);
  if (!text) return 0;
  memcpy(text, data, size);
  TileError *error = candidates_parse("spec", text, &candidates);
  if (!error) check(&candidates);
  tile_error_free(error);
  candidates_free(&candidates);
  free(text);
  return 0;
}
