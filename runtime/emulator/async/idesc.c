// Field by field, with the numbers of what is wrong.
#include "async/idesc.h"

#include <stdio.h>

static unsigned field(uint32_t word, int low, int bits) {
  return word >> low & ((1u << bits) - 1);
}

#define RULE(why, holds, ...) ((holds) || (snprintf((why)->text, sizeof(why)->text, __VA_ARGS__), false))

static const char *const kind_names[] = {
    [KIND_F16] = "f16",           [KIND_TF32] = "tf32", [KIND_F8F6F4] = "f8f6f4",     [KIND_I8] = "i8",
    [KIND_MXF8F6F4] = "mxf8f6f4", [KIND_MXF4] = "mxf4", [KIND_MXF4NVF4] = "mxf4nvf4",
};

// The operand type of a code, or -1.
static int type_of(MmaKind kind, unsigned code) {
  static const int small[8] = {MMA_E4M3, MMA_E5M2, -1, MMA_E2M3, MMA_E3M2, MMA_E2M1, -1, -1};
  switch (kind) {
  case KIND_F16:
    return code == 0 ? MMA_F16 : code == 1 ? MMA_BF16 : -1;
  case KIND_TF32:
    return code == 2 ? MMA_TF32 : -1;
  case KIND_F8F6F4:
  case KIND_MXF8F6F4:
    return small[code];
  case KIND_I8:
    return code == 0 ? MMA_U8 : code == 1 ? MMA_S8 : -1;
  case KIND_MXF4:
  case KIND_MXF4NVF4:
    break;
  }
  return code == 1 ? MMA_E2M1_PACKED : -1;
}

static int depth_of(MmaKind kind) {
  switch (kind) {
  case KIND_F16:
    return 16;
  case KIND_TF32:
    return 8;
  case KIND_F8F6F4:
  case KIND_I8:
  case KIND_MXF8F6F4:
    return 32;
  case KIND_MXF4:
  case KIND_MXF4NVF4:
    break;
  }
  return 64;
}

static bool check_m(const Idesc *i, int group, bool ws, SpaceError *why) {
  bool legal = ws                        ? i->m == 32 || i->m == 64 || i->m == 128
               : group == 2              ? i->m == 128 || i->m == 256
               : kind_is_scaled(i->kind) ? i->m == 128
                                         : i->m == 64 || i->m == 128;
  return RULE(why, legal, "instruction descriptor: M = %d is not possible for kind::%s with cta_group::%d%s",
              i->m, kind_names[i->kind], group, ws ? ".ws" : "");
}

static bool check_n(const Idesc *i, int group, bool ws, SpaceError *why) {
  int step = group == 2 ? 16 : 8, least = step;
  bool legal = i->n >= least && i->n <= 256 && i->n % step == 0;
  if (i->kind == KIND_I8 && group == 1)
    legal = i->n == 24 || i->n == 8 || (i->n % 16 == 0 && i->n >= 16 && i->n <= 256);
  if (i->kind == KIND_I8 && group == 2) legal = i->n % 32 == 0 && i->n >= 32 && i->n <= 256;
  if (ws) legal = i->n == 64 || i->n == 128 || i->n == 256;
  // An MN-major B of 8-bit elements is read in units of 16 columns.
  if (i->transpose_b && mma_type_per_unit(i->b) == 16) legal &= i->n % (16 * group) == 0;
  return RULE(why, legal,
              "instruction descriptor: N = %d is not possible for kind::%s with cta_group::%d%s%s", i->n,
              kind_names[i->kind], group, ws ? ".ws" : "", i->transpose_b ? ", B transposed" : "");
}

static bool decode_plain(uint32_t word, Idesc *out, SpaceError *why) {
  unsigned d = field(word, 4, 2);
  out->saturate = field(word, 3, 1);
  out->m = (int)field(word, 24, 5) << 4;
  if (!RULE(why, d != 3, "instruction descriptor 0x%08x: D type 3 (bits 4-5) does not exist", word))
    return false;
  out->d = (MmaD)d;
  bool fits = out->kind == KIND_I8     ? d == D_S32
              : out->kind == KIND_TF32 ? d == D_F32
              : out->kind == KIND_F16  ? d == D_F32 || (d == D_F16 && out->a == MMA_F16 && out->b == MMA_F16)
                                       : d == D_F32 || d == D_F16;
  return RULE(why, fits,
              "instruction descriptor 0x%08x: D type %u (bits 4-5) does not go with kind::%s and these A and "
              "B",
              word, d, kind_names[out->kind]) &&
         RULE(why, !(out->saturate && out->kind != KIND_I8),
              "instruction descriptor 0x%08x: saturate (bit 3) is for kind::i8", word) &&
         RULE(why, !((out->negate_a || out->negate_b) && out->kind == KIND_I8),
              "instruction descriptor 0x%08x: kind::i8 has no negation (bits 13, 14)", word) &&
         RULE(why, !field(word, 6, 1) && !field(word, 23, 1) && !field(word, 29, 1),
              "instruction descriptor 0x%08x: bits 6, 23 and 29 must be 0", word);
}

static bool decode_scaled(uint32_t word, int scale_vector, Idesc *out, SpaceError *why) {
  bool fp4 = out->kind != KIND_MXF8F6F4;
  out->m = (int)field(word, 27, 2) << 7;
  out->d = D_F32;
  out->scale_b = (int)field(word, 4, 2);
  out->scale_a = (int)field(word, 29, 2);
  out->scale_ue8m0 = field(word, 23, 1);
  int step = scale_vector;  // 1X: any byte; 2X: 0 or 2; 4X: 0
  return RULE(why, !field(word, 31, 1),
              "instruction descriptor 0x%08x: K = 96 (bit 31) exists on a later target only", word) &&
         RULE(why, out->scale_a % step == 0 && out->scale_b % step == 0,
              "instruction descriptor 0x%08x: scale ids %d (A) and %d (B) are not possible with "
              "scale_vec::%dX",
              word, out->scale_a, out->scale_b, scale_vector) &&
         RULE(why, out->scale_ue8m0 || out->kind == KIND_MXF4NVF4,
              "instruction descriptor 0x%08x: kind::%s has ue8m0 scales only (bit 23)", word,
              kind_names[out->kind]) &&
         RULE(why, !(fp4 && (out->transpose_a || out->transpose_b)),
              "instruction descriptor 0x%08x: kind::%s has no transposed operands (bits 15, 16)", word,
              kind_names[out->kind]) &&
         RULE(why, !field(word, 0, 2) && !field(word, 3, 1) && !field(word, 6, 1) && !field(word, 24, 3),
              "instruction descriptor 0x%08x: bits 0-1, 3, 6 and 24-26 must be 0", word);
}

bool idesc_decode(uint32_t word, MmaKind kind, int cta_group, bool ws, int scale_vector, Idesc *out,
                  SpaceError *why) {
  unsigned a = field(word, 7, 3), b = field(word, 10, 3);
  *out = (Idesc){.kind = kind,
                 .n = (int)field(word, 17, 6) << 3,
                 .k = depth_of(kind),
                 .negate_a = field(word, 13, 1),
                 .negate_b = field(word, 14, 1),
                 .transpose_a = field(word, 15, 1),
                 .transpose_b = field(word, 16, 1)};
  int type_a = type_of(kind, a), type_b = type_of(kind, b);
  if (!RULE(why, type_a >= 0 && type_b >= 0,
            "instruction descriptor 0x%08x: operand types %u (A) and %u (B) do not exist for kind::%s", word,
            a, b, kind_names[kind]) ||
      !RULE(why, !field(word, 2, 1),
            "instruction descriptor 0x%08x: the sparse bit (2) is set for a dense instruction", word))
    return false;
  out->a = (MmaType)type_a;
  out->b = (MmaType)type_b;
  if (!RULE(why, kind != KIND_F16 || out->a == out->b,
            "instruction descriptor 0x%08x: kind::f16 cannot mix f16 and bf16 operands", word))
    return false;
  if (!(kind_is_scaled(kind) ? decode_scaled(word, scale_vector, out, why) : decode_plain(word, out, why)))
    return false;
  return check_m(out, cta_group, ws, why) && check_n(out, cta_group, ws, why);
}
