// The CUDA driver, loaded at run time: neither a toolkit nor a GPU is needed to build. Types and numbers
// restate cuda.h.
#ifndef TILE_CUDA_DRIVER_H
#define TILE_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

typedef int CudaResult;  // 0: success
typedef int CudaDevice;
typedef uint64_t CudaAddress;
typedef struct CudaContextRecord *CudaContext;
typedef struct CudaModuleRecord *CudaModule;
typedef struct CudaFunctionRecord *CudaFunction;
typedef struct CudaStreamRecord *CudaStream;
typedef struct CudaEventRecord *CudaEvent;

enum {
  CUDA_INVALID_VALUE = 1,
  CUDA_OUT_OF_MEMORY = 2,
  CUDA_NOT_SUPPORTED = 801,
  CUDA_INVALID_CLUSTER_SIZE = 912,
  CUDA_DEVICE_SM_COUNT = 16,
  CUDA_DEVICE_MAJOR = 75,
  CUDA_DEVICE_MINOR = 76,
  CUDA_DEVICE_SHARED_OPTIN = 97,  // most dynamic shared memory of a block, bytes
  CUDA_FUNCTION_DYNAMIC_SHARED = 8,
  CUDA_FUNCTION_LARGE_CLUSTER = 14,
  CUDA_JIT_ERROR_LOG = 5,
  CUDA_JIT_ERROR_LOG_BYTES = 6,
  CUDA_LAUNCH_CLUSTER = 4,
  CUDA_LAUNCH_OVERLAP = 6,  // programmatic stream serialization
};

// CUlaunchAttribute: a number and a union of 64 bytes.
typedef struct {
  int id;
  char pad[4];
  union {
    uint32_t cluster[3];
    int32_t overlap;
    char bytes[64];
  } value;
} CudaLaunchAttribute;

// CUlaunchConfig.
typedef struct {
  uint32_t grid[3], block[3];
  uint32_t shared;  // bytes
  CudaStream stream;
  CudaLaunchAttribute *attributes;
  uint32_t nattributes;
} CudaLaunch;

typedef struct {
  void *library;
#define DRIVER(name, symbol, parameters) CudaResult(*name) parameters;
#include "cuda/driver.def"
#undef DRIVER
} Driver;

// Loads the library (NULL: libcuda.so.1) and all functions. TILE_UNAVAILABLE says what is missing.
TileError *driver_open(Driver *driver, const char *library);
void driver_close(Driver *driver);

// Puts a function of a library that is open into the pointer to a function that `function` points to. False, and NULL
// there: the library has no such symbol.
bool driver_load(void *library, const char *symbol, void *function);

// A result by which the driver says that a kernel faulted; the context is lost with it.
typedef struct {
  CudaResult result;
  TileStatus status;
  const char *name;
  const char *hint;  // more of the message, "" where the driver's text is enough
} CudaFault;

// NULL: not a fault.
const CudaFault *driver_fault(CudaResult result);

// NULL for success; else "WHAT: CUDA_ERROR_… (text)", with a status by the kind of result. Without `what` the
// message begins with the error's name.
TileError *driver_error(const Driver *driver, CudaResult result, const char *what);

#endif
