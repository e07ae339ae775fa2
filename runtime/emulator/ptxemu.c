// The library's door: devices, modules, launches. A launch builds one Machine, runs it and turns its outcome
// into a status and a text.
#include "ptxemu.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/tensor_map.h"
#include "check/observer.h"
#include "machine.h"
#include "trace/dump.h"
#include "trace/stop.h"
#include "workers.h"

struct PtxEmuModule {
  PtxEmu *emu;
  Module *module;
  PtxEmuEntry *entries;
  int nentries;
};

struct PtxEmu {
  Arena *arena;   // modules
  Arena *launch;  // texts and tables of the last launch
  Gmem *gmem;
  const char *report, *output, *stats, *dump, *trace;
  size_t trace_bytes;
  uint64_t trace_cut;
  char own_report[1024];  // of a module that is not loaded, of a copy between host and device
};

enum { MOST_THREADS = 1024, MOST_SHARED = 227 * 1024, MOST_CLUSTER = 16 };

static const char out_of_memory[] = "out of memory";

PtxEmu *ptxemu_new(void) {
  PtxEmu *emu = calloc(1, sizeof *emu);
  if (emu == NULL) return NULL;
  emu->arena = arena_new();
  emu->launch = arena_new();
  emu->gmem = gmem_new();
  emu->report = emu->output = emu->stats = emu->dump = emu->trace = "";
  if (emu->arena != NULL && emu->launch != NULL && emu->gmem != NULL) return emu;
  ptxemu_free(emu);
  return NULL;
}

void ptxemu_free(PtxEmu *emu) {
  if (emu == NULL) return;
  if (emu->gmem != NULL) gmem_free(emu->gmem);
  if (emu->arena != NULL) arena_free(emu->arena);
  if (emu->launch != NULL) arena_free(emu->launch);
  free(emu);
}

const char *ptxemu_report(const PtxEmu *emu) {
  return emu->report;
}
const char *ptxemu_output(const PtxEmu *emu) {
  return emu->output;
}
const char *ptxemu_stats(const PtxEmu *emu) {
  return emu->stats;
}
const char *ptxemu_dump(const PtxEmu *emu) {
  return emu->dump;
}
const char *ptxemu_trace(const PtxEmu *emu, size_t *length, uint64_t *cut) {
  *length = emu->trace_bytes;
  if (cut != NULL) *cut = emu->trace_cut;
  return emu->trace;
}

// ---- modules

static void fill_entry(Arena *arena, const Module *module, const Function *f, PtxEmuEntry *entry) {
  PtxEmuParam *params = ARENA_ARRAY(arena, PtxEmuParam, f->nparams + 1);
  for (int i = 0; i < f->nparams; i++) {
    const Variable *v = &f->params[i];
    params[i] = (PtxEmuParam){v->name, v->address, v->bytes, v->align};
  }
  *entry =
      (PtxEmuEntry){.name = f->name, .params = params, .nparams = f->nparams, .param_bytes = f->param_bytes};
  entry->static_shared = module->shared_bytes + f->shared_bytes;
  memcpy(entry->reqntid, f->reqntid, sizeof entry->reqntid);
  memcpy(entry->cluster, f->cluster, sizeof entry->cluster);
}

static PtxEmuModule *wrap(PtxEmu *emu, Module *module) {
  PtxEmuModule *result = ARENA_NEW(emu->arena, PtxEmuModule);
  result->emu = emu;
  result->module = module;
  result->entries = ARENA_ARRAY(emu->arena, PtxEmuEntry, module->nfunctions + 1);
  for (int i = 0; i < module->nfunctions; i++) {
    const Function *f = module->functions[i];
    if (f->is_entry && f->has_body) fill_entry(emu->arena, module, f, &result->entries[result->nentries++]);
  }
  return result;
}

// What is not loaded leaves nothing behind but its report.
static void unload(PtxEmu *emu, const char *report, ArenaMark mark, uint64_t variables) {
  snprintf(emu->own_report, sizeof emu->own_report, "%s", report);
  emu->report = emu->own_report;
  arena_reset(emu->arena, mark);
  gmem_reset(emu->gmem, variables);
}

PtxEmuModule *ptxemu_load(PtxEmu *emu, const char *name, const char *text, size_t length) {
  jmp_buf handler;
  ArenaMark mark = arena_mark(emu->arena);
  uint64_t variables = gmem_mark(emu->gmem);
  arena_on_out_of_memory(emu->arena, &handler);
  if (setjmp(handler) != 0) {
    arena_on_out_of_memory(emu->arena, NULL);
    unload(emu, out_of_memory, mark, variables);
    return NULL;
  }
  const char *error = "";
  Module *module = ptx_load(emu->arena, emu->gmem, name, text, length, &error);
  PtxEmuModule *result = module != NULL ? wrap(emu, module) : NULL;
  arena_on_out_of_memory(emu->arena, NULL);
  emu->report = "";
  if (result == NULL) unload(emu, error, mark, variables);
  return result;
}

int ptxemu_entry_count(const PtxEmuModule *module) {
  return module->nentries;
}

const PtxEmuEntry *ptxemu_entry_at(const PtxEmuModule *module, int index) {
  return index >= 0 && index < module->nentries ? &module->entries[index] : NULL;
}

const PtxEmuEntry *ptxemu_entry(const PtxEmuModule *module, const char *name) {
  for (int i = 0; i < module->nentries; i++) {
    if (strcmp(module->entries[i].name, name) == 0) return &module->entries[i];
  }
  return NULL;
}

uint64_t ptxemu_variable(const PtxEmuModule *module, const char *name, uint64_t *bytes) {
  for (int i = 0; i < module->module->nvariables; i++) {
    const Variable *v = module->module->variables[i];
    bool global = v->owner == NULL && (v->space == VAR_GLOBAL || v->space == VAR_CONST);
    if (!global || strcmp(v->name, name) != 0) continue;
    *bytes = v->bytes;
    return v->address;
  }
  return 0;
}

// ---- global memory

uint64_t ptxemu_alloc(PtxEmu *emu, uint64_t bytes, const char *name) {
  return gmem_alloc(emu->gmem, bytes, name);
}
bool ptxemu_release(PtxEmu *emu, uint64_t address) {
  return gmem_release(emu->gmem, address);
}

// NULL: the report says why.
static uint8_t *host(PtxEmu *emu, uint64_t address, uint64_t bytes) {
  const GmemBlock *hint = NULL;
  uint8_t *found = gmem_find(emu->gmem, address, bytes, &hint);
  if (found != NULL) return found;
  char near[160];
  gmem_explain(emu->gmem, address, near, sizeof near);
  snprintf(emu->own_report, sizeof emu->own_report, "%llu bytes at device address 0x%llx: %s",
           (unsigned long long)bytes, (unsigned long long)address, near);
  emu->report = emu->own_report;
  return NULL;
}

bool ptxemu_write(PtxEmu *emu, uint64_t address, const void *data, uint64_t bytes) {
  uint8_t *to = host(emu, address, bytes);
  if (to == NULL) return false;
  if (bytes > 0) memcpy(to, data, bytes);
  return true;
}

bool ptxemu_read(PtxEmu *emu, uint64_t address, void *data, uint64_t bytes) {
  const uint8_t *from = host(emu, address, bytes);
  if (from == NULL) return false;
  if (bytes > 0) memcpy(data, from, bytes);
  return true;
}

bool ptxemu_encode_tensor_map(PtxEmu *emu, const PtxEmuTensorMap *map, uint8_t out[128]) {
  SpaceError why = {""};
  TensorMapSpec spec = {.type = map->type,
                        .rank = map->rank,
                        .address = map->address,
                        .interleave = map->interleave,
                        .swizzle = map->swizzle,
                        .l2_promotion = map->l2_promotion,
                        .fill_nan = map->fill_nan};
  memcpy(spec.size, map->size, sizeof spec.size);
  memcpy(spec.stride, map->stride, sizeof spec.stride);
  memcpy(spec.box, map->box, sizeof spec.box);
  memcpy(spec.element_stride, map->element_stride, sizeof spec.element_stride);
  if (tensor_map_encode(&spec, out, &why)) return true;
  emu->report = text_copy(emu->launch, why.text, strlen(why.text));
  return false;
}

// ---- launch

static void machine_describe_limits(const Function *entry, const PtxEmuLaunch *in, Launch *out) {
  memcpy(out->grid, in->grid, sizeof out->grid);
  memcpy(out->block, in->block, sizeof out->block);
  memcpy(out->cluster, in->cluster, sizeof out->cluster);
  if (in->cluster[0] == 0) memcpy(out->cluster, entry->cluster, sizeof out->cluster);
  for (int i = 0; i < 3; i++) {
    if (out->cluster[i] == 0) out->cluster[i] = 1;
  }
  out->dynamic_shared = in->dynamic_shared;
  out->params = in->params;
  out->param_bytes = entry->param_bytes;
  out->order = in->order == PTXEMU_ORDER_LAZY     ? ORDER_LAZY
               : in->order == PTXEMU_ORDER_RANDOM ? ORDER_RANDOM
                                                  : ORDER_FAIR;
  out->seed = in->seed;
  out->max_resident_ctas = in->sms;
  out->max_steps = in->max_steps;
}

static const char *check_shape(Arena *arena, const Launch *l, const Function *entry) {
  uint64_t threads = 1, ctas = 1;
  for (int i = 0; i < 3; i++) {
    if (l->grid[i] == 0 || l->block[i] == 0 || l->block[i] > MOST_THREADS)
      return "grid or block has an impossible dimension";
    if (i > 0 && l->grid[i] > 65535)
      return text_printf(arena, "grid dimension %d is %u; at most 65535", i, l->grid[i]);
    if (l->grid[i] % l->cluster[i] != 0) {
      return text_printf(arena, "grid dimension %d (%u) is no multiple of the cluster's (%u)", i, l->grid[i],
                         l->cluster[i]);
    }
    threads *= l->block[i];
    ctas *= l->grid[i];
  }
  if (threads > MOST_THREADS)
    return text_printf(arena, "%llu threads a block; at most %d", (unsigned long long)threads, MOST_THREADS);
  if (ctas > 0x7fffffff) return "the grid has more than 2^31 - 1 CTAs";
  if (l->cluster[0] * l->cluster[1] * l->cluster[2] > MOST_CLUSTER) return "a cluster has at most 16 CTAs";
  uint64_t shared = (uint64_t)l->dynamic_shared + l->module->shared_bytes + entry->shared_bytes;
  if (shared > MOST_SHARED)
    return text_printf(arena, "%llu bytes of shared memory; at most %d", (unsigned long long)shared,
                       MOST_SHARED);
  uint64_t want = (uint64_t)entry->reqntid[0] * entry->reqntid[1] * entry->reqntid[2];
  if (want > 0 && want != threads) {
    return text_printf(arena, "'%s' requires blocks of %u x %u x %u threads (.reqntid)", entry->name,
                       entry->reqntid[0], entry->reqntid[1], entry->reqntid[2]);
  }
  return NULL;
}

static PtxEmuStatus usage(PtxEmu *emu, const char *text) {
  emu->report = text;
  return PTXEMU_USAGE;
}

// NULL, or an error text.
static const char *parse_watch(PtxEmu *emu, const PtxEmuWatch *in, Launch *launch) {
  Watch *out = &launch->watch;
  out->stats = in->stats;
  out->trace_events = in->trace_events;
  out->progress = in->progress;
  out->progress_user = in->user;
  if (in->stop_at != NULL) {
    Breakpoint *stop = ARENA_NEW(emu->launch, Breakpoint);
    const char *error = breakpoint_parse(emu->launch, launch->module, in->stop_at, stop);
    if (error != NULL) return error;
    out->stop = stop;
  }
  DumpRange *ranges = ARENA_ARRAY(emu->launch, DumpRange, in->ndumps + 1);
  for (int i = 0; i < in->ndumps; i++) {
    const char *error =
        dump_parse(emu->launch, launch->module, launch->entry, emu->gmem, in->dump[i], &ranges[i]);
    if (error != NULL) return error;
    uint64_t ctas = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (ranges[i].cta >= ctas)
      return text_printf(emu->launch, "--dump %s: the grid has %llu CTAs", in->dump[i],
                         (unsigned long long)ctas);
  }
  out->ranges = ranges;
  out->nranges = in->ndumps;
  return NULL;
}

static void keep_watch(PtxEmu *emu, const Launch *launch, const LaunchOutcome *outcome) {
  TextBuf dump = {.arena = emu->launch};
  textbuf_puts(&dump, outcome->dump != NULL ? outcome->dump : "");
  for (int i = 0; i < launch->watch.nranges; i++) {
    const DumpRange *range = &launch->watch.ranges[i];
    if (range->space == SPACE_GLOBAL)
      dump_global(&dump, emu->gmem, range);
    else if (!range->shown)
      textbuf_printf(&dump, "%s\n  CTA %u has not run\n", range->text, range->cta);
  }
  emu->dump = dump.data;
  emu->stats = outcome->stats != NULL ? outcome->stats : "";
  emu->trace = outcome->trace != NULL ? outcome->trace : "";
  emu->trace_bytes = outcome->trace_bytes;
  emu->trace_cut = outcome->trace_cut;
}

static PtxEmuStatus run(PtxEmu *emu, const Launch *launch, uint32_t checks, uint32_t workers,
                        PtxEmuStats *stats) {
  LaunchOutcome outcome = launch_on_workers(emu->launch, emu->gmem, launch, checks, workers);
  uint64_t ctas = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  if (stats != NULL) *stats = (PtxEmuStats){outcome.steps, outcome.lane_steps, ctas};
  emu->output = outcome.output;
  keep_watch(emu, launch, &outcome);
  if (outcome.fault.happened) {
    const char *findings = outcome.findings != NULL ? outcome.findings : "";
    emu->report = text_printf(emu->launch, "%s%s", outcome.fault.text, findings);
    return outcome.fault.stopped ? PTXEMU_STOPPED : outcome.fault.hang ? PTXEMU_HANG : PTXEMU_FAULT;
  }
  if (outcome.out_of_memory) return usage(emu, out_of_memory);
  if (outcome.findings == NULL) return PTXEMU_OK;
  emu->report = outcome.findings;
  return PTXEMU_FINDING;
}

bool ptxemu_knows_checks(PtxEmu *emu, const char *list) {
  jmp_buf handler;
  uint32_t checks;
  arena_on_out_of_memory(emu->launch, &handler);
  const char *error = setjmp(handler) == 0 ? checks_parse(emu->launch, list, &checks) : out_of_memory;
  arena_on_out_of_memory(emu->launch, NULL);
  if (error != NULL) emu->report = error;
  return error == NULL;
}

PtxEmuStatus ptxemu_launch(PtxEmu *emu, const PtxEmuModule *module, const char *entry_name,
                           const PtxEmuLaunch *in, PtxEmuStats *stats) {
  arena_free(emu->launch);
  emu->report = emu->output = emu->stats = emu->dump = emu->trace = "";
  emu->trace_bytes = 0;
  emu->trace_cut = 0;
  emu->launch = arena_new();
  if (emu->launch == NULL) return usage(emu, out_of_memory);
  jmp_buf handler;
  arena_on_out_of_memory(emu->launch, &handler);
  if (setjmp(handler) != 0) return usage(emu, out_of_memory);  // clusters and engine of the launch are lost
  const Function *entry = module_find_entry(module->module, entry_name);
  if (entry == NULL) return usage(emu, text_printf(emu->launch, "the module has no entry '%s'", entry_name));
  if (in->param_bytes < entry->param_bytes) {
    return usage(emu,
                 text_printf(emu->launch, "'%s' takes %llu bytes of parameters, given are %llu", entry_name,
                             (unsigned long long)entry->param_bytes, (unsigned long long)in->param_bytes));
  }
  Launch *launch = ARENA_NEW(emu->launch, Launch);
  launch->entry = entry;
  launch->module = module->module;
  machine_describe_limits(entry, in, launch);
  const char *error = check_shape(emu->launch, launch, entry);
  if (error != NULL) return usage(emu, error);
  error = parse_watch(emu, &in->watch, launch);
  if (error != NULL) return usage(emu, error);
  uint32_t checks;
  error = checks_parse(emu->launch, in->checks != NULL ? in->checks : "default", &checks);
  if (error != NULL) return usage(emu, error);
  return run(emu, launch, checks, in->workers, stats);
}
