// The greatest common divisor, which layouts and range analysis both reason with.
#ifndef TILEC_BASE_GCD_H
#define TILEC_BASE_GCD_H

#include <stdint.h>

// Of the absolute values; gcd(0, x) = |x|. 1 where an absolute value does not fit.
int64_t base_gcd(int64_t a, int64_t b);

#endif
