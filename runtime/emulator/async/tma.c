// The tiled copy engine. A box is walked row by row (a row is dimension 0): global address, whether the outer
// coordinates lie in the tensor, and where the row goes in the shared tile. Loads fill what is outside,
// element by element; stores clip dimension 0 at 16-byte granularity, as hardware was measured to do, and so
// may write past a row's end. Stores have two stages, since .read waits tell them apart.
#include "async/tma.h"

#include <stdlib.h>
#include <string.h>

#include "num/num.h"

// A row of the box.
typedef struct {
  bool inside;      // all outer coordinates are in the tensor
  uint64_t global;  // address of coordinate 0 = at[0], when inside
  uint32_t linear;  // bytes from the start of the shared tile, before swizzling
} Row;

static uint32_t row_count(const TmaOp *op) {
  if (op->mode != TILE_BOX) return 4;
  uint32_t rows = 1;
  for (int i = 1; i < op->map.rank; i++) rows *= tensor_map_box(&op->map, i);
  return rows;
}

static Row row_at(const TmaOp *op, uint32_t index) {
  const TensorMap *map = &op->map;
  Row row = {.inside = true, .linear = index * tensor_map_pitch(map)};
  row.global = map->address + (uint64_t)((int64_t)op->at[0] * map->global_bits / 8);
  uint32_t rest = index;
  for (int i = 1; i < map->rank; i++) {
    int64_t at;
    if (op->mode == TILE_BOX) {
      uint32_t box = tensor_map_box(map, i);
      at = (int64_t)op->at[i] + (int64_t)(rest % box) * map->step[i];
      rest /= box;
    } else {
      at = op->at[1 + index];
    }
    if (at < 0 || (uint64_t)at >= map->size[i]) row.inside = false;
    row.global += (uint64_t)at * map->stride[i];
  }
  return row;
}

// The elements of the box's row that lie in the tensor: [*first, *end).
static void row_extent(const TmaOp *op, int64_t *first, int64_t *end) {
  int64_t box = op->map.box[0], at = op->at[0], size = (int64_t)op->map.size[0];
  *first = at < 0 ? -at : 0;
  *end = size - at < box ? size - at : box;
  if (*first > box) *first = box;
  if (*end < *first) *end = *first;
}

static void fill_row(const TensorMap *map, uint8_t *row, uint32_t bytes) {
  memset(row, 0, bytes);
  if (!map->fill_nan) return;
  for (uint32_t i = 0; i + 1 < bytes; i += 2) row[i] = 0xF7, row[i + 1] = 0x7F;
}

static void round_to_tf32(uint8_t *row, uint32_t bytes) {
  for (uint32_t i = 0; i + 3 < bytes; i += 4) {
    float value;
    memcpy(&value, row + i, 4);
    value = num_tf32_round(value, NUM_RN);
    uint32_t bits = num_f32_bits(value) & ~0x1FFFu;  // a NaN keeps 0x7FFFE000
    memcpy(row + i, &bits, 4);
  }
}

static bool read_global(Machine *machine, const TmaOp *op, uint64_t address, uint64_t bytes, uint8_t *out) {
  const uint8_t *host = gmem_find(machine->gmem, address, bytes, &machine->gmem_hint);
  if (!host) {
    const GmemBlock *below = gmem_block(machine->gmem, address, 0);
    machine_fault_at(
        machine, &op->op.origin,
        "TMA reads 0x%llx to 0x%llx, which is no allocated global memory (nearest below: %s, 0x%llx, "
        "%llu bytes); the tensor map starts at 0x%llx",
        (unsigned long long)address, (unsigned long long)(address + bytes), below ? below->name : "none",
        below ? (unsigned long long)below->base : 0, below ? (unsigned long long)below->bytes : 0,
        (unsigned long long)op->map.address);
    return false;
  }
  memcpy(out, host, bytes);
  engine_event(machine, &op->op, EVENT_ASYNC_READ, op->op.origin.cta, SPACE_GLOBAL, address, bytes);
  return true;
}

// One row in shared-memory form, except for padding of 4- and 6-bit types.
static bool load_row(Machine *machine, const TmaOp *op, const Row *row, uint8_t *out, uint32_t bytes) {
  int64_t first, end;
  row_extent(op, &first, &end);
  fill_row(&op->map, out, bytes);
  if (!row->inside || first == end) return true;
  int64_t from = first * op->map.global_bits / 8, to = (end * op->map.global_bits + 7) / 8;
  if (!read_global(machine, op, row->global + (uint64_t)from, (uint64_t)(to - from), out + from))
    return false;
  if (op->map.to_tf32) round_to_tf32(out + from, (uint32_t)(to - from));
  return true;
}

static void flip_halves(uint8_t unit[16]) {
  uint8_t low[8];
  memcpy(low, unit, 8);
  memcpy(unit, unit + 8, 8);
  memcpy(unit + 8, low, 8);
}

// Copies between a row's bytes and the swizzled tile, 16 bytes at a time. `unit_bytes` of each row unit are
// data: 16, or 8 and 12 for padded types.
static void move_row(const TensorMap *map, uint8_t *smem, uint32_t start, uint8_t *row, uint32_t units,
                     uint32_t unit_bytes, bool to_shared) {
  for (uint32_t unit = 0; unit < units; unit++) {
    uint32_t address = start + unit * 16;
    uint8_t *shared = smem + swizzle_address(map->swizzle, address, 0), bytes[16] = {0};
    bool flip = map->swizzle == SWIZZLE_128B_ATOM_32B_FLIP_8B && address >> 7 & 1;
    if (!to_shared) {
      memcpy(bytes, shared, 16);
      if (flip) flip_halves(bytes);
      memcpy(row + unit * unit_bytes, bytes, unit_bytes);
      continue;
    }
    memcpy(bytes, row + unit * unit_bytes, unit_bytes);
    if (flip) flip_halves(bytes);
    memcpy(shared, bytes, 16);
  }
}

static uint32_t unit_bytes(const TensorMap *map) {
  return 16u * (uint32_t)map->global_bits / (uint32_t)map->shared_bits;
}
static uint32_t row_units(const TensorMap *map) {
  return map->box[0] * (uint32_t)map->shared_bits / 128;
}

// The tile's extent: swizzling permutes within aligned spans, so that a tile which starts inside a pattern
// may reach a little beyond its linear end; rounding to the pattern is not needed, since XOR stays within
// 1024 aligned bytes.
static bool tile_in_bounds(Machine *machine, const TmaOp *op, const Cta *cta) {
  uint64_t bytes = (uint64_t)row_count(op) * tensor_map_pitch(&op->map);
  return async_shared(machine, &op->op.origin, cta, op->shared, bytes, "TMA tile") != NULL;
}

static Cta *signal_cta(const TmaOp *op, Cta *destination) {
  Cta *named = op->op.barrier_cta;
  Cluster *cluster = destination->cluster;
  if (op->pair_signal) return &cluster->ctas[(destination->rank & ~1u) | (named->rank & 1)];
  return op->op.barrier_ranks ? destination : named;
}

static bool target_lives(Machine *machine, const TmaOp *op, const Cta *cta) {
  if (!cta_async(cta)->ended) return true;
  machine_fault_at(machine, &op->op.origin,
                   "TMA writes to the shared memory of CTA %u of the cluster, which has exited", cta->rank);
  return false;
}

bool tma_complete_load(Machine *machine, EngineOp *base) {
  TmaOp *op = (TmaOp *)base;
  Cluster *cluster = op->op.origin.cta->cluster;
  uint32_t rows = row_count(op), bytes = row_units(&op->map) * unit_bytes(&op->map);
  uint8_t row_data[256 * 8];
  for (uint32_t rank = 0; rank < (uint32_t)cluster->nctas; rank++)
    if (op->ranks >> rank & 1 && (!target_lives(machine, op, &cluster->ctas[rank]) ||
                                  !tile_in_bounds(machine, op, &cluster->ctas[rank])))
      return false;
  for (uint32_t r = 0; r < rows; r++) {
    Row row = row_at(op, r);
    if (!load_row(machine, op, &row, row_data, bytes)) return false;
    for (uint32_t rank = 0; rank < (uint32_t)cluster->nctas; rank++)
      if (op->ranks >> rank & 1)
        move_row(&op->map, cluster->ctas[rank].smem, op->shared + row.linear, row_data, row_units(&op->map),
                 unit_bytes(&op->map), true);
  }
  for (uint32_t rank = 0; rank < (uint32_t)cluster->nctas; rank++) {
    if (!(op->ranks >> rank & 1)) continue;
    Cta *cta = &cluster->ctas[rank];
    engine_event(machine, base, EVENT_ASYNC_WRITE, cta, SPACE_SHARED, op->shared,
                 (uint64_t)rows * tensor_map_pitch(&op->map));
    if (!mbarrier_complete_tx(machine, &base->origin, signal_cta(op, cta), base->barrier,
                              (uint64_t)rows * bytes))
      return false;
  }
  return true;
}

// ---- stores

static bool store_read(Machine *machine, TmaOp *op) {
  Cta *cta = op->op.origin.cta;
  uint32_t rows = row_count(op), bytes = row_units(&op->map) * unit_bytes(&op->map);
  if (!tile_in_bounds(machine, op, cta)) return false;
  uint8_t *tile = op->op.buffer = malloc((size_t)rows * bytes);
  if (!tile) {
    machine_fault_at(machine, &op->op.origin, "the emulator is out of memory");
    return false;
  }
  for (uint32_t r = 0; r < rows; r++)
    move_row(&op->map, cta->smem, op->shared + r * tensor_map_pitch(&op->map), tile + (size_t)r * bytes,
             row_units(&op->map), unit_bytes(&op->map), false);
  engine_event(machine, &op->op, EVENT_ASYNC_READ, cta, SPACE_SHARED, op->shared,
               (uint64_t)rows * tensor_map_pitch(&op->map));
  FOR_LANES(lane, op->op.group_lanes) op->op.groups[lane].read++;
  op->op.again = true;
  return true;
}

static void report_clip(Machine *machine, const TmaOp *op, uint64_t excess) {
  machine_finding(machine, CHECK_BOUNDS, &op->op.origin,
                  "a TMA store clips at 16 bytes: rows of %llu elements of %d bits end inside of 16 bytes, "
                  "and %llu bytes "
                  "past their end are written",
                  (unsigned long long)op->map.size[0], op->map.global_bits, (unsigned long long)excess);
}

static bool write_global(Machine *machine, const TmaOp *op, uint64_t address, const uint8_t *data,
                         uint64_t exact, uint64_t clipped) {
  uint8_t *host = gmem_find(machine->gmem, address, clipped, &machine->gmem_hint);
  uint64_t bytes = clipped;
  // What hardware writes past the end of an allocation lands in its padding and is lost.
  if (!host && clipped > exact) host = gmem_find(machine->gmem, address, bytes = exact, &machine->gmem_hint);
  if (!host) {
    machine_fault_at(
        machine, &op->op.origin,
        "TMA writes 0x%llx to 0x%llx, which is no allocated global memory; the tensor map starts at 0x%llx",
        (unsigned long long)address, (unsigned long long)(address + exact),
        (unsigned long long)op->map.address);
    return false;
  }
  if (op->reduce == REDUCE_NONE) {
    memcpy(host, data, bytes);
  } else {
    uint64_t size = (uint64_t)op->map.global_bits / 8;
    for (uint64_t i = 0; i + size <= bytes; i += size)
      tma_reduce_element(op->map.element, op->reduce, host + i, data + i);
  }
  engine_event(machine, &op->op, EVENT_ASYNC_WRITE, op->op.origin.cta, SPACE_GLOBAL, address, bytes);
  return true;
}

bool tma_complete_store(Machine *machine, EngineOp *base) {
  TmaOp *op = (TmaOp *)base;
  if (!base->buffer) return store_read(machine, op);
  const uint8_t *tile = base->buffer;
  uint32_t rows = row_count(op), bytes = row_units(&op->map) * unit_bytes(&op->map);
  int64_t first, end;
  row_extent(op, &first, &end);
  uint64_t exact = (uint64_t)(end * op->map.global_bits + 7) / 8, clipped = (exact + 15) / 16 * 16;
  if (clipped > bytes) clipped = bytes;
  bool ok = true;
  for (uint32_t r = 0; r < rows && ok && exact > 0; r++) {
    Row row = row_at(op, r);
    if (row.inside) ok = write_global(machine, op, row.global, tile + (size_t)r * bytes, exact, clipped);
  }
  if (ok && exact > 0 && clipped > exact) report_clip(machine, op, clipped - exact);
  return ok;
}
