// The names that a compiler which writes launch information and a runtime which reads it must share. The
// format itself is docs/launch-info.md.
#ifndef TILE_LAUNCH_INFO_H
#define TILE_LAUNCH_INFO_H

// The constant object of a module: an ELF symbol in a cubin, a `.const .align 1 .b8` array in PTX.
#define TILE_LAUNCH_INFO_SYMBOL "__tile_launch_info"
// The section of a cubin with the PTX that it was made from; NULs stand for line ends.
#define TILE_LAUNCH_INFO_PTX_SECTION ".nv_debug_ptx_txt"
// The first line is TILE_LAUNCH_INFO_MAGIC, a space and the version. A reader refuses every other version.
#define TILE_LAUNCH_INFO_MAGIC "tile-launch-info"
#define TILE_LAUNCH_INFO_VERSION 1

// A size that no tensor settles: how many SMs the device has.
#define TILE_LAUNCH_INFO_SM_COUNT "$sm_count"

// Dimensions of a tensor, and of a tensor with a tensor map (PTX ISA 5.5.1).
#define TILE_MAX_RANK 8
#define TILE_MAX_MAP_RANK 5

// Bounds that a reader enforces, so that a damaged file cannot make it run long: bytes of the whole text,
// depth of an expression, nodes of an expression.
#define TILE_LAUNCH_INFO_MAX_BYTES (4 << 20)
#define TILE_LAUNCH_INFO_MAX_DEPTH 100
#define TILE_LAUNCH_INFO_MAX_NODES 4000

#endif
