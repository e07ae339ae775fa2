// The front end under bad weather: every truncation and many mutations of sample kernels, hostile nesting,
// and the parts of the tree that the printed form does not show. Whatever the text, parse() returns, and
// either it reports an error or it says that there was none; what it returned can be printed.
#include "syntax/syntax.h"

#include <stdlib.h>

#include "check.h"

static const char declared_parameters[] =
    "SIZES = (128, 256)\n"
    "@kernel\n"
    "def gemm(A: Tensor[(M, K), bfloat16],\n"
    "         C: Tensor[(M, N), bfloat16], *rest,\n"
    "         block_M=128, flag: bool = True, **more):\n"
    "    \"\"\"A tile at a time.\"\"\"\n"
    "    with Kernel(ceildiv(N, block_N), threads=128) as (bx, by):\n"
    "        S = alloc_shared((block_M, block_K), bfloat16)\n"
    "        for k in Pipelined(ceildiv(K, block_K), num_stages=3):\n"
    "            copy(A[by * block_M, k * block_K:(k + 1) * block_K], S[:, ::2])\n"
    "            if 0 <= k < 3 and not flag or k is not None:\n"
    "                acc += -2 ** 3 // 4 % 0x5\n"
    "            elif k == 1: pass; x = 1.5e3\n"
    "            else:\n"
    "                x: float32 = lo if k else hi\n"
    "        assert M % 2 == 0, f\"M = {M!r:>{w}} {k=} not {{even}}\" 'x\\n'\n"
    "        a = b, *c = [i for i in range(3) if i], lambda x, y=2: {x: y, **c}\n"
    "        # a comment\n"
    "    return C\n";

static const char eager[] =
    "import tilelang\n"
    "from tilelang import language as T\n"
    "N: int = 4\n"
    "\n"
    "class Config:\n"
    "    x = [(\n"
    "\n"
    "@tilelang.jit(out_idx=[-1], pass_configs={\"a.b\": True})\n"
    "def outer(M, N, K, block_M: int = 128):\n"
    "    @T.macro\n"
    "    def scale(S: T.FragmentBuffer, i, /, j):\n"
    "        S[i] *= j if j else \\\n"
    "            2\n"
    "    @T.prim_func\n"
    "    def main(A: T.Tensor([M, K], \"bfloat16\"), B: T.Tensor((N, K), T.bfloat16)) -> None:\n"
    "        with (T.Kernel(T.ceildiv(N, 8), 1, threads=128) as (bx, by), Other()):\n"
    "            while T.ceildiv(M, 8) > 0:\n"
    "                try:\n"
    "                    T.copy(A[bx * 8, 0], S)\n"
    "                except (E, F) as e:\n"
    "                    raise e from None\n"
    "                break\n"
    "    return main\n"
    "\n"
    "def broken(x y):\n"
    "    return (x\n"
    "\n"
    "if __name__ == \"__main__\":\n"
    "    print(f'{outer(1, 2, 3):{4}}')\n";

typedef struct {
  Arena *arena;
  Diags *ds;
  const Source *source;
  const Module *module;
  Interner *interner;
  bool ok;
} Parsed;

// The text gets a block of its own, so that a sanitizer sees a read behind its end.
static Parsed parse_text(const char *path, const char *text, size_t len) {
  Parsed p = {.arena = arena_new()};
  p.source = source_from_text(p.arena, path, text, (uint32_t)len);
  p.ds = diags_new(p.arena, p.source);
  p.interner = interner_new(p.arena);
  p.ok = parse(p.arena, p.interner, p.source, p.ds, &p.module);
  return p;
}

// Whether a parse kept its promise; prints its tree into nothing.
static bool is_sound(Parsed *p, FILE *nowhere) {
  if (!p->module || p->ok != (diags_errors(p->ds) == 0)) return false;
  ast_print(nowhere, p->module);
  for (int i = 0; i < p->module->body.count; i++) {
    const Stmt *stmt = p->module->body.stmts[i];
    if (stmt->kind != STMT_UNPARSED) continue;
    int before = diags_errors(p->ds);
    syntax_report_unparsed(p->arena, p->interner, p->source, stmt, p->ds);
    if (diags_errors(p->ds) == before && !diags_at_limit(p->ds)) return false;
  }
  return true;
}

static void check_text_is_sound(Checks *checks, FILE *nowhere, const char *path, const char *text,
                                size_t len) {
  Parsed p = parse_text(path, text, len);
  if (!CHECK(checks, is_sound(&p, nowhere))) fprintf(stderr, "--- %s\n%.*s\n---\n", path, (int)len, text);
  arena_free(p.arena);
}

static void truncations(Checks *checks, FILE *nowhere, const char *path, const char *text) {
  for (size_t len = 0; len <= strlen(text); len++) check_text_is_sound(checks, nowhere, path, text, len);
}

// Every place gets a byte less, a byte twice, and a third of the bytes that mean something (TILE_TEST_LONG:
// all).
static void mutations(Checks *checks, FILE *nowhere, const char *path, const char *text) {
  static const char bytes[] = "()[]{}:;\"'\n\t #\\@=,.f0*!\r\xc3\x01";
  size_t len = strlen(text), step = getenv("TILE_TEST_LONG") ? 1 : 3;
  char *copy = malloc(len + 2);
  for (size_t at = 0; at < len; at++) {
    memcpy(copy, text, len + 1);
    for (size_t i = at % step; i < sizeof bytes - 1; i += step) {
      copy[at] = bytes[i];
      check_text_is_sound(checks, nowhere, path, copy, len);
    }
    memcpy(copy + at, text + at + 1, len - at);
    check_text_is_sound(checks, nowhere, path, copy, len - 1);
    memcpy(copy, text, at + 1);
    memcpy(copy + at + 1, text + at, len - at + 1);
    check_text_is_sound(checks, nowhere, path, copy, len + 1);
  }
  free(copy);
}

// Each piece repeated until the text is a megabyte, behind a beginning.
static void hostile(Checks *checks, FILE *nowhere) {
  static const char *const pieces[][2] = {
      {"", "("},
      {"", "["},
      {"", "{"},
      {"", "{a:"},
      {"", "a("},
      {"", "f(b="},
      {"", "not "},
      {"", "-"},
      {"x = a", "**a"},
      {"x = a", ".a"},
      {"x = a", "[0]"},
      {"x = a", "()"},
      {"x = a", "+a"},
      {"x = a", "<a"},
      {"x = a", " and a"},
      {"x = ", "a if b else "},
      {"x = ", "lambda:"},
      {"x = ", "lambda a="},
      {"", "@a\n"},
      {"", "a="},
      {"", "await "},
      {"x = ", "f'{"},
      {"x = ", "f\"{f'{"},
      {"x = f'{a:", "{a:"},
      {"", " "},
      {"", "\t"},
      {"", "\n"},
      {"", "\\\n"},
      {"", "#"},
      {"", "a"},
      {"", "1"},
      {"x = '", "a"},
      {"x = \"\"\"", "\n"},
      {"x = [b for b in c", " if d"},
      {"x = ", "'a' "},
      {"", ")"},
      {"", "if x:\n"},
      {"if x: y\n", "elif x: y\n"},
      {"def f(", "a,"},
      {"f(", "a=1,"},
  };
  enum { SIZE = 1 << 20 };
  char *text = malloc(SIZE + 64);
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    size_t len = strlen(pieces[i][0]), step = strlen(pieces[i][1]);
    memcpy(text, pieces[i][0], len);
    for (; len + step <= SIZE; len += step) memcpy(text + len, pieces[i][1], step);
    Parsed p = parse_text("hostile.tile", text, len);
    if (!CHECK(checks, is_sound(&p, nowhere))) fprintf(stderr, "hostile piece '%s'\n", pieces[i][1]);
    arena_free(p.arena);
  }
  free(text);
}

// Blocks as deep as they may be parse; one deeper is an error.
static void block_depth(Checks *checks) {
  for (int depth = AST_MAX_BLOCK_DEPTH; depth <= AST_MAX_BLOCK_DEPTH + 1; depth++) {
    TextBuf text = {.arena = arena_new()};
    textbuf_puts(&text, "def f():\n");
    for (int i = 1; i < depth; i++) textbuf_printf(&text, "%*sif x:\n", i, "");
    textbuf_printf(&text, "%*spass\n", depth, "");
    Parsed p = parse_text("deep.tile", text.data, text.len);
    CHECK_INT(checks, p.ok, depth == AST_MAX_BLOCK_DEPTH);
    arena_free(p.arena);
    arena_free(text.arena);
  }
}

// Expressions as deep as they may be parse, and say so.
static void expression_depth(Checks *checks) {
  for (int depth = AST_MAX_EXPR_DEPTH; depth <= AST_MAX_EXPR_DEPTH + 1; depth++) {
    TextBuf text = {.arena = arena_new()};
    textbuf_puts(&text, "x = a");
    for (int i = 1; i < depth; i++) textbuf_puts(&text, "+a");
    Parsed p = parse_text("deep.tile", text.data, text.len);
    CHECK_INT(checks, p.ok, depth == AST_MAX_EXPR_DEPTH);
    if (p.ok) CHECK_INT(checks, p.module->body.stmts[0]->assign.value->depth, depth);
    arena_free(p.arena);
    arena_free(text.arena);
  }
}

static void python_file(Checks *checks) {
  Parsed p = parse_text("eager.py", eager, strlen(eager));
  CHECK(checks, p.ok);
  if (CHECK_INT(checks, p.module->body.count, 3)) {
    const Stmt *const *stmts = p.module->body.stmts;
    CHECK_INT(checks, stmts[0]->kind, STMT_ANN_ASSIGN);
    CHECK_INT(checks, stmts[1]->kind, STMT_FUNCTION);
    CHECK_INT(checks, stmts[2]->kind, STMT_UNPARSED);
    CHECK_TEXT(checks, stmts[2]->unparsed.name, "broken");
    syntax_report_unparsed(p.arena, p.interner, p.source, stmts[2], p.ds);
    CHECK_INT(checks, diags_errors(p.ds), 2);
  }
  arena_free(p.arena);
}

// Spans point at the text of their node, whatever stands around it.
static void spans(Checks *checks) {
  static const char text[] = "\xef\xbb\xbf"
                             "x = (a + f(b,\r\n  c=1)) # end";
  Parsed p = parse_text("spans.tile", text, strlen(text));
  if (CHECK(checks, p.ok && p.module->body.count == 1)) {
    const Expr *sum = p.module->body.stmts[0]->assign.value;
    const Arg *arg = &sum->binary.rhs->call.args[1];
    CHECK_INT(checks, p.module->body.stmts[0]->span.begin, 3);
    CHECK_INT(checks, sum->span.begin, 8);
    CHECK_INT(checks, arg->kind, ARG_KEYWORD);
    CHECK_INT(checks, arg->name_span.begin, 20);
    CHECK_INT(checks, arg->name_span.end, 21);
    CHECK_INT(checks, arg->span.end, 23);
  }
  arena_free(p.arena);
}

int main(void) {
  Checks checks = {0};
  FILE *nowhere = fopen("/dev/null", "w");
  if (!nowhere) return 1;
  Parsed p = parse_text("sample.tile", declared_parameters, strlen(declared_parameters));
  CHECK(&checks, p.ok && p.module->body.count == 2);
  arena_free(p.arena);
  python_file(&checks);
  spans(&checks);
  block_depth(&checks);
  expression_depth(&checks);
  truncations(&checks, nowhere, "sample.tile", declared_parameters);
  truncations(&checks, nowhere, "sample.tile", eager);
  truncations(&checks, nowhere, "sample.py", eager);
  mutations(&checks, nowhere, "sample.tile", declared_parameters);
  mutations(&checks, nowhere, "sample.py", eager);
  hostile(&checks, nowhere);
  fclose(nowhere);
  return check_report(&checks);
}
