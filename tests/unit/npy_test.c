// .npy files: what is written is read back and has NumPy's own bytes; headers of other writers; broken files.
#include "npy/npy.h"

#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static void test_round_trip(Checks *checks, const char *path) {
  uint16_t data[6] = {1, 2, 3, 4, 5, 0xFFFF};
  Npy out = {.descr = "|V2", .ndim = 2, .shape = {2, 3}, .data = data}, in;
  NpyError error;
  CHECK(checks, npy_write(path, &out, &error));
  CHECK(checks, npy_read(path, &in, &error));
  CHECK_TEXT(checks, in.descr, "|V2");
  CHECK_INT(checks, in.ndim, 2);
  CHECK_INT(checks, in.shape[0], 2);
  CHECK_INT(checks, in.shape[1], 3);
  CHECK_INT(checks, in.bytes, 12);
  CHECK(checks, memcmp(in.data, data, 12) == 0);
  npy_free(&in);
}

static void test_numpy_bytes(Checks *checks, const char *path) {
  // numpy.save of array([1, 2], dtype=float32)
  static const char want[] =
      "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  float data[2] = {1, 2};
  Npy out = {.descr = "<f4", .ndim = 1, .shape = {2}, .data = data};
  NpyError error;
  uint8_t bytes[256];
  CHECK(checks, npy_write(path, &out, &error));
  FILE *file = fopen(path, "rb");
  size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  CHECK_INT(checks, length, 128 + 8);
  CHECK(checks, memcmp(bytes, want, sizeof want - 1) == 0);
  CHECK_INT(checks, bytes[127], '\n');
  CHECK(checks, memcmp(bytes + 128, data, 8) == 0);
}

static bool parse(const char *header, int version, const char *data, size_t bytes, Npy *out,
                  NpyError *error) {
  uint8_t file[512] = "\x93NUMPY";
  size_t length = strlen(header), at = version == 1 ? 10 : 12;
  file[6] = (uint8_t)version;
  file[8] = (uint8_t)length;
  memcpy(file + at, header, length);
  memcpy(file + at + length, data, bytes);
  return npy_parse("x.npy", file, at + length + bytes, out, error);
}

static void test_headers(Checks *checks) {
  Npy in;
  NpyError error;
  CHECK(checks, parse("{\"shape\":(),'fortran_order' : True , 'descr':'|u1'}\n", 2, "\7", 1, &in, &error));
  CHECK_INT(checks, in.ndim, 0);
  CHECK_INT(checks, in.bytes, 1);
  npy_free(&in);
  CHECK(checks,
        !parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 1, "12345678", 8, &in, &error));
  CHECK(checks, strstr(error.text, "8 bytes of data, the shape needs 12") != NULL);
  CHECK(checks,
        !parse("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 1, "1234", 4, &in, &error));
  CHECK(checks, strstr(error.text, "big-endian") != NULL);
  CHECK(checks,
        !parse("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", 1, "1234", 4, &in, &error));
  CHECK(checks, strstr(error.text, "column-major") != NULL);
  CHECK(checks,
        !parse("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 1, "1234", 4, &in, &error));
  CHECK(checks, !parse("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 1, "1234", 4,
                       &in, &error));
  CHECK(checks, !parse("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 1, "",
                       0, &in, &error));
  CHECK(checks, strstr(error.text, "too large") != NULL);
  CHECK(checks, !npy_parse("y.npy", "\x93NUMPX", 7, &in, &error));
  CHECK_TEXT(checks, error.text, "y.npy: not a .npy file");
  CHECK(checks, !npy_read("/nonexistent/z.npy", &in, &error));
}

int main(void) {
  Checks checks = {0};
  char path[] = "/tmp/npy_test_XXXXXX";
  int fd = mkstemp(path);
  if (fd < 0) return 1;
  close(fd);
  test_round_trip(&checks, path);
  test_numpy_bytes(&checks, path);
  test_headers(&checks);
  unlink(path);
  return check_report(&checks);
}
