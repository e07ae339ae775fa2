// The PTX of a file that tile-emu is given.
#ifndef PTXEMU_EMU_FILE_H
#define PTXEMU_EMU_FILE_H

#include <stddef.h>

typedef struct {
  char *bytes;      // the file, to be freed; NULL: see error
  const char *ptx;  // within it
  size_t length;    // of the PTX
  int is_cubin;
  char error[200];  // a sentence without the file's name
} EmuFile;

// PTX text as it is, or the PTX that a cubin holds in its section .nv_debug_ptx_txt (tilec and ptxas -lineinfo put it
// there).
EmuFile emu_file_read(const char *path);

#endif
