// The words that tcgen05.mma is told its operands with (PTX ISA 9.7.16.4 and 9.7.16.5).
#ifndef TILEC_CODEGEN_SM100A_DESCRIPTORS_H
#define TILEC_CODEGEN_SM100A_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "target/target.h"

// Instruction descriptor of a dense MMA of m x n (tables 42 to 45). mn_major: the operand is stored with M
// (or N) innermost.
uint32_t instruction_descriptor(const MmaShape *shape, int m, int n, bool a_mn_major, bool b_mn_major);

// Matrix descriptor without its start address (table 40). span: bytes of a swizzled row, 32, 64 or 128; the
// leading and stride dimension byte offsets.
uint64_t matrix_descriptor(int span, int64_t leading_bytes, int64_t stride_bytes);

#endif
