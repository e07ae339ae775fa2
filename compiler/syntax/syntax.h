// The room's door: text to tree, and tree to text for --emit=ast.
//
// A path that ends in `.py` is read as a Python program that holds kernels: it is cut by indentation into
// top-level pieces, and only functions and assignments are parsed. An assignment that does not parse is
// dropped, since a kernel that needs it will report the unknown name; a function that does not parse becomes
// STMT_UNPARSED, reported only when somebody needs that function. Everything else in the file is skipped,
// however wrong. In any other file (`.tile`) everything is parsed, and top-level statements that are not
// functions, assignments or a string are reported.
#ifndef TILEC_SYNTAX_SYNTAX_H
#define TILEC_SYNTAX_SYNTAX_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/diag.h"
#include "syntax/ast.h"

// Sets *out to the tree. False: at least one error was reported, and *out holds what could be read all the
// same (so that the caller may look for more mistakes, or not). The tree and all text in it live in `arena`.
bool parse(Arena *arena, Interner *interner, const Source *source, Diags *ds, const Module **out);

// Reports the errors that made `stmt` a STMT_UNPARSED; reports at least one. For a kernel that was asked for,
// or a function that one calls.
void syntax_report_unparsed(Arena *arena, Interner *interner, const Source *source, const Stmt *stmt,
                            Diags *ds);

// How an operator is written, for messages: "//", "not in".
const char *unary_op_text(UnaryOp op);
const char *binary_op_text(BinaryOp op);
const char *compare_op_text(CompareOp op);

// Prints the tree, a node a line: kind, its own words, line:column; children are indented. The text depends
// on the source alone.
void ast_print(FILE *out, const Module *module);

#endif
