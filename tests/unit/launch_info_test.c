// The parser of launch information: the document's own example, one message for each mistake, and damage of
// every kind.
#include <stdlib.h>

#include "check.h"
#include "core/launch_info.h"

// docs/launch-info.md, with a scalar.
static const char example[] = "tile-launch-info 1\n"
                              "entry gemm\n"
                              "kernel gemm\n"
                              "variant tma\n"
                              "arch sm_100a\n"
                              "block 128\n"
                              "grid (ceildiv N 256) (ceildiv M 128) 1\n"
                              "cluster 1 1 1\n"
                              "shared 99376\n"
                              "tensor A bf16 read (M) (K)\n"
                              "tensor C bf16 write (M) (N)\n"
                              "map 0 A box 128 64 swizzle 128 load\n"
                              "guard A load\n"
                              "guard C store\n"
                              "check (eq (floormod K 64) 0) gemm.tile:12:5: K must be a multiple of 64\n"
                              "param ptr A\n"
                              "param size M\n"
                              "param stride A 0\n"
                              "param map 0\n"
                              "param scalar scale f32\n"
                              "end\n";

static TileError *parse(Pool *pool, const char *text, size_t length, LaunchInfo *out) {
  return launch_info_parse(pool, "x", text, length, out);
}

static void test_example(Checks *checks) {
  Pool pool = {0};
  LaunchInfo launch_info;
  TileError *error = parse(&pool, example, strlen(example), &launch_info);
  if (CHECK(checks, error == NULL) && CHECK_INT(checks, launch_info.nentries, 1)) {
    const InfoEntry *entry = launch_info.entries;
    CHECK_TEXT(checks, entry->entry, "gemm");
    CHECK_TEXT(checks, entry->variant, "tma");
    CHECK_INT(checks, entry->block, 128);
    CHECK_INT(checks, entry->shared, 99376);
    CHECK_INT(checks, entry->ntensors, 2);
    CHECK_INT(checks, entry->tensors[1].access, TILE_WRITE);
    CHECK_TEXT(checks, entry->tensors[1].dims[1]->name, "N");
    CHECK_INT(checks, entry->maps[0].box[0], 128);
    CHECK_INT(checks, entry->maps[0].swizzle, 128);
    CHECK_INT(checks, entry->nguards, 2);
    CHECK_TEXT(checks, entry->checks[0].message, "gemm.tile:12:5: K must be a multiple of 64");
    static const uint32_t offsets[] = {0, 8, 16, 64, 192};
    for (int i = 0; i < 5; i++) CHECK_INT(checks, entry->params[i].offset, offsets[i]);
    CHECK_INT(checks, entry->param_bytes, 196);
  }
  tile_error_free(error);
  pool_free(&pool);
}

// The line stands in no text of compilers before it.
static void test_overlap(Checks *checks) {
  static const char *const lines[] = {"", "overlap 0\n", "overlap 1\n"};
  for (int i = 0; i < 3; i++) {
    Pool pool = {0};
    LaunchInfo launch_info;
    char text[2048];
    const char *at = strstr(example, "tensor A");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - example), example, lines[i], at);
    TileError *error = parse(&pool, text, strlen(text), &launch_info);
    if (CHECK(checks, error == NULL)) CHECK_INT(checks, launch_info.entries[0].overlap, i == 2);
    tile_error_free(error);
    pool_free(&pool);
  }
}

// The example with the first `old` replaced; the error must contain `message`.
static void refuses(Checks *checks, const char *old, const char *new, const char *message) {
  char text[2048];
  const char *at = strstr(example, old);
  if (!CHECK(checks, at != NULL)) return;
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - example), example, new, at + strlen(old));
  Pool pool = {0};
  LaunchInfo launch_info;
  TileError *error = parse(&pool, text, strlen(text), &launch_info);
  CHECK_INT(checks, tile_error_status(error), TILE_INVALID);
  if (!CHECK(checks, strstr(tile_error_message(error), message) != NULL))
    fprintf(stderr, "  %s\n", tile_error_message(error));
  tile_error_free(error);
  pool_free(&pool);
}

static void test_mistakes(Checks *checks) {
  refuses(checks, "guard A", "overlap 2\nguard A", "whether launches overlap is 2, not 0 to 1");
  refuses(checks, "guard A", "overlap 1\noverlap 1\nguard A", "a second line \"overlap\"");
  refuses(checks, "tile-launch-info 1", "tile-launch-info 2",
          "format version 2; this runtime reads version 1");
  refuses(checks, "tile-launch-info 1", "hello", "does not start with");
  refuses(checks, "kernel gemm\n", "", "no line \"kernel\"");
  refuses(checks, "block 128", "block 128\nblock 64", "line 7: a second line \"block\"");
  refuses(checks, "block 128", "block 2000", "the block is 2000, not 1 to 1024");
  refuses(checks, "block 128", "block 128 1", "unexpected");
  refuses(checks, "block 128", "blok 128", "\"blok\" is unknown");
  refuses(checks, "variant tma", "variant fast", "\"fast\" is no variant");
  refuses(checks, "tensor A bf16 read", "tensor A bf17 read", "\"bf17\" is no dtype");
  refuses(checks, "tensor A bf16 read", "tensor A bf16 reads", "\"reads\" is no access");
  refuses(checks, "tensor A bf16 read (M) (K)", "tensor A bf16 read", "has no dimension");
  refuses(checks, "tensor C", "tensor A", "declared twice");
  refuses(checks, "map 0 A", "map 1 A", "map 1 follows 0 maps");
  refuses(checks, "map 0 A", "map 0 Q", "no tensor \"Q\"");
  refuses(checks, "box 128 64 swizzle 128", "box 128 65 swizzle 128", "not a multiple of 16 bytes");
  refuses(checks, "box 128 64 swizzle 128", "box 128 64 swizzle 64",
          "128 bytes, more than the swizzle of 64");
  refuses(checks, "box 128 64", "box 300 64", "a box dimension is 300");
  refuses(checks, "swizzle 128", "swizzle 96", "no swizzle");
  refuses(checks, "grid (ceildiv N 256) (ceildiv M 128) 1", "grid (ceildiv N 256)",
          "an expression is missing");
  refuses(checks, "grid (ceildiv N 256)", "grid (ceildiv N)", "an expression is missing");
  refuses(checks, "grid (ceildiv N 256)", "grid (ceildiv N 256 1)", "wrong number of operands");
  refuses(checks, "param stride A 0", "param stride A 1", "a dimension with a stride is 1, not 0 to 0");
  refuses(checks, "param map 0", "param map 1", "a map's index is 1, not 0 to 0");
  refuses(checks, "param scalar scale f32", "param scalar C f32", "C is a tensor and a scalar");
  refuses(checks, "param scalar scale f32", "param scalar scale e2m1", "cannot be of type e2m1");
  refuses(checks, "end\n", "", "has no \"end\"");
  refuses(checks, "end\n", "end\nend\n", "\"end\" without an entry");
  refuses(checks, "end\n", "end\nblock 3\n", "outside of an entry");
  refuses(checks, "end\n", "end\nentry gemm\n", "entry gemm stands twice");
  refuses(checks, "end\n",
          "end\nentry g2\nkernel gemm\nvariant general\narch sm_100a\nblock 1\ngrid 1 1 1\ncluster 1 1 "
          "1\nshared 0\n"
          "tensor A f16 read (M) (K)\ntensor C bf16 write (M) (N)\nparam scalar scale f32\nend\n",
          "differ in arguments");
}

static void try_text(Checks *checks, const char *text, size_t length) {
  char *exact = malloc(length ? length : 1);
  memcpy(exact, text, length);
  Pool pool = {0};
  LaunchInfo launch_info;
  TileError *error = parse(&pool, exact, length, &launch_info);
  CHECK(checks, error || launch_info.nentries > 0);
  tile_error_free(error);
  pool_free(&pool);
  free(exact);
}

static void test_damage(Checks *checks) {
  size_t length = strlen(example);
  for (size_t cut = 0; cut <= length; cut++) try_text(checks, example, cut);
  static const char values[] = {'\0', '\n', ' ', '(', ')', '9', '-', 'x', '\x80'};
  char text[sizeof example];
  for (size_t at = 0; at < length; at++) {
    for (size_t v = 0; v < sizeof values; v++) {
      memcpy(text, example, sizeof example);
      text[at] = values[v];
      try_text(checks, text, length);
    }
  }
  uint32_t random = 99;
  for (int round = 0; round < 3000; round++) {
    memcpy(text, example, sizeof example);
    for (int i = 0; i < 4; i++) {  // copy a stretch of the text over another one
      random = random * 1664525 + 1013904223;
      size_t from = (random >> 4) % length, to = (random >> 14) % length, n = 1 + (random >> 26);
      if (from + n <= length && to + n <= length) memmove(text + to, text + from, n);
    }
    try_text(checks, text, length);
  }
}

int main(void) {
  Checks checks = {0};
  test_example(&checks);
  test_overlap(&checks);
  test_mistakes(&checks);
  test_damage(&checks);
  return check_report(&checks);
}
