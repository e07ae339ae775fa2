// The text form of tile IR: parse(print(m)) == m. Grammar in docs/tile-ir.md.
#ifndef TILEC_TIR_TEXT_H
#define TILEC_TIR_TEXT_H

#include "tir/tir.h"

void tir_print(TextBuf *out, const TirModule *module);
// NULL when the text is wrong: reported with its place in `source`. Never crashes on any input.
TirModule *tir_parse(Arena *arena, Interner *names, const Source *source, Diags *ds);
// Checks what every op promises and what kernel->facts claim. False: reported (a broken invariant of ours, or
// a bad .tir file).
bool tir_verify(const TirModule *module, Diags *ds);

#endif
