// Where the elements of a buffer live, decided by passes and read by code generation.
//
// A fragment layout maps (thread, register) to an element: the row-major index of the element is the sum of
// digit x stride over mixed-radix digits of the thread number and of the register number, least significant
// first. A thread mode of stride 0 replicates. Elements at or past the buffer's size do not exist (a ragged
// tail). A shared layout is row-major, or cut into panels of `span` bytes of the last dimension with the
// hardware's XOR swizzle (PTX ISA 5.5.7: 32B, 64B, 128B): panel p = column / panel_columns starts at p * rows
// * span bytes. A TMEM layout names columns of the kernel's one allocation: rows are lanes, blocks of 128
// rows follow in columns; of 64 rows, each warp's 32 lanes hold 16 in the lower half; of 32 rows, each warp's lanes
// hold another quarter of the columns. A column is a 32-bit word: it
// holds one element, or in a packed buffer as many as fit, the first in the low bits.
#ifndef TILEC_TYPES_LAYOUT_H
#define TILEC_TYPES_LAYOUT_H

#include <stdint.h>

#include "base/text.h"
#include "types/type.h"

enum { LAYOUT_MAX_MODES = 6 };

typedef enum { LAYOUT_FRAGMENT, LAYOUT_SHARED, LAYOUT_TMEM } LayoutKind;

typedef struct {
  int64_t extent, stride;  // stride in elements of the row-major index
} LayoutMode;

typedef struct {
  LayoutKind kind;
  // LAYOUT_FRAGMENT
  int nthread_modes, nregister_modes;
  LayoutMode thread[LAYOUT_MAX_MODES], reg[LAYOUT_MAX_MODES];
  // LAYOUT_SHARED
  int span;        // bytes: 0 (row-major, no swizzle), 32, 64 or 128
  int64_t offset;  // byte offset in the kernel's shared memory; -1 before the smem pass
  // LAYOUT_TMEM
  int column;   // first column in the kernel's allocation; -1 before the tmem pass
  int columns;  // 32-bit columns taken
  int packed;   // elements in a column: 1, or as many as 32 bits hold
} Layout;

// The standard fragment layouts, for a buffer type and the number of threads that hold it.
// flat: consecutive threads hold consecutive vectors of up to 16 bytes (coalesced); right for any shape and
// count.
Layout layout_flat(const Type *type, int threads);
// row: thread t holds row t mod 128 (TMEM's 32x32b access); warpgroups beyond the first split the columns. 64 rows
// take half of the lanes: each warp has 16 rows, and its upper 16 threads the second half of the columns (16x32bx2).
// Of 32 rows each warp has all, and a quarter of the columns. The buffer has rank 2 and 32 rows, 64 or a multiple of
// 128; threads is a multiple of 128. False when that does not divide.
bool layout_row(const Type *type, int threads, Layout *out);
// blocked: as many threads as divide a row evenly share it, in vectors of up to 16 bytes; the others take other
// rows. Right for any shape and count; fragments that are indexed by the row or the column alone can follow it.
Layout layout_blocked(const Type *type, int threads);
// mma: the fragment of a wgmma accumulator (PTX ISA 9.7.15.5.1, figure D), also of a 16-bit A operand: warpgroups share
// blocks of 64 rows evenly, then the columns; of 64 rows warp w has 16, thread t of it rows t / 4 and t / 4 + 8 and, of
// every 8 columns, 2 (t mod 4) and the next. False when rows, columns or threads do not divide so.
bool layout_mma(const Type *type, int threads, Layout *out);
// Every thread holds everything.
Layout layout_replicated(const Type *type, int threads);
// The layout a lower-rank fragment needs so that iteration (thread, register) of `over` (a layout of `shape`)
// finds there the element given by the dimensions listed in `dims` (each a dimension of shape, in the order
// of the lower-rank buffer). Thread digits of other dimensions become replication, register digits of them
// disappear. A mode that runs through several dimensions is cut at their ends; false when it does not divide
// there, or when modes carry.
bool layout_project(const Layout *over, const Type *shape, const int *dims, int ndims, Layout *out);

// The thread digits along one dimension, where threads must work together to reduce it: those within a warp that
// powers of two separate (lane), and all others (slot). `stride` here is the distance in thread numbers. False: the layout cannot
// be projected on the other dimensions.
typedef struct {
  int nlane, nslot;
  LayoutMode lane[LAYOUT_MAX_MODES], slot[LAYOUT_MAX_MODES];
  int64_t slots;  // the product of the slots' extents
} LayoutAcross;
bool layout_across(const Layout *over, const Type *shape, int dim, LayoutAcross *out);

bool layout_equal(const Layout *a, const Layout *b);
bool layout_held_whole(const Layout *fragment);    // every thread holds the same elements
int64_t layout_registers(const Layout *fragment);  // register slots per thread
int64_t layout_threads(const Layout *fragment);
// The row-major element index held by (thread, register); may be >= the element count on a ragged tail.
int64_t layout_element(const Layout *fragment, int64_t thread, int64_t reg);

// The swizzle: so many of the address bits from LAYOUT_SWIZZLE_FROM on, three for spans of 128 bytes, two for 64, one
// for 32, none for 0, are XORed into those from LAYOUT_SWIZZLE_TO on. The mask has a one for each.
enum { LAYOUT_SWIZZLE_FROM = 7, LAYOUT_SWIZZLE_TO = 4 };
int layout_swizzle_mask(int span);
// Byte offset, from the buffer's start, of an element in a shared layout; index has type->rank entries.
// Includes the XOR, which is exact when the buffer starts on a multiple of 8 * span bytes.
int64_t layout_shared_offset(const Layout *shared, const Type *type, const int64_t *index);
// Bytes the buffer takes and the alignment of its start.
int64_t layout_shared_bytes(const Layout *shared, const Type *type);
int layout_shared_alignment(const Layout *shared);

// "frag t(128:64, 2:32) r(32:1)", "shared 128B +4096", "shared rows" (no swizzle, no offset yet), "tmem cols
// 0+256", "tmem cols ?+256" (not placed yet), "tmem cols 0+32 x2" (two elements in a column).
void layout_print(TextBuf *out, const Layout *layout);
// Reads that form back from NUL-terminated text; returns the end of what it read, or NULL.
const char *layout_parse(const char *text, Layout *out);

#endif
