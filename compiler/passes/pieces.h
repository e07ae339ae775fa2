// Cuts long runs of work on fragments into pieces of columns or rows.
#ifndef TILEC_PASSES_PIECES_H
#define TILEC_PASSES_PIECES_H

#include "passes/pass.h"

enum { PIECE_VALUES = 64 };  // fragment values that a thread may hold in a run before it is cut

// Needs the layouts of lay_out_fragments, and leaves new ones where it cut.
void cut_pieces(PassCx *cx, TirKernel *kernel);

#endif
