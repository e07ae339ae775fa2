// tile-bench without a GPU: order statistics, shuffling, sizes, which product a kernel computes, when results agree,
// what reports look like, compilers as processes.
#include "bench/candidates.h"
#include "bench/compile.h"
#include "bench/data.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/stats.h"
#include "bench/tuning_file.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

// ---- Numbers

static void test_spread(Checks *checks) {
  double odd[] = {5, 1, 3, 2, 4}, even[] = {4, 1, 3, 2}, one[] = {7};
  Spread spread = stats_spread(odd, 5);
  CHECK(checks, spread.low == 2 && spread.median == 3 && spread.high == 4);
  spread = stats_spread(even, 4);
  CHECK(checks, spread.low == 1.75 && spread.median == 2.5 && spread.high == 3.25);
  spread = stats_spread(one, 1);
  CHECK(checks, spread.low == 7 && spread.median == 7 && spread.high == 7);
  spread = stats_spread(NULL, 0);
  CHECK(checks, spread.low == 0 && spread.median == 0 && spread.high == 0);
}

// Each of the six orders of three comes up about as often, and a seed repeats its order.
static void test_shuffle(Checks *checks) {
  int seen[6] = {0};
  Random random = {1}, again = {1};
  for (int i = 0; i < 6000; i++) {
    int order[3] = {0, 1, 2}, same[3] = {0, 1, 2};
    random_shuffle(&random, order, 3);
    random_shuffle(&again, same, 3);
    CHECK(checks, memcmp(order, same, sizeof order) == 0);
    CHECK_INT(checks, order[0] + order[1] + order[2], 3);
    seen[order[0] * 2 + (order[1] > order[2])]++;
  }
  for (int i = 0; i < 6; i++) CHECK(checks, seen[i] > 850 && seen[i] < 1150);
}

static void test_normal(Checks *checks) {
  Random random = {3};
  double sum = 0, squares = 0;
  for (int i = 0; i < 100000; i++) {
    double value = random_normal(&random);
    sum += value;
    squares += value * value;
  }
  CHECK(checks, fabs(sum / 1e5) < 0.02);
  CHECK(checks, fabs(squares / 1e5 - 1) < 0.02);
}

// ---- Sizes and products

static void test_sizes(Checks *checks) {
  Sizes *sizes = NULL;
  int count = 0;
  const char *wrong,
      *bad[] = {"", "8x", "8x9", "8x9x", "8x9x10x", "0x1x1", "-1", "8X9X10", "99999999999", "8,,9", "8,"};
  CHECK(checks, sizes_parse_list("8x9x10,64", &sizes, &count, &wrong));
  CHECK_INT(checks, count, 2);
  CHECK_INT(checks, sizes[0].m, 8);
  CHECK_INT(checks, sizes[0].n, 9);
  CHECK_INT(checks, sizes[0].k, 10);
  CHECK_INT(checks, sizes[1].m, 64);
  CHECK_INT(checks, sizes[1].k, 64);
  free(sizes);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK(checks, !sizes_parse_list(bad[i], &sizes, &count, &wrong));
  CHECK(checks, !sizes_parse_list("8,x,9", &sizes, &count, &wrong));
  CHECK_TEXT(checks, wrong, "x,9");
}

// A kernel with these lines of launch information, as PTX that holds nothing else.
static TileModule *module_of(const char *tensors) {
  char info[2048], text[16384];
  int length =
      snprintf(info, sizeof info,
               "tile-launch-info 1\nentry g\nkernel g\nvariant only\narch sm_90a\nblock 128\ngrid 1 1 1\n"
               "cluster 1 1 1\nshared 0\n%send\n",
               tensors);
  size_t at = (size_t)snprintf(text, sizeof text,
                               ".version 8.6\n.target sm_90a\n.address_size 64\n.const .align 1 .b8 "
                               "__tile_launch_info[%d] = {",
                               length);
  for (int i = 0; i < length; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", i ? ", " : "", info[i]);
  at += (size_t)snprintf(text + at, sizeof text - at, "};\n.visible .entry g() { ret; }\n");
  TileModule *module = NULL;
  TileError *error = tile_module_open_memory(text, at, "made.ptx", &module);
  if (error) fprintf(stderr, "%s\n", tile_error_message(error));
  tile_error_free(error);
  return module;
}

// "A B" and whether each is stored by columns: "A B c r"; or the error.
static void product_of(const char *tensors, const char *layout, char *out, size_t size) {
  TileModule *module = module_of(tensors);
  const TileKernel *kernel = module ? tile_module_kernel(module, 0) : NULL;
  Problem problem;
  TileError *error = kernel ? problem_find(kernel, layout, &problem) : NULL;
  snprintf(out, size, "no module");
  if (kernel && !error)
    snprintf(out, size, "%s %s %c %c %s", problem.a->name, problem.b->name, problem.a_by_columns ? 'c' : 'r',
             problem.b_by_columns ? 'c' : 'r', problem.k);
  if (error) snprintf(out, size, "%s", tile_error_message(error));
  tile_error_free(error);
  tile_module_close(module);
}

static void test_product(Checks *checks) {
  const struct {
    const char *tensors, *layout, *want;
  } rows[] = {
      {"tensor A bf16 read (M) (K)\ntensor B bf16 read (N) (K)\ntensor C bf16 write (M) (N)\n", NULL,
       "A B r r K"},
      {"tensor B bf16 read (K) (N)\ntensor A bf16 read (M) (K)\ntensor C f32 write (M) (N)\n", NULL,
       "A B r c K"},
      {"tensor X bf16 read (K) (M)\ntensor s f32 read (M)\ntensor Y bf16 read (N) (K)\ntensor C bf16 write "
       "(M) (N)\n",
       NULL, "X Y c r K"},
      {"tensor A bf16 read (64) (64)\ntensor B bf16 read (64) (64)\ntensor C bf16 write (64) (64)\n", NULL,
       "A B r r 64"},
      {"tensor A bf16 read (64) (64)\ntensor B bf16 read (64) (64)\ntensor C bf16 write (64) (64)\n", "nt",
       "A B c c 64"},
      {"tensor A bf16 read (M) (K)\ntensor C bf16 write (M) (N)\n", NULL,
       "kernel g: no two input matrices A (M, K) and B (N, K), either stored the other way, for its result C "
       "(M, N)"},
      {"tensor A bf16 read (M)\n", NULL, "kernel g writes no tensor"},
      {"tensor A bf16 write (M)\ntensor B bf16 write (M)\n", NULL,
       "kernel g: its result A has 1 dimension; only C (M, N) = A B is measured"},
      {"tensor A bf16 read (b) (M) (K)\ntensor C bf16 write (b) (M) (N)\n", NULL,
       "kernel g: its result C has 3 dimensions; only C (M, N) = A B is measured, no batch of products"},
      {"tensor A bf16 read (M) (K)\ntensor C bf16 readwrite (M) (N)\n", NULL,
       "kernel g reads its result C; only C = A B is measured, not C += A B"},
      {"tensor A i8 read (M) (K)\ntensor B i8 read (N) (K)\ntensor C i8 write (M) (N)\n", NULL,
       "kernel g: sums of i8 need not fit into i8, of which C is; measured are sums in i32"},
      {"tensor A i8 read (M) (K)\ntensor B i8 read (N) (K)\ntensor C i32 write (M) (N)\n", NULL, "A B r r K"},
      {"tensor A i8 read (M) (K)\ntensor B i8 read (N) (K)\ntensor C f32 write (M) (N)\n", NULL,
       "kernel g: A is of i8, C of f32; products of integers and floats are not measured"},
      {"tensor A e2m1 read (M) (K)\ntensor B e2m1 read (N) (K)\ntensor C f32 write (M) (N)\n", NULL,
       "kernel g: A is of e2m1; only elements of whole bytes are measured"},
      {"tensor A bf16 read (mul 2 M) (K)\ntensor B bf16 read (N) (K)\ntensor C bf16 write (mul 2 M) (N)\n",
       NULL, "kernel g: M is 2*M; a size that is measured has a name or is a number"},
      {"tensor A bf16 write (M) (N)\ntensor B bf16 write (M) (N)\n", NULL,
       "kernel g writes A and B; a product has one result"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char got[400];
    product_of(rows[i].tensors, rows[i].layout, got, sizeof got);
    CHECK_TEXT(checks, got, rows[i].want);
  }
}

// ---- Results

static void test_compare(Checks *checks) {
  uint16_t want[4] = {0x3F80, 0x4000, 0xBF80, 0x0000}, got[4];  // 1 2 -1 0 in bf16
  Difference difference;
  memcpy(got, want, sizeof got);
  CHECK(checks, data_compare(TILE_BF16, (uint8_t *)got, (uint8_t *)want, 4, 0.02, &difference));
  CHECK(checks, difference.wrong == 0 && difference.elements == 4 && difference.relative == 0);
  got[1] = 0x4001;  // a unit in the last place
  CHECK(checks, data_compare(TILE_BF16, (uint8_t *)got, (uint8_t *)want, 4, 0.02, &difference));
  CHECK(checks, difference.wrong == 0 && difference.relative > 0);
  got[2] = 0x7FC0;  // NaN
  got[3] = 0x3F80;
  CHECK(checks, data_compare(TILE_BF16, (uint8_t *)got, (uint8_t *)want, 4, 0.02, &difference));
  CHECK(checks,
        difference.wrong == 2 && difference.first == 2 && isnan(difference.got) && difference.want == -1);
  int32_t left[2] = {100000, 5}, right[2] = {100000, 6};
  CHECK(checks, data_compare(TILE_I32, (uint8_t *)left, (uint8_t *)right, 2, 0, &difference));
  CHECK(checks, difference.wrong == 1 && difference.first == 1);
}

// A product made from the blocks passes the samples; with one operand read the other way it does not.
static void test_samples(Checks *checks) {
  enum { M = 24, N = 40, K = 32 };
  const TileParam a_param = {.dtype = TILE_F32}, b_param = {.dtype = TILE_F32}, c_param = {.dtype = TILE_F32};
  Problem problem = {.a = &a_param, .b = &b_param, .c = &c_param};
  Sizes sizes = {M, N, K};
  Block a, b;
  CHECK(checks, !block_make(TILE_F32, 1, &a) && !block_make(TILE_F32, 2, &b));
  float c[M * N] = {0};
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < K; k++) c[i * N + j] += a.values[i * K + k] * b.values[j * K + k];
  Difference difference;
  data_check_samples(&problem, sizes, &a, &b, (uint8_t *)c, 5, &difference);
  CHECK(checks, difference.wrong == 0 && difference.elements > 100 && difference.relative < 1e-5);
  problem.b_by_columns = true;
  data_check_samples(&problem, sizes, &a, &b, (uint8_t *)c, 5, &difference);
  CHECK(checks, difference.wrong > 100);
  block_free(&a);
  block_free(&b);
}

// ---- Reports

static Row row_of(int64_t size, double kernel, double peer) {
  Row row = {
      .sizes = {size, size, size}, .narms = 2, .has_peer = true, .sets = 1, .launches = 3, .repetitions = 20};
  snprintf(row.arms[0].name, sizeof row.arms[0].name, "a<b\"&");
  snprintf(row.arms[1].name, sizeof row.arms[1].name, "cublasLt");
  row.arms[1].is_peer = true;
  row.arms[0].random =
      (Timing){{kernel, kernel, kernel * 1.1}, {peer / kernel, peer / kernel, peer / kernel}, 0};
  row.arms[1].random = (Timing){{peer, peer, peer}, {0, 0, 0}, 0};
  for (int i = 0; i < 2; i++)
    row.arms[i].random.flops = sizes_flops(row.sizes) / row.arms[i].random.seconds.median;
  return row;
}

static char *written(void (*writer)(FILE *, const ReportHead *, const Row *, int), const Row *rows,
                     int count) {
  ReportHead head = {.program = "1",
                     .gpu = "G <1>",
                     .driver = "",
                     .sms = 4,
                     .peer_path = "/p",
                     .product = "C = A",
                     .operand = "bf16",
                     .result = "bf16"};
  char *text = NULL;
  size_t length = 0;
  FILE *file = open_memstream(&text, &length);
  if (!file) return NULL;
  writer(file, &head, rows, count);
  fclose(file);
  return text;
}

static int count_of(const char *text, const char *what) {
  int count = 0;
  for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) count++;
  return count;
}

static void test_svg(Checks *checks) {
  const Row rows[] = {row_of(1024, 4e-6, 5e-6), row_of(2048, 2e-5, 2.5e-5), row_of(4096, 2e-4, 2e-4)};
  char *text = written(report_svg, rows, 3);
  CHECK_INT(checks, count_of(text, "<polyline"), 2);
  CHECK_INT(checks, count_of(text, "<circle"), 6);
  CHECK_INT(checks, count_of(text, "a&lt;b\"&amp;"), 1);
  CHECK_INT(checks, count_of(text, "G &lt;1>"), 1);
  CHECK_INT(checks, count_of(text, "1024³"), 1);
  CHECK_INT(checks, count_of(text, "nan"), 0);
  CHECK_INT(checks, count_of(text, "</svg>"), 1);
  free(text);
  text = written(report_svg, NULL, 0);
  CHECK_INT(checks, count_of(text, "</svg>"), 1);
  free(text);
}

static void test_json(Checks *checks) {
  const Row rows[] = {row_of(1024, 4e-6, 5e-6)};
  char *text = written(report_json, rows, 1);
  CHECK_INT(checks, count_of(text, "\"name\": \"a<b\\\"&\""), 1);
  CHECK_INT(checks, count_of(text, "\"ratio\": [1.25, 1.25, 1.25]"), 1);
  CHECK_INT(checks, count_of(text, "\"peer\": true"), 1);
  CHECK_INT(checks, count_of(text, "{") - count_of(text, "}"), 0);
  free(text);
}

static void test_nodes(Checks *checks) {
  char text[200], full[24];
  const GraphKernel kernel = {.name = "k", .grid = {2, 3, 1}, .block = {32, 4, 1}, .each = 1};
  graph_others_text(&(GraphNodes){.fills = 2, .copies = 1, .others = 0.5}, text, sizeof text);
  CHECK_TEXT(checks, text, "2 fills of memory, 1 copy, 0.5 other node");
  graph_others_text(&(GraphNodes){.nkernels = 1}, text, sizeof text);
  CHECK_TEXT(checks, text, "");
  graph_kernel_text(&kernel, full, sizeof full);  // cut, not past the end
  CHECK_TEXT(checks, full, "k, 2x3x1 blocks of 128 ");
}

// ---- Processes

static void test_compile(Checks *checks) {
  char *good[] = {"/bin/sh", "-c", "echo said; exit 0", NULL},
       *bad[] = {"/bin/sh", "-c", "echo no >&2; exit 3", NULL};
  char *missing[] = {"/nowhere/tilec", NULL}, *killed[] = {"/bin/sh", "-c", "kill -9 $$", NULL};
  CompileJob jobs[] = {{.argv = good}, {.argv = bad}, {.argv = missing}, {.argv = killed}, {.argv = good}};
  CHECK(checks, !compile_run(jobs, 5, 2));
  CHECK_INT(checks, jobs[0].status, 0);
  CHECK_TEXT(checks, jobs[0].messages, "said\n");
  CHECK_INT(checks, jobs[1].status, 3);
  CHECK_TEXT(checks, jobs[1].messages, "no\n");
  CHECK_INT(checks, jobs[2].status, -1);
  CHECK_TEXT(checks, jobs[2].messages, "cannot start /nowhere/tilec: No such file or directory\n");
  CHECK_INT(checks, jobs[3].status, -1);
  CHECK_INT(checks, jobs[4].status, 0);
  for (int i = 0; i < 5; i++) free(jobs[i].messages);
}

// ---- Tuning

// The candidates' texts with ' | ' between them; or the error.
static void candidates_of(const char *spec, char *out, size_t size) {
  Candidates candidates;
  TileError *error = candidates_parse("spec", spec, &candidates);
  size_t length = 0;
  snprintf(out, size, "%s", tile_error_message(error));
  for (int i = 0; i < candidates.count && length < size; i++)
    length += (size_t)snprintf(out + length, size - length, "%s%s", i ? " | " : "", candidates.all[i].text);
  tile_error_free(error);
  candidates_free(&candidates);
}

static void test_candidates(Checks *checks) {
#define FORM "; a specification is axes NAME=VALUE,VALUE,... and sizes=MxNxK,..., groups end with ';'"
  const struct {
    const char *spec, *want;
  } rows[] = {
      {"b=1,2 a=3", "a=3 b=1 | a=3 b=2"},
      {"a=1,2 b=3,4", "a=1 b=3 | a=1 b=4 | a=2 b=3 | a=2 b=4"},
      {"a=1 option=none,-O3 # here\n option=--no-x", "a=1 --no-x | a=1 --no-x -O3"},
      {"a=1; b=2,3; a=1", "a=1 | b=2 | b=3"},
      {"sizes=8,4x5x6 a=1", "a=1"},
      {"", "spec:1:1: no candidates" FORM},
      {"a=1\n  b=,2", "spec:2:5: expected a value, not ',2'" FORM},
      {"a=1,", "spec:1:5: expected a value" FORM},
      {"a", "spec:1:1: expected NAME=VALUE,..., not 'a'" FORM},
      {"1a=2", "spec:1:1: expected NAME=VALUE,..., not '1a=2'" FORM},
      {"a=1 a=2", "spec:1:5: an axis is given twice in a group, not 'a=2'" FORM},
      {"option=O3", "spec:1:8: expected an option of tilec, as -O3, or none, not 'O3'" FORM},
      {"a=1 sizes=8,9x9", "spec:1:13: expected MxNxK or a number, not '9x9'" FORM},
      {"a=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33 "
       "b=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32",
       "spec: more than 1024 candidates"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char got[8192];
    candidates_of(rows[i].spec, got, sizeof got);
    CHECK_TEXT(checks, got, rows[i].want);
  }
#undef FORM
}

static void check_file(Checks *checks, const char *path, const char *want) {
  char got[2000] = "";
  FILE *file = fopen(path, "r");
  if (file) got[fread(got, 1, sizeof got - 1, file)] = '\0';
  if (file) fclose(file);
  CHECK_TEXT(checks, got, want);
}

// Entries are replaced and sorted by number; other entries stay, tidied.
static void test_tuning_lines(Checks *checks, const char *path) {
  TuningLines lines;
  char key[200];
  const Problem problem = {.m = "M", .n = "N", .k = "K"};
  TileError *error = tuning_lines_read("/nowhere/at/all", true, &lines);
  CHECK(checks, !error && lines.count == 0);
  FILE *file = fopen(path, "w");
  fputs("tile-tuning 1\n# a comment\n\nother  sm_9\tM=1 set x=1 gpu \"A  B\"\n"
        "gemm sm_9 M=4096 N=1 K=2 set a=1 rate 5 gpu \"G\"\n",
        file);
  fclose(file);
  CHECK(checks, !tuning_lines_read(path, true, &lines));
  CHECK_INT(checks, lines.count, 2);
  tuning_key("gemm", "sm_9", &problem, (Sizes){4096, 1, 2}, key, sizeof key);
  char *found = tuning_lines_find(&lines, key);
  CHECK_TEXT(checks, found, "a=1");
  free(found);
  CHECK(checks, tuning_lines_put(&lines, key, "a=2 -O3", 7.25, "G"));
  tuning_key("gemm", "sm_9", &problem, (Sizes){512, 1, 2}, key, sizeof key);
  CHECK(checks, tuning_lines_find(&lines, key) == NULL);
  CHECK(checks, tuning_lines_put(&lines, key, "a=3", 1, "G"));
  CHECK(checks, !tuning_lines_write(&lines, path));
  check_file(checks, path,
             "tile-tuning 1\ngemm sm_9 M=512 N=1 K=2 set a=3 rate 1.0 gpu \"G\"\n"
             "gemm sm_9 M=4096 N=1 K=2 set a=2 -O3 rate 7.2 gpu \"G\"\n"
             "other sm_9 M=1 set x=1 gpu \"A  B\"\n");
  tuning_lines_free(&lines);
  file = fopen(path, "w");
  fputs("tile-tuning 2\n", file);
  fclose(file);
  error = tuning_lines_read(path, true, &lines);
  CHECK(checks, strstr(tile_error_message(error), "its first line is not 'tile-tuning 1'") != NULL);
  tile_error_free(error);
  unlink(path);
}

int main(void) {
  Checks checks = {0};
  test_spread(&checks);
  test_shuffle(&checks);
  test_normal(&checks);
  test_sizes(&checks);
  test_product(&checks);
  test_compare(&checks);
  test_samples(&checks);
  test_svg(&checks);
  test_json(&checks);
  test_nodes(&checks);
  test_compile(&checks);
  test_candidates(&checks);
  test_tuning_lines(&checks, "bench_test.tuning");
  return check_report(&checks);
}
