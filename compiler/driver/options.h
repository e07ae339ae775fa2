// The command line of tilec as a value. Nothing here opens a file or prints.
#ifndef TILEC_DRIVER_OPTIONS_H
#define TILEC_DRIVER_OPTIONS_H

#include "base/arena.h"
#include "base/vec.h"
#include "driver/messages.h"
#include "driver/tuning.h"
#include "elab/elab.h"

// In the order of the pipeline: a later form implies all stages before it.
typedef enum { FORM_NONE, FORM_AST, FORM_TIR, FORM_LLVM, FORM_PTX, FORM_CUBIN, FORM_COUNT } OutputForm;

typedef struct {
  const char *input;   // "-": standard input
  const char *output;  // "-": standard output; NULL: print (--emit) or no output at all
  OutputForm form;     // FORM_NONE: only check
  const char *kernel, *arch, *print_after, *stop_after, *ptxas, *header;
  const char *tuning;  // a file of settings, or NULL
  TuningSizes sizes;   // what --for says of them
  int level;
  bool level_given;
  VEC(ElabDefine) defines;
  VEC(const char *) disabled;  // passes
  MessageOptions messages;
  const char *explain;  // a code whose explanation is asked for
  bool remarks, help, version;
} Options;

// False: *message says what is wrong, with the nearest option or name where there is one.
bool options_parse(Arena *arena, int argc, char **argv, Options *out, const char **message);

// One option of a tuning file, behind the command line, which wins. False: it is none that may stand there.
bool options_tune(Arena *arena, Options *options, const char *option, const char **message);

const char *options_usage(void);

#endif
