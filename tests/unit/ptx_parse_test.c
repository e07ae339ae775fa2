// The PTX parser against damage: a text with every construct that real producers write, cut at every length
// and with bytes changed. Any of them may be refused, none may crash; run it under the sanitizers.
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ptxemu.h"

static const char text[] =
    "// a comment\n.version 8.6\n.target sm_100a, debug\n.address_size 64\n"
    ".extern .shared .align 16 .b8 dyn[];\n.global .align 4 .b8 table[12] = {1, 2, 0xff, 4};\n"
    ".global .align 1 .b8 words[] = \"text\";\n.const .u32 k[2] = {3, 4};\n"
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ".func (.param .b32 out) half(.param .b32 in) { .reg .b32 %r<3>; ld.param.b32 %r1, [in]; shr.u32 %r2, "
    "%r1, 1; "
    "st.param.b32 [out], %r2; ret; }\n"
    ".visible .entry kernel(\n\t.param .align 64 .b8 map[128],\n\t.param .u64 .ptr .global .align 1 "
    "out,\n\t.param .f32 scale\n)\n"
    ".maxntid 32, 1, 1\n.minnctapersm 1\n{\n\t.reg .pred \t%p<9>;\n\t.reg .b32 \t%r<40>;\n\t.reg .b64 "
    "\t%rd<20>;\n\t.reg .f32 %f<4>;\n"
    "\t.local .align 8 .b8 depot[16];\n\t.file 1 \"a.py\"\n\t.loc\t1 7 3, function_name $L__info0, "
    "inlined_at 1 9 2\n$L__func_begin0:\n"
    "\tmov.u32 \t%r1, %tid.x;\n\tld.param.u64 %rd1, [out];\n\tmad.wide.u32 %rd2, %r1, 4, %rd1;\n\tmov.b64 "
    "%rd3, map;\n"
    "\tcvta.param.u64 %rd4, %rd3;\n\tmov.b32 %r2, dyn;\n\tadd.s32 %r3, %r2, (3 + 4 * 2) << "
    "1;\n\tsetp.lt.and.u32 %p1|%p2, %r1, 5, !%p3;\n"
    "\t@!%p1 bra   SKIP;\n\tmov.f32 %f1, 0f3F800000;\n\tmov.f32 %f2, 1.5e3;\n\tfma.rn.f32 %f3, %f1, %f2, "
    "-2.0;\nSKIP:\n"
    "{\n.reg .pred done;\n.reg .b32 %r<2>;\nwait: mbarrier.try_wait.parity.shared.b64 done, [%r3 + 0], "
    "0;\n@!done bra.uni wait;\n}\n"
    "\t{prefetch.tensormap [%rd4];}\n\tst.global.v4.b32[%rd2+-16],{%r1, 0, %r2, -1};\n\tld.shared.v2.b32 {_, "
    "%r4}, [dyn + 4*2+8];\n"
    "\tshfl.sync.bfly.b32 %r5|%p4, %r4, 0x10, 31, -1;\n\ttcgen05.mma.cta_group::1.kind::f16 [ %r2 + 0 ], "
    "%rd5, %rd6+2, %r6, %p1;\n"
    "\tcp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd4, {%r1, 0}], "
    "[%r3];\n"
    "\tts: .branchtargets A, B;\n\tbrx.idx %r1, ts;\nA: B:\n\tlop3.b32 %r7, %r1, %r2, %r3, "
    "0x96;\n\tfrobnicate.x {%r1}, [nothing], !!;\n"
    "\t{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r1; call.uni (q0), half, (p0); ld.param.b32 "
    "%r8, [q0]; }\n"
    "\t.pragma \"nounroll\";\n\tret;\n$L__func_end0:\n}\n\t.section\t.debug_abbrev { .b8 1, 2 \n .b32 a }\n";

static bool loads(const char *data, size_t length) {
  PtxEmu *emu = ptxemu_new();
  bool ok = emu != NULL && ptxemu_load(emu, "t.ptx", data, length) != NULL;
  ptxemu_free(emu);
  return ok;
}

static void test_whole(Checks *c) {
  PtxEmu *emu = ptxemu_new();
  PtxEmuModule *module = ptxemu_load(emu, "t.ptx", text, sizeof text - 1);
  CHECK_TEXT(c, ptxemu_report(emu), "");
  CHECK(c, module != NULL);
  const PtxEmuEntry *entry = module != NULL ? ptxemu_entry(module, "kernel") : NULL;
  CHECK(c, entry != NULL);
  if (entry != NULL) {
    CHECK_INT(c, entry->nparams, 3);
    CHECK_INT(c, entry->params[1].offset, 128);
    CHECK_INT(c, entry->params[2].offset, 136);
    CHECK_INT(c, entry->param_bytes, 140);
  }
  uint64_t bytes = 0;
  uint64_t table = module != NULL ? ptxemu_variable(module, "table", &bytes) : 0;
  uint8_t data[12] = {0};
  CHECK_INT(c, bytes, 12);
  CHECK(c, ptxemu_read(emu, table, data, sizeof data) && data[2] == 0xff && data[4] == 0);
  CHECK(c, !ptxemu_read(emu, table, data, 13));
  ptxemu_free(emu);
}

// A cubin stores PTX with NULs for line ends.
static void test_nul_lines(Checks *c) {
  char *copy = malloc(sizeof text);
  memcpy(copy, text, sizeof text);
  for (size_t i = 0; i < sizeof text; i++) {
    if (copy[i] == '\n') copy[i] = '\0';
  }
  CHECK(c, loads(copy, sizeof text));
  free(copy);
}

static void test_cut(Checks *c) {
  for (size_t length = 0; length < sizeof text - 1; length += 7) loads(text, length);
  for (size_t length = 97; length < sizeof text - 1; length += 97) loads(text, length);
  CHECK(c, !loads(text, 0));
  CHECK(c, !loads(text, sizeof text / 2));
}

static void test_changed(Checks *c) {
  static const char spice[] = "{}()[]<>;,.:@!%-+0x_\"/*\\9~|";
  char *copy = malloc(sizeof text);
  uint32_t state = 12345;
  int accepted = 0;
  for (int round = 0; round < 1500; round++) {
    memcpy(copy, text, sizeof text);
    for (int i = 0; i <= round % 4; i++) {
      state = state * 1664525 + 1013904223;
      size_t at = (state >> 8) % (sizeof text - 1);
      state = state * 1664525 + 1013904223;
      copy[at] = round % 2 != 0 ? (char)(state >> 16) : spice[(state >> 16) % (sizeof spice - 1)];
    }
    accepted += loads(copy, sizeof text - 1);
  }
  CHECK(c, accepted > 0 && accepted < 1500);
  free(copy);
}

// Nesting that would take the stack.
static void test_deep(Checks *c) {
  enum { DEPTH = 100000 };
  static const char head[] = ".version 8.6\n.target sm_90a\n.entry k() { .reg .b32 r; mov.u32 r, ";
  char *deep = malloc(sizeof head + DEPTH);
  const char openers[] = "({-!~";
  for (const char *opener = openers; *opener != '\0'; opener++) {
    memcpy(deep, head, sizeof head);
    memset(deep + sizeof head - 1, *opener, DEPTH);
    CHECK(c, !loads(deep, sizeof head - 1 + DEPTH));
  }
  free(deep);
}

int main(void) {
  Checks checks = {0, 0};
  test_whole(&checks);
  test_nul_lines(&checks);
  test_cut(&checks);
  test_changed(&checks);
  test_deep(&checks);
  return check_report(&checks);
}
