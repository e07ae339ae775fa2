// tile.h: launch kernels that tilec compiled, on a GPU or in the emulator, from C or C++.
//
//   TileModule   a .cubin or .ptx file and what it says about its kernels; needs no device
//   TileDevice   a GPU through the CUDA driver, or an emulated one; owns its memory
//   TileCall     one kernel with its arguments, launched as often as wanted
//
// Errors are values: a function that can fail returns NULL for success or a TileError, which the caller frees
// with tile_error_free. Nothing is printed, nothing exits, there is no global state. Several threads may use one
// device, distinct modules, and, once it is loaded, calls of one module at the same time; one TileCall by one at a
// time. Sizes and strides count elements, everything else counts bytes where it says
// so.
#ifndef TILE_H
#define TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tile_launch_info.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TileModule TileModule;
typedef struct TileKernel TileKernel;
typedef struct TileDevice TileDevice;
typedef struct TileCall TileCall;

// ---- Errors

typedef struct TileError TileError;

typedef enum {
  TILE_OK,
  TILE_FINDING,      // the kernel ran to its end, and the emulator found something wrong on the way
  TILE_INVALID,      // a file, an argument or a combination of them is wrong
  TILE_UNAVAILABLE,  // no such device, no memory, no driver
  TILE_FAULT,        // the kernel did what hardware traps
  TILE_HANG,         // the kernel waits for ever
} TileStatus;

// TILE_OK for NULL.
TileStatus tile_error_status(const TileError *error);
// The whole text, several lines for a report of the emulator; "" for NULL. It lives as long as the error.
const char *tile_error_message(const TileError *error);
// NULL is allowed.
void tile_error_free(TileError *error);

// ---- Element types

typedef enum {
  TILE_F64,
  TILE_F32,
  TILE_TF32,
  TILE_F16,
  TILE_BF16,
  TILE_E4M3,
  TILE_E5M2,
  TILE_E2M3,
  TILE_E3M2,
  TILE_E2M1,
  TILE_UE8M0,
  TILE_I64,
  TILE_I32,
  TILE_I16,
  TILE_I8,
  TILE_U64,
  TILE_U32,
  TILE_U16,
  TILE_U8,
  TILE_BOOL,
  TILE_DTYPE_COUNT
} TileDType;

// As launch information spells it: "bf16". NULL for a value outside the enumeration.
const char *tile_dtype_name(TileDType dtype);
// Bits of an element in memory: 4 for e2m1 (two to a byte, low nibble first), 6 for e2m3 and e3m2, 8 for
// bool.
int tile_dtype_bits(TileDType dtype);
// False when `name` is no element type.
bool tile_dtype_parse(const char *name, TileDType *out);

// ---- Modules and kernels

// Reads a .cubin or .ptx file that tilec wrote. `*out` is the caller's, to be closed with tile_module_close.
// TILE_INVALID: unreadable, not such a file, or without launch information that this version understands.
TileError *tile_module_open(const char *path, TileModule **out);
// The same from memory; the bytes are copied. `name` stands for the file in messages.
TileError *tile_module_open_memory(const void *bytes, size_t length, const char *name, TileModule **out);
// Frees the module and its kernels, and takes its code off the device. NULL is allowed. Calls of it go first.
void tile_module_close(TileModule *module);

int tile_module_kernel_count(const TileModule *module);
// In the order of the file; lives as long as the module. NULL when `index` is out of range.
const TileKernel *tile_module_kernel(const TileModule *module, int index);
// By the kernel function's name; NULL means the only one. TILE_INVALID lists the kernels there are.
TileError *tile_module_find(const TileModule *module, const char *name, const TileKernel **out);
// Puts the module's code on the device, where it stays until tile_module_close; needed before a launch. A
// second device for the same module is TILE_INVALID: open it twice.
TileError *tile_module_load(TileModule *module, TileDevice *device);

typedef enum { TILE_PARAM_TENSOR, TILE_PARAM_SCALAR } TileParamKind;
typedef enum { TILE_READ = 1, TILE_WRITE = 2, TILE_READWRITE = 3 } TileAccess;

typedef struct {
  TileParamKind kind;
  const char *name;
  TileDType dtype;
  TileAccess access;  // of a tensor
  int rank;           // of a tensor
  const char
      *shape[TILE_MAX_RANK];  // of a tensor: each dimension as text, "M" or "2*K" or "128", outermost first
} TileParam;

const char *tile_kernel_name(const TileKernel *kernel);
// The architecture that it was compiled for, as tilec --arch spells it.
const char *tile_kernel_arch(const TileKernel *kernel);
int tile_kernel_param_count(const TileKernel *kernel);
// Tensors first, then scalars. NULL when `index` is out of range.
const TileParam *tile_kernel_param(const TileKernel *kernel, int index);
// Sizes that are settled at launch ("M", "N", "K"), in the order of their first mention.
int tile_kernel_size_count(const TileKernel *kernel);
const char *tile_kernel_size_name(const TileKernel *kernel, int index);

// ---- Devices and their memory

typedef struct {
  // "cuda", "cuda:1" (that GPU, counted from 0), "emu", or "auto" (also NULL): a GPU that can run `arch`, else the
  // emulator.
  const char *backend;
  const char *arch;  // what "auto" and "cuda" look for, from tile_kernel_arch; NULL: any GPU will do
  // The emulator's; a backend that has no use for them ignores them.
  const char *order;   // "fair" (also NULL), "lazy" or "random:SEED": when asynchronous engines finish
  const char *checks;  // comma list of checks, "default" (also NULL), "all" or "none"
  int sms;             // CTAs resident at once, and what $sm_count is; 0: the emulator's choice, and 148
  // Called now and then during a launch, on the thread that launches.
  void (*progress)(void *user, uint64_t ctas_done, uint64_t instructions);
  // Gets what a launch printed, when it ends; NULL: it goes to standard output, where CUDA's driver puts it.
  void (*print)(void *user, const char *text);
  void *user;  // the first argument of both
} TileDeviceOptions;

// Opens a device; `options` may be NULL. A GPU is used through the calling thread's current CUDA context, or
// else through the primary context of device 0; "cuda:N" always uses the primary context of device N. The context
// stays the device's: launches go there from whatever thread they come. TILE_UNAVAILABLE says what is missing.
TileError *tile_device_open(const TileDeviceOptions *options, TileDevice **out);
// Frees the device and its memory. NULL is allowed. Modules loaded on it go first.
void tile_device_close(TileDevice *device);
// "cuda" or "emu".
const char *tile_device_backend(const TileDevice *device);
// For people: the GPU's name and architecture, or "emulator".
const char *tile_device_name(const TileDevice *device);
// The architecture to compile for, as tilec --arch spells it; NULL for an emulator, which runs all of them.
const char *tile_device_arch(const TileDevice *device);

// Device memory, aligned to 256 bytes; its content is undefined. `name` appears in reports and may be NULL.
// An address is the device's own: of an emulated device it means nothing to the host. 0 bytes give an address
// that must not be used.
TileError *tile_alloc(TileDevice *device, uint64_t bytes, const char *name, uint64_t *address);
TileError *tile_free(TileDevice *device, uint64_t address);
// Copies between host and device; both have finished when the function returns, and see earlier launches on
// the default stream.
TileError *tile_write(TileDevice *device, uint64_t address, const void *data, uint64_t bytes);
TileError *tile_read(TileDevice *device, uint64_t address, void *data, uint64_t bytes);
// Waits for a stream (a CUstream; NULL: the default stream). A fault of an earlier launch is reported here, or by
// whatever call of the device comes first. It names the kernels launched since the last successful wait. A GPU's
// context takes nothing more after it: every later call fails and says which fault that was.
TileError *tile_synchronize(TileDevice *device, void *stream);

// ---- Calls

// A tensor in device memory. The innermost stride must be 1, no stride may be negative; a dimension of size 1
// may carry any stride.
typedef struct {
  uint64_t address;
  TileDType dtype;
  int rank;
  const int64_t *shape;    // elements, outermost first
  const int64_t *strides;  // elements, outermost first; NULL: compact
} TileTensor;

// Has the layout of DLPack's DLTensor (major version 1), so that one can be passed after a cast of its
// pointer.
typedef struct {
  void *data;
  struct {
    int32_t device_type, device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} TileDLTensor;

// A call of `kernel` with nothing bound yet; the caller frees it. It must not outlive the module.
TileError *tile_call_new(const TileKernel *kernel, TileCall **out);
void tile_call_free(TileCall *call);

// Bind arguments by name; binding again replaces. Shapes and strides are copied. TILE_INVALID: no such
// parameter (with the nearest name), or a dtype, rank, stride or alignment that the kernel cannot take.
TileError *tile_call_tensor(TileCall *call, const char *name, const TileTensor *tensor);
// Takes tensors of a CUDA device (DLPack's device types 2, 3 and 13) for backend "cuda", of an extension
// device (12), whose data is an address from tile_alloc, for "emu".
TileError *tile_call_dlpack(TileCall *call, const char *name, const TileDLTensor *tensor);
// A scalar argument. An integer must fit the parameter's type; a number is rounded to it, ties to even.
TileError *tile_call_int(TileCall *call, const char *name, int64_t value);
TileError *tile_call_float(TileCall *call, const char *name, double value);
// Settles a size that no tensor settles; it must agree with the tensors at launch.
TileError *tile_call_size(TileCall *call, const char *name, int64_t value);
// The shape that tensor `name` must have by what is bound so far: `shape` takes as many numbers as the
// parameter has dimensions. TILE_INVALID names a size that is not settled yet.
TileError *tile_call_shape(const TileCall *call, const char *name, int64_t *shape);
// The value of a size by what is bound so far; *known is false when nothing settles it. TILE_INVALID: what is
// bound disagrees about some size.
TileError *tile_call_size_value(const TileCall *call, const char *name, bool *known, int64_t *out);

// What a launch would do.
typedef struct {
  const char *variant;  // "only", "tma" or "general"
  bool nothing;         // a size is 0 and leaves no CTA: a launch succeeds and does nothing
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared;  // dynamic shared memory, bytes
} TilePlan;

// Does all that a launch does before it touches the device. TILE_INVALID: an unbound parameter, sizes that
// disagree, tensors that overlap, a grid over the limits, or a check of the kernel that fails.
TileError *tile_call_plan(const TileCall *call, TilePlan *out);
// Plans and launches on a stream (a CUstream; NULL: the default stream). On a GPU it returns at once, and
// faults come with tile_synchronize; the emulator runs to the end. TILE_FINDING: outputs are written, the
// message says what is wrong.
TileError *tile_call_launch(TileCall *call, void *stream);
// The same, waits for the end, and gives the time between: on a GPU that of the device, measured by events.
TileError *tile_call_time(TileCall *call, void *stream, double *seconds);

#ifdef __cplusplus
}
#endif

#endif
