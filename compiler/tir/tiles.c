#include "tir/tiles.h"

// Truncating division is enough for what is not negative. That the results are not either is said, so that a store by TMA
// to where they point is known to be one inside the tensor or past its end.
void tir_tile_at(TirBuilder *b, TirValue *tile, TirValue *fast, TirValue *slow, TirValue *group, TirValue **i,
                 TirValue **j) {
  int64_t one;
  TirValue *zero = tir_int(b, 0);
  if (tir_const_int(group, &one) && one == 1) {
    *i = tir_binary(b, OP_max, tir_binary(b, OP_truncmod, tile, fast), zero);
    *j = tir_binary(b, OP_max, tir_binary(b, OP_truncdiv, tile, fast), zero);
    return;
  }
  TirValue *whole = tir_binary(b, OP_mul, fast, group);
  TirValue *base = tir_binary(b, OP_mul, tir_binary(b, OP_truncdiv, tile, whole), group);
  TirValue *inside = tir_binary(b, OP_truncmod, tile, whole);
  TirValue *width = tir_binary(b, OP_min, group, tir_binary(b, OP_sub, slow, base));
  *i = tir_binary(b, OP_max, tir_binary(b, OP_truncdiv, inside, width), zero);
  *j = tir_binary(b, OP_max, tir_binary(b, OP_add, base, tir_binary(b, OP_truncmod, inside, width)), zero);
}
