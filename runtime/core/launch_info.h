// Launch information as read from the text of docs/launch-info.md: entries, and the kernels that they are
// variants of.
#ifndef TILE_CORE_LAUNCH_INFO_H
#define TILE_CORE_LAUNCH_INFO_H

#include "core/expr.h"

typedef struct {
  const char *name;
  TileDType dtype;
  TileAccess access;
  int rank;
  const Expr *dims[TILE_MAX_RANK];  // outermost first
} InfoTensor;

typedef struct {
  const char *name;
  TileDType dtype;
} InfoScalar;

typedef struct {
  int tensor;                       // index into InfoEntry.tensors
  uint32_t box[TILE_MAX_MAP_RANK];  // elements, outermost first
  int swizzle;                      // bytes: 0, 32, 64, 128
  bool store;
} InfoMap;

typedef struct {
  int tensor;
  bool store;
} InfoGuard;

typedef struct {
  const Expr *condition;
  const char *message;
} InfoCheck;

typedef enum { INFO_POINTER, INFO_SIZE, INFO_STRIDE, INFO_MAP, INFO_SCALAR } InfoParamKind;

typedef struct {
  InfoParamKind kind;
  int index;         // of the tensor, map or scalar
  int dim;           // INFO_STRIDE: outermost 0
  const char *name;  // INFO_SIZE
  uint32_t offset;   // in the parameter block
  uint32_t bytes;
} InfoParam;

typedef struct {
  const char *entry, *kernel, *variant, *arch;
  uint32_t block, cluster[3], shared;  // shared: bytes
  bool overlap;                        // it may begin while the launch before it in the stream ends
  const Expr *grid[3];
  InfoTensor *tensors;
  InfoScalar *scalars;
  InfoMap *maps;
  InfoGuard *guards;
  InfoCheck *checks;
  InfoParam *params;
  int ntensors, nscalars, nmaps, nguards, nchecks, nparams;
  uint32_t param_bytes;
} InfoEntry;

typedef struct {
  InfoEntry *entries;
  int nentries;
} LaunchInfo;

// Reads the whole text; strings and arrays go to the pool. The error names `file` and the line in the text.
TileError *launch_info_parse(Pool *pool, const char *file, const char *text, size_t length, LaunchInfo *out);

#endif
