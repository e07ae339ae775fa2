// PTXEMU: executes PTX text for sm_90a and sm_100a on the CPU, whoever wrote it. The only header that others
// include.
//
// A PtxEmu is one device: global memory, loaded modules, the last report. Errors are values with a text;
// nothing is printed, nothing exits, there is no global state. One PtxEmu must not be used by two threads at
// once; distinct ones are independent.
#ifndef PTXEMU_PTXEMU_H
#define PTXEMU_PTXEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct PtxEmu PtxEmu;
typedef struct PtxEmuModule PtxEmuModule;

typedef enum {
  PTXEMU_OK,
  PTXEMU_FINDING,  // ran to the end, a check found something
  PTXEMU_USAGE,    // wrong arguments, unreadable PTX, no memory
  PTXEMU_FAULT,    // what hardware traps
  PTXEMU_HANG,     // deadlock, or no progress
  PTXEMU_STOPPED,  // a breakpoint was reached
} PtxEmuStatus;

// NULL when there is no memory.
PtxEmu *ptxemu_new(void);
void ptxemu_free(PtxEmu *emu);

// Text of the last failure or of the last launch's faults and findings; never NULL, valid until the next call
// on `emu`.
const char *ptxemu_report(const PtxEmu *emu);
// What the last launch was asked to show, see PtxEmuWatch; never NULL, valid until the next launch.
const char *ptxemu_stats(const PtxEmu *emu);
const char *ptxemu_dump(const PtxEmu *emu);
// The trace's JSON, empty without one. *cut (may be NULL): the instruction after which it was full, 0 when whole.
const char *ptxemu_trace(const PtxEmu *emu, size_t *length, uint64_t *cut);

// What the last launch printed with vprintf; never NULL.
const char *ptxemu_output(const PtxEmu *emu);

// Parses PTX text (need not be NUL-terminated; trailing NULs are dropped; the content of a cubin's
// .nv_debug_ptx_txt section is accepted, with NULs in place of line ends). `name` is used in reports. NULL on
// error. Modules live as long as `emu`.
PtxEmuModule *ptxemu_load(PtxEmu *emu, const char *name, const char *text, size_t length);

typedef struct {
  const char *name;
  uint64_t offset, bytes, align;  // in the parameter block
} PtxEmuParam;

typedef struct {
  const char *name;
  const PtxEmuParam *params;
  int nparams;
  uint64_t param_bytes;
  uint32_t static_shared;  // bytes
  uint32_t reqntid[3];     // 0: not given
  uint32_t cluster[3];     // .reqnctapercluster, 0: not given
} PtxEmuEntry;

int ptxemu_entry_count(const PtxEmuModule *module);
const PtxEmuEntry *ptxemu_entry_at(const PtxEmuModule *module, int index);
const PtxEmuEntry *ptxemu_entry(const PtxEmuModule *module, const char *name);  // NULL: no such entry

// A module-scope .global or .const variable: emulated address (0: none) and size.
uint64_t ptxemu_variable(const PtxEmuModule *module, const char *name, uint64_t *bytes);

// Global memory. ptxemu_alloc gives zeroed bytes at a multiple of 256; 0 when there is no memory. `name`
// appears in reports.
uint64_t ptxemu_alloc(PtxEmu *emu, uint64_t bytes, const char *name);
bool ptxemu_release(PtxEmu *emu, uint64_t address);
// Copies between host and device; false, with a report: some byte is in no allocation.
bool ptxemu_write(PtxEmu *emu, uint64_t address, const void *data, uint64_t bytes);
bool ptxemu_read(PtxEmu *emu, uint64_t address, void *data, uint64_t bytes);

// What cuTensorMapEncodeTiled takes; dimension 0 is the innermost. Codes are the driver API's own enumeration
// values.
typedef struct {
  int type;  // CUtensorMapDataType
  int rank;  // 1 to 5
  uint64_t address;
  uint64_t size[5];    // elements
  uint64_t stride[5];  // bytes; stride[0] is not used, stride[i] is the pitch of dimension i
  uint32_t box[5];
  uint32_t element_stride[5];
  int interleave, swizzle, l2_promotion, fill_nan;
} PtxEmuTensorMap;

// Writes the 128 bytes as the driver does, or returns false with a report that names the broken rule.
bool ptxemu_encode_tensor_map(PtxEmu *emu, const PtxEmuTensorMap *map, uint8_t out[128]);

typedef enum { PTXEMU_ORDER_FAIR, PTXEMU_ORDER_LAZY, PTXEMU_ORDER_RANDOM } PtxEmuOrder;

// What to watch for. Whatever is zero costs nothing and changes nothing; results never depend on it.
typedef struct {
  bool stats;             // counts: ptxemu_stats()
  uint64_t trace_events;  // a trace of at most so many events, in Chrome's format: ptxemu_trace()
  const char *stop_at;    // "LINE" of the PTX or "FILE:LINE" of its source: stop when a thread reaches it
  // Memory to show at the end or where the launch stops: "shared[@CTA]:START+BYTES", "tmem[@CTA]:C0-C1/L0-L1",
  // "global:START+BYTES", with ":TYPE" (hex i32 u8 f32 f16 bf16 mbarrier) behind it if wanted.
  const char *const *dump;
  int ndumps;
  // Called now and then on the thread that launched, with the CTAs finished and the instructions executed so far.
  void (*progress)(void *user, uint64_t ctas_done, uint64_t instructions);
  void *user;
} PtxEmuWatch;

typedef struct {
  uint32_t grid[3], block[3];
  uint32_t cluster[3];      // zeros: .reqnctapercluster, or 1
  uint32_t dynamic_shared;  // bytes
  const void *params;       // the parameter block, laid out as PtxEmuParam says
  uint64_t param_bytes;
  PtxEmuOrder order;
  uint64_t seed;
  uint32_t sms;        // CTAs resident at once; 0: the emulator's choice
  const char *checks;  // comma list as of --check; NULL: "default"
  uint64_t max_steps;  // warp instructions, 0: no limit
  uint32_t workers;    // threads of the host, 0: one a core; results don't depend on it
  PtxEmuWatch watch;
} PtxEmuLaunch;

typedef struct {
  uint64_t instructions;  // warp instructions executed
  uint64_t lanes;         // lane instructions
  uint64_t ctas;
} PtxEmuStats;

// Whether that is a list of checks; false: the report lists them.
bool ptxemu_knows_checks(PtxEmu *emu, const char *checks);

// Runs the launch to its end. `stats` may be NULL.
PtxEmuStatus ptxemu_launch(PtxEmu *emu, const PtxEmuModule *module, const char *entry,
                           const PtxEmuLaunch *launch, PtxEmuStats *stats);

#endif
