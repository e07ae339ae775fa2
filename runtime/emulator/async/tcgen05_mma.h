// A tcgen05.mma whose operands have been read: made by the handler (tcgen05_mma.c), carried out by the tensor
// engine (tcgen05_compute.c).
#ifndef PTXEMU_ASYNC_TCGEN05_MMA_H
#define PTXEMU_ASYNC_TCGEN05_MMA_H

#include "async/idesc.h"

// Where D lives in tensor memory (PTX ISA 9.7.16.10.5). C is for sparse instructions only.
typedef enum { LAYOUT_A, LAYOUT_B, LAYOUT_D, LAYOUT_E, LAYOUT_F, LAYOUT_G } DLayout;

typedef struct {
  EngineOp op;
  Idesc idesc;
  DLayout layout;
  int group;
  uint32_t d;  // tensor memory address
  bool a_in_tmem;
  uint32_t a_address;
  SmemDesc a, b;
  bool read_d;
  int d_scale_down;
  uint64_t zero_columns;  // .ws: descriptor of the columns of B that count as zero; 0: none
  bool masked;            // disable-output-lane: bit i = do not write lane i (of both CTAs, 128 each)
  uint32_t mask[8];
  uint32_t scale_a, scale_b;  // tensor memory addresses
  int scale_vector;           // scales per row: 0 for unscaled kinds
} MmaOp;

DLayout mma_layout(const Idesc *idesc, int group, bool ws);
// Lane and column, relative to D's column and lane, of row `row` of a CTA's part and column `n`.
void mma_place(DLayout layout, int columns, int row, int n, int *lane, int *column);
// Columns of tensor memory that D takes in each CTA.
int mma_d_columns(DLayout layout, int columns);

bool mma_complete(Machine *machine, EngineOp *op);

#endif
