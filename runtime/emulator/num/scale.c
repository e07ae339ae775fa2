// Block-scale formats. ue4m3 is a row of format.c; ue8m0 is a bare exponent and needs its own code.
#include "num/num.h"

#include <math.h>

double num_ue8m0_decode(uint8_t code) {
  return code == 0xFF ? NAN : ldexp(1, code - 127);
}

uint8_t num_ue8m0_encode(double value, NumRounding rounding, bool saturate) {
  if (isnan(value)) return 0xFF;
  double size = fabs(value);
  if (isinf(size)) return saturate ? 0xFE : 0xFF;
  if (size == 0) return 0;
  int exponent = ilogb(size);
  if (rounding == NUM_RP && ldexp(1, exponent) < size) exponent++;
  if (exponent > 127) return saturate || rounding == NUM_RZ ? 0xFE : 0xFF;
  return exponent < -127 ? 0 : (uint8_t)(exponent + 127);
}
