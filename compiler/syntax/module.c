// parse(): a file to a Module. Decides what of a file is looked at: everything in a .tile file, functions and
// constants in a .py file, where each is parsed by itself so that a mistake in one cannot hurt another.
#include "syntax/syntax.h"

#include <string.h>

#include "syntax/syntax_internal.h"
#include "syntax/parser.h"

static bool is_python_file(const Source *source) {
  size_t len = strlen(source->path);
  return len >= 3 && strcmp(source->path + len - 3, ".py") == 0;
}

static const char only_definitions[] = "the top level of a .tile file holds functions and constants only";

static void report_unsupported(Parser *px, const Stmt *stmt) {
  bool is_reported = px_error(px, DIAG_not_supported, stmt->span,
                              "%s is not supported at the top level of a .tile file", stmt->what);
  if (is_reported && strstr(stmt->what, "import")) {
    diag_hint(px->ds,
              "remove the line: the names of the language are known without it, with and without 'T.'");
  }
}

// Whether a top-level statement of a .tile file means something to elaboration. Others are reported, but for
// those that mean nothing anywhere.
static bool belongs_to_module(Parser *px, const Stmt *stmt) {
  px->has_statement = true;
  switch (stmt->kind) {
  case STMT_FUNCTION:
  case STMT_ASSIGN:
  case STMT_ANN_ASSIGN:
    return true;
  case STMT_EXPR:
    if (stmt->value->kind != EXPR_STRING)
      px_error(px, DIAG_not_supported, stmt->span, "%s", only_definitions);
    return false;
  case STMT_UNSUPPORTED:
    report_unsupported(px, stmt);
    return false;
  case STMT_PASS:
    return false;
  case STMT_RETURN:
  case STMT_IF:
  case STMT_FOR:
  case STMT_WHILE:
  case STMT_WITH:
  case STMT_AUG_ASSIGN:
  case STMT_ASSERT:
  case STMT_RAISE:
  case STMT_BREAK:
  case STMT_CONTINUE:
  case STMT_UNPARSED:
    px_error(px, DIAG_not_supported, stmt->span, "%s", only_definitions);
    break;
  }
  return false;
}

void module_append(Parser *px, const StmtVec *stmts, StmtVec *module) {
  for (int i = 0; i < stmts->len; i++) {
    if (!px->is_tile_file || belongs_to_module(px, stmts->data[i]))
      vec_push(px->arena, module, stmts->data[i]);
  }
}

static uint32_t text_begin(const Source *source) {
  return source->len >= 3 && memcmp(source->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static void parse_tile_file(Parser *px, StmtVec *module) {
  px->is_tile_file = true;
  px_run(px, TOK_START_FILE, text_begin(px->source), px->source->len);
  if (px->errors == 0 && !px->has_statement) {
    px_error(px, DIAG_source_file, (Span){0, 0}, "the file holds no statement");
  }
  *module = px->statements;
}

// The statements of a constant: names bound once, evaluated when a kernel asks for them.
static bool is_constant(const Stmt *stmt) {
  if (stmt->kind == STMT_ANN_ASSIGN)
    return stmt->ann_assign.target->kind == EXPR_NAME && stmt->ann_assign.value;
  if (stmt->kind != STMT_ASSIGN) return false;
  for (int i = 0; i < stmt->assign.targets.count; i++) {
    ExprKind kind = stmt->assign.targets.items[i]->kind;
    if (kind != EXPR_NAME && kind != EXPR_TUPLE) return false;
  }
  return true;
}

static const Stmt *unparsed(Parser *px, const Chunk *chunk) {
  Stmt *stmt = stmt_new(px, STMT_UNPARSED, chunk->name);
  uint32_t len = chunk->name.end - chunk->name.begin;
  stmt->unparsed.name = intern_n(px->interner, px->source->text + chunk->name.begin, len);
  stmt->unparsed.name_span = chunk->name;
  stmt->unparsed.text = (Span){chunk->begin, chunk->end};
  return stmt;
}

// A file with more broken functions than this is no Python: the first of them too many is reported, and that
// is all.
enum { MOST_UNPARSED = 200 };

static void parse_python_file(Parser *file, StmtVec *module) {
  Arena *arena = file->arena;
  Interner *interner = file->interner;
  const Source *source = file->source;
  Diags *quiet = diags_new(arena, source);
  int nunparsed = 0;
  uint32_t at = text_begin(source);
  Chunk chunk;
  while (splitter_next(source, &at, &chunk)) {
    if (chunk.kind == CHUNK_OTHER) continue;
    Parser px = px_new(arena, interner, source, quiet);
    px_run(&px, TOK_START_FILE, chunk.begin, chunk.end);
    if (px.errors) {
      if (chunk.kind == CHUNK_FUNCTION) vec_push(arena, module, unparsed(&px, &chunk));
      if (++nunparsed > MOST_UNPARSED) {
        px_error(file, DIAG_syntax, chunk.name, "more than %d pieces of this file are not Python",
                 MOST_UNPARSED);
        return;
      }
      quiet = diags_new(arena, source);
      continue;
    }
    for (int i = 0; i < px.statements.len; i++) {
      const Stmt *stmt = px.statements.data[i];
      if (stmt->kind == STMT_FUNCTION || is_constant(stmt)) vec_push(arena, module, stmt);
    }
  }
}

bool parse(Arena *arena, Interner *interner, const Source *source, Diags *ds, const Module **out) {
  Parser px = px_new(arena, interner, source, ds);
  StmtVec statements = {0};
  if (is_python_file(source)) {
    parse_python_file(&px, &statements);
  } else {
    parse_tile_file(&px, &statements);
  }
  Module *module = ARENA_NEW(arena, Module);
  module->source = source;
  module->body = block_of(&statements);
  *out = module;
  return px.errors == 0;
}

void syntax_report_unparsed(Arena *arena, Interner *interner, const Source *source, const Stmt *stmt,
                            Diags *ds) {
  Parser px = px_new(arena, interner, source, ds);
  px_run(&px, TOK_START_FILE, stmt->unparsed.text.begin, stmt->unparsed.text.end);
}
