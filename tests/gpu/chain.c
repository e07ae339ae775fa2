// B has one 1 or -1 in each row and column, so that every product permutes the columns of the one before and changes
// signs: exact in any type, never the same twice, and what must come out is a sum of indices. A block that runs before
// its inputs are there, or writes what is still read, leaves a wrong number.
#include "chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "number.h"

enum { BUFFERS = 3 };  // A, and the two that results take turns in

typedef struct {
  TileDevice *device;
  const Chain *chain;
  TileDType dtype;
  int bytes;           // of an element
  uint64_t memory[4];  // A, first result, second result, B
  int *from, *sign;    // of a column: which column of the product before, and its sign
  uint8_t *image;
} State;

static int64_t image_bytes(const State *s) {
  return s->chain->side * s->chain->side * s->bytes;
}

// Small whole numbers, which differ between neighbours.
static double value_of(int64_t row, int64_t column) {
  return (double)((row * 7 + column * 13) % 15 - 7);
}

static void draw_permutation(State *s) {
  Random random = {1};
  int n = (int)s->chain->side;
  for (int i = 0; i < n; i++) s->from[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int other = (int)random_range(&random, 0, i), kept = s->from[i];
    s->from[i] = s->from[other];
    s->from[other] = kept;
  }
  for (int i = 0; i < n; i++) s->sign[i] = random_chance(&random, 50) ? 1 : -1;
}

static double start(const State *s, int64_t row, int64_t column) {
  (void)s;
  return value_of(row, column);
}

static double of_b(const State *s, int64_t row, int64_t column) {
  return s->from[row] == column ? s->sign[row] : 0;
}

// After all launches.
static double expected(const State *s, int64_t row, int64_t column) {
  int sign = 1;
  for (int i = 0; i < s->chain->launches; i++) {
    sign *= s->sign[column];
    column = s->from[column];
  }
  return sign * value_of(row, column);
}

static TileError *place(State *s, int index, double (*element)(const State *, int64_t, int64_t)) {
  int64_t n = s->chain->side;
  memset(s->image, 0xff, (size_t)image_bytes(s));
  for (int64_t i = 0; element && i < n * n; i++)
    number_encode(s->dtype, element(s, i / n, i % n), s->image + i * s->bytes);
  uint64_t bytes = (uint64_t)(image_bytes(s) + s->chain->offset);
  TileError *error = tile_alloc(s->device, bytes, "a matrix", &s->memory[index]);
  if (error) return error;
  return tile_write(s->device, s->memory[index] + (uint64_t)s->chain->offset, s->image,
                    (uint64_t)image_bytes(s));
}

static TileError *bind(const State *s, TileCall *call, const char *name, int index) {
  int64_t shape[] = {s->chain->side, s->chain->side};
  TileTensor tensor = {s->memory[index] + (uint64_t)s->chain->offset, s->dtype, 2, shape, NULL};
  return tile_call_tensor(call, name, &tensor);
}

static TileError *make_call(const State *s, const TileKernel *kernel, int from, int to, TileCall **call) {
  TileError *error = tile_call_new(kernel, call);
  if (!error) error = bind(s, *call, "A", from);
  if (!error) error = bind(s, *call, "B", BUFFERS);
  return error ? error : bind(s, *call, "C", to);
}

static TileError *launch_all(const State *s, const TileKernel *kernel, void *stream) {
  TileCall *calls[BUFFERS] = {0};  // A to the first, first to second, second to first
  TileError *error = NULL;
  for (int i = 0; i < BUFFERS && !error; i++) error = make_call(s, kernel, i, i == 1 ? 2 : 1, &calls[i]);
  for (int i = 0; i < s->chain->launches && !error; i++)
    error = tile_call_launch(calls[i == 0 ? 0 : 2 - i % 2], stream);
  if (!error) error = tile_synchronize(s->device, stream);
  for (int i = 0; i < BUFFERS; i++) tile_call_free(calls[i]);
  return error;
}

static bool is_right(const State *s, char *why, size_t room) {
  int64_t n = s->chain->side;
  for (int64_t i = 0; i < n * n; i++) {
    double is = number_decode(s->dtype, s->image + i * s->bytes), should = expected(s, i / n, i % n);
    if (is == should) continue;
    snprintf(why, room, "element %lld of product %d is %g, should be %g", (long long)i, s->chain->launches,
             is, should);
    return false;
  }
  return true;
}

static TileError *run(State *s, const TileKernel *kernel, void *stream) {
  TileError *error = place(s, 0, start);
  if (!error) error = place(s, 1, NULL);
  if (!error) error = place(s, 2, NULL);
  if (!error) error = place(s, BUFFERS, of_b);
  if (!error) error = launch_all(s, kernel, stream);
  int last = s->chain->launches % 2 ? 1 : 2;
  if (error) return error;
  return tile_read(s->device, s->memory[last] + (uint64_t)s->chain->offset, s->image,
                   (uint64_t)image_bytes(s));
}

bool chain_run(TileDevice *device, const TileKernel *kernel, void *stream, const Chain *chain, char *why,
               size_t room) {
  State s = {.device = device, .chain = chain, .dtype = tile_kernel_param(kernel, 0)->dtype};
  s.bytes = number_bytes(s.dtype);
  s.from = calloc((size_t)chain->side, sizeof *s.from);
  s.sign = calloc((size_t)chain->side, sizeof *s.sign);
  s.image = malloc((size_t)image_bytes(&s));
  bool ok = s.from && s.sign && s.image;
  if (ok) {
    draw_permutation(&s);
    TileError *error = run(&s, kernel, stream);
    if (error) snprintf(why, room, "%s", tile_error_message(error));
    ok = !error && is_right(&s, why, room);
    tile_error_free(error);
  }
  for (int i = 0; i <= BUFFERS; i++)
    if (s.memory[i]) tile_error_free(tile_free(device, s.memory[i]));
  free(s.from);
  free(s.sign);
  free(s.image);
  return ok;
}
