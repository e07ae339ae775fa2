// The header is a Python dictionary literal with three keys. It is read by looking each key up and scanning
// its value, which is all that any writer of such files needs us to understand.
#include "npy/npy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

__attribute__((format(printf, 2, 3))) static bool fail(NpyError *error, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(error->text, sizeof error->text, format, args);
  va_end(args);
  return false;
}

size_t npy_item_bytes(const char *descr) {
  if (strchr("<|=", descr[0]) == NULL || descr[0] == '\0') return 0;
  if (strchr("biufcV", descr[1]) == NULL || descr[1] == '\0') return 0;
  char *end;
  unsigned long bytes = strtoul(descr + 2, &end, 10);
  return end == descr + 2 || *end != '\0' || bytes > 64 ? 0 : bytes;
}

bool npy_count(const Npy *npy, uint64_t *count) {
  *count = 1;
  for (int i = 0; i < npy->ndim; i++)
    if (__builtin_mul_overflow(*count, npy->shape[i], count)) return false;
  return true;
}

void npy_free(Npy *npy) {
  free(npy->data);
  npy->data = NULL;
}

// ---- reading

// The text after "'key':", or NULL.
static const char *find_value(const char *header, const char *key) {
  char quoted[32];
  for (const char *quote = "'\""; *quote; quote++) {
    snprintf(quoted, sizeof quoted, "%c%s%c", *quote, key, *quote);
    const char *at = strstr(header, quoted);
    if (!at) continue;
    at += strlen(quoted);
    at += strspn(at, " \t");
    if (*at == ':') return at + 1 + strspn(at + 1, " \t");
  }
  return NULL;
}

static bool read_descr(const char *name, const char *header, Npy *out, NpyError *error) {
  const char *at = find_value(header, "descr");
  if (!at || (*at != '\'' && *at != '"'))
    return fail(error, "%s: the header has no simple 'descr' (structured types are not supported)", name);
  const char *end = strchr(at + 1, *at);
  size_t length = end ? (size_t)(end - at - 1) : 0;
  if (length == 0 || length >= sizeof out->descr)
    return fail(error, "%s: the element type cannot be read", name);
  memcpy(out->descr, at + 1, length);
  out->descr[length] = '\0';
  if (out->descr[0] == '>')
    return fail(error, "%s: big-endian elements (%s) are not supported", name, out->descr);
  out->item_bytes = npy_item_bytes(out->descr);
  return out->item_bytes || fail(error, "%s: elements of type '%s' are not supported", name, out->descr);
}

static bool read_shape(const char *name, const char *header, Npy *out, NpyError *error) {
  const char *at = find_value(header, "shape");
  if (!at || *at != '(') return fail(error, "%s: the header has no 'shape'", name);
  at++;
  for (out->ndim = 0;; out->ndim++) {
    at += strspn(at, " ,\t");
    if (*at == ')') return true;
    if (out->ndim == NPY_MAX_DIMS) return fail(error, "%s: more than %d dimensions", name, NPY_MAX_DIMS);
    char *end;
    errno = 0;
    unsigned long long size = strtoull(at, &end, 10);
    if (end == at || *at == '-' || errno) return fail(error, "%s: the shape cannot be read", name);
    out->shape[out->ndim] = size;
    at = *end == 'L' ? end + 1 : end;
  }
}

static bool read_header(const char *name, const char *header, Npy *out, NpyError *error) {
  if (!read_descr(name, header, out, error) || !read_shape(name, header, out, error)) return false;
  const char *order = find_value(header, "fortran_order");
  if (!order) return fail(error, "%s: the header has no 'fortran_order'", name);
  if (strncmp(order, "True", 4) == 0 && out->ndim > 1)
    return fail(error, "%s: the array is column-major; save it with numpy.ascontiguousarray", name);
  return true;
}

// Offset of the data, 0 when the preamble is wrong.
static size_t data_offset(const uint8_t *file, size_t length, size_t *header, size_t *header_length) {
  if (length < 10 || memcmp(file, magic, sizeof magic) != 0 || file[6] < 1 || file[6] > 3) return 0;
  *header = file[6] == 1 ? 10 : 12;
  if (length < *header) return 0;
  *header_length = file[8] | (size_t)file[9] << 8;
  if (file[6] > 1) *header_length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
  return *header_length > length - *header ? 0 : *header + *header_length;
}

bool npy_parse(const char *name, const void *file, size_t length, Npy *out, NpyError *error) {
  size_t header, header_length, offset = data_offset(file, length, &header, &header_length);
  *out = (Npy){0};
  if (!offset) return fail(error, "%s: not a .npy file", name);
  char *text = malloc(header_length + 1);
  if (!text) return fail(error, "%s: out of memory", name);
  memcpy(text, (const char *)file + header, header_length);
  text[header_length] = '\0';
  bool ok = read_header(name, text, out, error);
  free(text);
  uint64_t count;
  if (!ok) return false;
  if (!npy_count(out, &count) || __builtin_mul_overflow(count, (uint64_t)out->item_bytes, &out->bytes))
    return fail(error, "%s: the shape is too large", name);
  if (out->bytes > length - offset)
    return fail(error, "%s: %llu bytes of data, the shape needs %llu", name,
                (unsigned long long)(length - offset), (unsigned long long)out->bytes);
  out->data = malloc(out->bytes ? out->bytes : 1);
  if (!out->data) return fail(error, "%s: out of memory", name);
  memcpy(out->data, (const char *)file + offset, out->bytes);
  return true;
}

static bool read_file(const char *path, void **data, size_t *length, NpyError *error) {
  FILE *file = fopen(path, "rb");
  if (!file) return fail(error, "%s: %s", path, strerror(errno));
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  *data = size >= 0 ? malloc((size_t)size + 1) : NULL;
  bool ok = *data && fseek(file, 0, SEEK_SET) == 0 && fread(*data, 1, (size_t)size, file) == (size_t)size;
  fclose(file);
  *length = (size_t)size;
  if (ok) return true;
  free(*data);
  return fail(error, "%s: cannot be read", path);
}

bool npy_read(const char *path, Npy *out, NpyError *error) {
  void *data = NULL;
  size_t length = 0;
  *out = (Npy){0};
  if (!read_file(path, &data, &length, error)) return false;
  bool ok = npy_parse(path, data, length, out, error);
  free(data);
  return ok;
}

// ---- writing

// The dictionary, padded with blanks so that the data starts at a multiple of 64. Returns its length.
static size_t format_header(const Npy *npy, char *out, size_t cap, size_t preamble) {
  size_t at = (size_t)snprintf(out, cap, "{'descr': '%s', 'fortran_order': False, 'shape': (", npy->descr);
  for (int i = 0; i < npy->ndim; i++)
    at += (size_t)snprintf(out + at, cap - at, "%llu%s", (unsigned long long)npy->shape[i],
                           npy->ndim == 1      ? ","
                           : i + 1 < npy->ndim ? ", "
                                               : "");
  at += (size_t)snprintf(out + at, cap - at, "), }");
  while ((preamble + at + 1) % 64) out[at++] = ' ';
  out[at++] = '\n';
  return at;
}

bool npy_write(const char *path, const Npy *npy, NpyError *error) {
  size_t item = npy_item_bytes(npy->descr), preamble = 10;
  uint64_t count;
  if (!item) return fail(error, "%s: elements of type '%s' cannot be written", path, npy->descr);
  if (npy->ndim < 0 || npy->ndim > NPY_MAX_DIMS || !npy_count(npy, &count))
    return fail(error, "%s: the shape cannot be written", path);
  char header[512];
  size_t length = format_header(npy, header, sizeof header - 64, preamble);
  uint8_t head[10] = {0, 0, 0, 0, 0, 0, 1, 0, (uint8_t)length, (uint8_t)(length >> 8)};
  memcpy(head, magic, sizeof magic);
  FILE *file = fopen(path, "wb");
  if (!file) return fail(error, "%s: %s", path, strerror(errno));
  bool ok = fwrite(head, 1, preamble, file) == preamble && fwrite(header, 1, length, file) == length &&
            fwrite(npy->data, item, count, file) == count;
  if (fclose(file) != 0) ok = false;
  return ok || fail(error, "%s: cannot be written: %s", path, strerror(errno));
}
