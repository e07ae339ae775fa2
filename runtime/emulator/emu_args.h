// Command line of tile-emu, turned into arrays in emulated memory and a parameter block.
#ifndef PTXEMU_EMU_ARGS_H
#define PTXEMU_EMU_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "npy/npy.h"
#include "ptxemu.h"

enum { MOST_ARGS = 256, MOST_ARRAYS = 256, MOST_PARAM_BYTES = 1 << 16 };

typedef struct {
  char name[64];
  char out_path[512];  // empty: not written
  Npy npy;             // shape and bytes; data only until it has been copied
  int bits;            // of an element: 4 for packed pairs
  uint64_t address;
} EmuArray;

typedef struct {
  PtxEmu *emu;
  EmuArray arrays[MOST_ARRAYS];
  int narrays;
  uint8_t params[MOST_PARAM_BYTES];
  char error[1024];
} EmuArgs;

// Handles one --arg for a parameter: declares arrays, writes the value at param->offset. false: args->error
// says why.
bool emu_args_add(EmuArgs *args, const char *text, const PtxEmuParam *param);
// Writes every out: and inout: array.
bool emu_args_write(EmuArgs *args);
void emu_args_free(EmuArgs *args);

// "X[,Y[,Z]]" with numbers from 1; missing ones are 1.
bool emu_parse_dims(const char *text, uint32_t dims[3]);

#endif
