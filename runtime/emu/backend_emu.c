// The emulator as a device. One PtxEmu is one device with one memory; a mutex makes it usable by several
// threads, since a PtxEmu by itself is not. Launches run to their end, so that streams are all the same.
#include "core/backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ptxemu.h"

typedef struct {
  PtxEmu *emu;
  pthread_mutex_t lock;
  PtxEmuOrder order;
  uint64_t seed;
  uint32_t sms;
  char *checks;  // NULL: the emulator's default
  void (*progress)(void *user, uint64_t ctas_done, uint64_t instructions);
  void (*print)(void *user, const char *text);
  void *user;
} EmuDevice;

static TileError *report(const EmuDevice *device, TileStatus status) {
  return error_new(status, "%s", ptxemu_report(device->emu));
}

static bool parse_seed(const char *text, uint64_t *out) {
  uint64_t value = 0;
  if (!*text) return false;
  for (; *text; text++) {
    if (*text < '0' || *text > '9' || value > (UINT64_MAX - 9) / 10) return false;
    value = 10 * value + (uint64_t)(*text - '0');
  }
  *out = value;
  return true;
}

static const char *emu_arch(const void *state) {
  (void)state;
  return NULL;
}

static TileError *parse_order(const char *text, EmuDevice *device) {
  static const char random[] = "random:";
  if (!text || strcmp(text, "fair") == 0) {
    device->order = PTXEMU_ORDER_FAIR;
  } else if (strcmp(text, "lazy") == 0) {
    device->order = PTXEMU_ORDER_LAZY;
  } else if (strncmp(text, random, strlen(random)) == 0 && parse_seed(text + strlen(random), &device->seed)) {
    device->order = PTXEMU_ORDER_RANDOM;
  } else {
    return error_new(TILE_INVALID, "order \"%s\" is none of fair, lazy and random:SEED", text);
  }
  return NULL;
}

static void emu_close(void *state) {
  EmuDevice *device = state;
  if (device->emu) ptxemu_free(device->emu);
  pthread_mutex_destroy(&device->lock);
  free(device->checks);
  free(device);
}

static TileError *emu_open(const TileDeviceOptions *options, void **out) {
  EmuDevice *device = calloc(1, sizeof *device);
  if (!device) return error_no_memory();
  if (pthread_mutex_init(&device->lock, NULL) != 0) {
    free(device);
    return error_no_memory();
  }
  TileError *error = parse_order(options->order, device);
  if (!error && options->sms < 0) error = error_new(TILE_INVALID, "%d SMs", options->sms);
  device->sms = (uint32_t)options->sms;
  device->progress = options->progress;
  device->print = options->print;
  device->user = options->user;
  device->checks = options->checks ? strdup(options->checks) : NULL;
  device->emu = ptxemu_new();
  if (!error && (!device->emu || (options->checks && !device->checks))) error = error_no_memory();
  if (!error && device->checks && !ptxemu_knows_checks(device->emu, device->checks))
    error = report(device, TILE_INVALID);
  if (error) {
    emu_close(device);
    return error;
  }
  *out = device;
  return NULL;
}

static const char *emu_describe(const void *state) {
  (void)state;
  return "emulator";
}

typedef struct {
  PtxEmuModule *module;
  const LaunchInfo *info;
} EmuCode;

static TileError *emu_load(void *state, const Artifact *artifact, const LaunchInfo *info, void **out) {
  EmuDevice *device = state;
  if (!artifact->ptx)
    return error_new(TILE_INVALID,
                     "%s has no PTX in it (section %s), which the emulator runs: it was assembled without "
                     "-lineinfo, or stripped",
                     artifact->name, TILE_LAUNCH_INFO_PTX_SECTION);
  // Line numbers in reports are of the PTX, wherever that came from.
  char *name = NULL;
  if (asprintf(&name, "%s%s", artifact->cubin ? "PTX of " : "", artifact->name) < 0) return error_no_memory();
  EmuCode *code = malloc(sizeof *code);  // before the module, which the emulator would keep
  TileError *error = code ? NULL : error_no_memory();
  pthread_mutex_lock(&device->lock);
  if (code) *code = (EmuCode){ptxemu_load(device->emu, name, artifact->ptx, artifact->ptx_length), info};
  if (code && !code->module) error = report(device, TILE_INVALID);
  pthread_mutex_unlock(&device->lock);
  free(name);
  if (error) free(code);
  *out = error ? NULL : code;
  return error;
}

// The emulator keeps modules as long as the device.
static void emu_unload(void *state, void *code) {
  (void)state;
  free(code);
}

// Without a number of SMs it is that of a B200. Whole clusters; one at least, since the emulator makes room for it.
static int emu_sm_count(const void *state, const void *code, int entry) {
  enum { B200_SMS = 148 };
  const EmuDevice *device = state;
  const uint32_t *shape = ((const EmuCode *)code)->info->entries[entry].cluster;
  int sms = device->sms ? (int)device->sms : B200_SMS, cluster = (int)(shape[0] * shape[1] * shape[2]);
  return sms < cluster ? cluster : sms / cluster * cluster;
}

static TileError *emu_alloc(void *state, uint64_t bytes, const char *name, uint64_t *address) {
  EmuDevice *device = state;
  pthread_mutex_lock(&device->lock);
  *address = ptxemu_alloc(device->emu, bytes, name);
  pthread_mutex_unlock(&device->lock);
  if (*address) return NULL;
  return error_new(TILE_UNAVAILABLE, "no memory for %llu emulated bytes of %s", (unsigned long long)bytes,
                   name);
}

static TileError *emu_release(void *state, uint64_t address) {
  EmuDevice *device = state;
  pthread_mutex_lock(&device->lock);
  bool ok = ptxemu_release(device->emu, address);
  pthread_mutex_unlock(&device->lock);
  return ok ? NULL
            : error_new(TILE_INVALID, "0x%llx is not the start of an allocation",
                        (unsigned long long)address);
}

static TileError *emu_write(void *state, uint64_t address, const void *data, uint64_t bytes) {
  EmuDevice *device = state;
  pthread_mutex_lock(&device->lock);
  bool ok = ptxemu_write(device->emu, address, data, bytes);
  TileError *error = ok ? NULL : report(device, TILE_INVALID);
  pthread_mutex_unlock(&device->lock);
  return error;
}

static TileError *emu_read(void *state, uint64_t address, void *data, uint64_t bytes) {
  EmuDevice *device = state;
  pthread_mutex_lock(&device->lock);
  bool ok = ptxemu_read(device->emu, address, data, bytes);
  TileError *error = ok ? NULL : report(device, TILE_INVALID);
  pthread_mutex_unlock(&device->lock);
  return error;
}

static TileError *emu_encode_map(void *state, const TensorMap *map, uint8_t *out) {
  EmuDevice *device = state;
  PtxEmuTensorMap given = {.type = map->type,
                           .rank = map->rank,
                           .address = map->address,
                           .interleave = map->interleave,
                           .swizzle = map->swizzle,
                           .l2_promotion = map->l2_promotion,
                           .fill_nan = map->fill};
  for (int i = 0; i < map->rank; i++) {
    given.size[i] = map->size[i];
    given.stride[i] = i ? map->stride[i - 1] : 0;
    given.box[i] = map->box[i];
    given.element_stride[i] = map->element_stride[i];
  }
  pthread_mutex_lock(&device->lock);
  bool ok = ptxemu_encode_tensor_map(device->emu, &given, out);
  TileError *error = ok ? NULL : report(device, TILE_INVALID);
  pthread_mutex_unlock(&device->lock);
  return error;
}

// The emulator's own reading of the entry must agree with the block that launch information describes.
static TileError *check_entry(const EmuDevice *device, const PtxEmuModule *module, const InfoEntry *entry) {
  const PtxEmuEntry *found = ptxemu_entry(module, entry->entry);
  (void)device;
  if (!found)
    return error_new(TILE_INVALID, "the PTX has no entry %s, which its launch information names",
                     entry->entry);
  bool same = found->nparams == entry->nparams;
  for (int i = 0; same && i < entry->nparams; i++)
    same = found->params[i].offset == entry->params[i].offset &&
           found->params[i].bytes == entry->params[i].bytes;
  if (same) return NULL;
  return error_new(TILE_INVALID,
                   "the parameters of entry %s in the PTX are not those of its launch information",
                   entry->entry);
}

static TileStatus status_of(PtxEmuStatus status) {
  switch (status) {
  case PTXEMU_OK:
    return TILE_OK;
  case PTXEMU_FINDING:
    return TILE_FINDING;
  case PTXEMU_USAGE:
    return TILE_INVALID;
  case PTXEMU_FAULT:
    return TILE_FAULT;
  case PTXEMU_HANG:
    return TILE_HANG;
  case PTXEMU_STOPPED:  // not asked for
    break;
  }
  return TILE_INVALID;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void print_output(const EmuDevice *device) {
  const char *text = ptxemu_output(device->emu);
  if (device->print)
    device->print(device->user, text);
  else
    fputs(text, stdout);
}

static TileError *emu_launch(void *state, void *code, const LaunchPlan *plan, void *stream, double *seconds) {
  EmuDevice *device = state;
  const InfoEntry *entry = plan->entry;
  (void)stream;
  PtxEmuLaunch launch = {
      .grid = {plan->grid[0], plan->grid[1], plan->grid[2]},
      .block = {entry->block, 1, 1},
      .cluster = {entry->cluster[0], entry->cluster[1], entry->cluster[2]},
      .dynamic_shared = entry->shared,
      .params = plan->block,
      .param_bytes = entry->param_bytes,
      .order = device->order,
      .seed = device->seed,
      .sms = device->sms,
      .checks = device->checks,
      .watch = {.progress = device->progress, .user = device->user},
  };
  const PtxEmuModule *module = ((const EmuCode *)code)->module;
  TileError *error = check_entry(device, module, entry);
  if (error) return error;
  pthread_mutex_lock(&device->lock);
  double start = now();
  TileStatus status = status_of(ptxemu_launch(device->emu, module, entry->entry, &launch, NULL));
  if (seconds) *seconds = now() - start;
  print_output(device);
  if (status != TILE_OK) error = report(device, status);
  pthread_mutex_unlock(&device->lock);
  return error;
}

static TileError *emu_synchronize(void *state, void *stream) {
  (void)state;
  (void)stream;
  return NULL;
}

const Backend backend_emu = {
    .name = "emu",
    .open = emu_open,
    .close = emu_close,
    .describe = emu_describe,
    .arch = emu_arch,
    .sm_count = emu_sm_count,
    .load = emu_load,
    .unload = emu_unload,
    .alloc = emu_alloc,
    .release = emu_release,
    .write = emu_write,
    .read = emu_read,
    .encode_map = emu_encode_map,
    .launch = emu_launch,
    .synchronize = emu_synchronize,
};
