// The order in which workers take tiles, so that those that run at the same time read the same rows and columns.
#ifndef TILEC_TIR_TILES_H
#define TILEC_TIR_TILES_H

#include "tir/build.h"

// Where tile number `tile` lies in a domain of fast x slow tiles. The slow dimension is cut into groups of `group` tiles; a
// group's tiles are numbered along the slow dimension first, then along the fast one. The last group may be narrower:
// numbers run on without a gap, so that every tile has exactly one number below fast * slow. Numbers of tiles are not
// negative; that neither are the coordinates can be seen from their ops.
void tir_tile_at(TirBuilder *b, TirValue *tile, TirValue *fast, TirValue *slow, TirValue *group, TirValue **i,
                 TirValue **j);

#endif
