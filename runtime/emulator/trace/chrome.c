// Events are complete spans, written when they end, so that the text is well-formed wherever it is cut. A span goes to
// the first track of its kind that is free from its begin on: spans of one track never overlap except by nesting. A
// wait lasts from the instruction that blocked to the one with which the lanes go on; an operation from its issue to
// its completion; a warp's role, named by what it did, from its start to its exit.
#include "trace/chrome.h"

#include <stdlib.h>
#include <string.h>

#include "async/tcgen05_mma.h"
#include "base/vec.h"
#include "trace/inst_kind.h"

// What a warp did: its role.
enum { ROLE_LOAD = 1, ROLE_MMA = 2, ROLE_EPILOGUE = 4, ROLE_STORE = 8 };

// Threads of the format: a warp's tracks (its lanes can wait in 32 places), then the engines' in turn, as many as there are
// operations at once. Readers sort them by warp and engine. Processes and threads count from 1: 0 is the idle task to
// some readers.
enum { TRACKS_A_WARP = 40, FIRST_ENGINE = 2000, ENGINE_SORT = 1 << 20 };

// An operation in flight, or lanes that wait.
typedef struct {
  const void *key;  // EngineOp, or Inst
  uint64_t start;
  uint64_t retried;  // wait: when its instruction was last executed again; 0: not yet
  uint32_t lanes;
  const char *name, *detail;
  int track;
} Open;

typedef struct {
  VEC(Open) open;
  int named;  // tracks that have a name in the trace
} Track;

typedef struct CtaTrace {
  struct CtaTrace *next;
  const Cta *cta;
  Track *warps;  // waits
  uint64_t *begun;
  uint8_t *roles;
  Track engines[ENGINE_COUNT];
} CtaTrace;

typedef struct {
  Machine *machine;
  TextBuf *out;
  const uint8_t *kinds;
  CtaTrace *ctas;
  uint64_t events;
  bool cut;
} State;

// ---- text

static void json_string(TextBuf *out, const char *text) {
  textbuf_puts(out, "\"");
  for (const char *c = text; *c != '\0'; c++) {
    if (*c == '"' || *c == '\\')
      textbuf_printf(out, "\\%c", *c);
    else if ((unsigned char)*c < 0x20)
      textbuf_printf(out, "\\u%04x", *c);
    else
      textbuf_add(out, c, 1);
  }
  textbuf_puts(out, "\"");
}

// False when the trace is full; otherwise the caller writes one event's object.
static bool begin_event(State *self) {
  if (self->cut) return false;
  textbuf_puts(self->out, self->events++ == 0 ? "\n" : ",\n");
  return true;
}

static void name_of(State *self, const char *what, uint32_t pid, int tid, const char *name) {
  if (!begin_event(self)) return;
  textbuf_printf(self->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%d,\"args\":{\"name\":", what,
                 pid, tid);
  json_string(self->out, name);
  textbuf_puts(self->out, "}}");
}

static void name_track(State *self, const Cta *cta, int tid, int sort_index, const char *name) {
  name_of(self, "thread_name", cta->linear + 1, tid, name);
  if (!begin_event(self)) return;
  textbuf_printf(
      self->out,
      "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%u,\"tid\":%d,\"args\":{\"sort_index\":%d}}",
      cta->linear + 1, tid, sort_index);
}

static void span(State *self, const char *category, const Cta *cta, int tid, const char *name, uint64_t start,
                 uint64_t end, const char *detail) {
  if (!begin_event(self)) return;
  textbuf_printf(
      self->out,
      "{\"ph\":\"X\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%d,\"ts\":%llu,\"dur\":%llu,\"name\":", category,
      cta->linear + 1, tid, (unsigned long long)start, (unsigned long long)(end - start));
  json_string(self->out, name);
  textbuf_puts(self->out, ",\"args\":{\"detail\":");
  json_string(self->out, detail);
  textbuf_puts(self->out, "}}");
}

static const char *at_line(State *self, const Inst *inst, const char *more) {
  return text_printf(self->machine->arena, "line %d%s%s", inst != NULL ? inst->line : 0,
                     more[0] != '\0' ? ", " : "", more);
}

// ---- tracks

static int free_track(const Track *track) {
  for (int candidate = 0;; candidate++) {
    bool taken = false;
    for (int i = 0; i < track->open.len; i++) taken |= track->open.data[i].track == candidate;
    if (!taken) return candidate;
  }
}

static int warp_tid(int warp, int track) {
  return 1 + warp * TRACKS_A_WARP + track;
}

static int engine_tid(EngineKind engine, int track) {
  return FIRST_ENGINE + track * ENGINE_COUNT + (int)engine;
}

static const char *const engine_names[ENGINE_COUNT] = {
    [ENGINE_TMA_LOAD] = "TMA loads", [ENGINE_TMA_STORE] = "TMA stores",   [ENGINE_CP_ASYNC] = "cp.async",
    [ENGINE_TENSOR] = "tensor core", [ENGINE_OTHER] = "other operations",
};

static CtaTrace *find(State *self, const Cta *cta) {
  for (CtaTrace *t = self->ctas; t != NULL; t = t->next)
    if (t->cta == cta) return t;
  return NULL;
}

// ---- CTAs and roles

static void on_cta_begin(State *self, const Cta *cta) {
  Arena *arena = self->machine->arena;
  if (self->cut) return;
  CtaTrace *t = ARENA_NEW(arena, CtaTrace);
  t->next = self->ctas;
  t->cta = cta;
  t->warps = ARENA_ARRAY(arena, Track, cta->nwarps);
  t->begun = ARENA_ARRAY(arena, uint64_t, cta->nwarps);
  t->roles = ARENA_ARRAY(arena, uint8_t, cta->nwarps);
  self->ctas = t;
  name_of(self, "process_name", cta->linear + 1, 1,
          text_printf(arena, "CTA (%u,%u,%u)", cta->id[0], cta->id[1], cta->id[2]));
  for (int w = 0; w < cta->nwarps; w++) {
    t->begun[w] = self->machine->steps;
    t->warps[w].named = 1;
    name_track(self, cta, warp_tid(w, 0), warp_tid(w, 0), text_printf(arena, "warp %d", w));
  }
}

static const char *role_name(Arena *arena, uint8_t role) {
  static const char *const words[] = {"load", "mma", "epilogue", "store"};
  TextBuf out = {.arena = arena};
  for (int i = 0; i < 4; i++)
    if (role >> i & 1) textbuf_printf(&out, out.len > 0 ? " + %s" : "%s", words[i]);
  return out.len > 0 ? out.data : "other";
}

static void close_role(State *self, CtaTrace *t, int warp) {
  const char *role = role_name(self->machine->arena, t->roles[warp]);
  span(self, "role", t->cta, warp_tid(warp, 0), role, t->begun[warp], self->machine->steps,
       "from start to exit");
  t->begun[warp] = UINT64_MAX;
}

static uint8_t role_of(InstKind kind) {
  return kind == KIND_MMA ? ROLE_MMA : kind == KIND_TMEM ? ROLE_EPILOGUE : 0;
}

// ---- waits

static void close_wait(State *self, CtaTrace *t, int warp, int index, uint64_t end) {
  Track *track = &t->warps[warp];
  const Open *wait = &track->open.data[index];
  span(self, "wait", t->cta, warp_tid(warp, wait->track), wait->name, wait->start, end, wait->detail);
  track->open.data[index] = track->open.data[--track->open.len];
}

static const char *wait_name(const Wait *wait) {
  return wait->what != NULL ? wait->what : "wait";
}

static const char *wait_detail(State *self, const Event *event, const Wait *wait) {
  Arena *arena = self->machine->arena;
  const char *more = "";
  if (wait->kind == WAIT_MBARRIER)
    more = text_printf(arena, "%s, phase of parity %u",
                       machine_symbolize(self->machine, wait->cta, SPACE_SHARED, wait->address),
                       wait->number & 1);
  if (wait->kind == WAIT_BARRIER) more = text_printf(arena, "barrier %u", wait->number);
  return at_line(self, event->inst, more);
}

static void on_wait(State *self, CtaTrace *t, const Event *event) {
  const Wait *wait = (const Wait *)(uintptr_t)event->address;
  Track *track = &t->warps[event->warp->index];
  if (wait->kind == WAIT_TURN || wait->kind == WAIT_LANES) return;
  for (int i = 0; i < track->open.len; i++) {
    Open *open = &track->open.data[i];
    if (open->key != event->inst || (open->lanes & event->lanes) == 0) continue;
    open->retried = 0;  // it waits on
    return;
  }
  Open open = {event->inst,     self->machine->steps,           0, event->lanes,
               wait_name(wait), wait_detail(self, event, wait), 0};
  open.track = free_track(track);
  if (open.track >= track->named) {
    track->named = open.track + 1;
    int tid = warp_tid(event->warp->index, open.track);
    name_track(self, t->cta, tid, tid,
               text_printf(self->machine->arena, "warp %d, other lanes", event->warp->index));
  }
  vec_push(self->machine->arena, &track->open, open);
}

// An instruction of lanes that waited: the wait's own once more, or the one after it.
static void on_issue(State *self, CtaTrace *t, const Event *event) {
  int warp = event->warp->index;
  Track *track = &t->warps[warp];
  t->roles[warp] |= role_of(inst_kind(self->machine, self->kinds, event->inst));
  for (int i = track->open.len - 1; i >= 0; i--) {
    Open *open = &track->open.data[i];
    if ((open->lanes & event->lanes) == 0) continue;
    if (open->key == event->inst && open->retried == 0)
      open->retried = self->machine->steps;
    else
      close_wait(self, t, warp, i, open->retried != 0 ? open->retried : self->machine->steps);
  }
}

static void on_thread_exit(State *self, CtaTrace *t, const Event *event) {
  int warp = event->warp->index;
  if (event->warp->live != 0 || t->begun[warp] == UINT64_MAX) return;
  for (int i = t->warps[warp].open.len - 1; i >= 0; i--) close_wait(self, t, warp, i, self->machine->steps);
  close_role(self, t, warp);
}

// ---- operations

static const char *op_name(State *self, const EngineOp *op) {
  const char *name = op->origin.inst->def != NULL ? op->origin.inst->def->name : "operation";
  if (op->complete != mma_complete) return name;
  const Idesc *shape = &((const MmaOp *)(const void *)op)->idesc;
  return text_printf(self->machine->arena, "%s %dx%dx%d", name, shape->m, shape->n, shape->k);
}

static void on_start(State *self, const EngineOp *op) {
  CtaTrace *t = find(self, op->origin.cta);
  if (t == NULL) return;
  Track *track = &t->engines[op->engine];
  Open open = {.key = op, .start = self->machine->steps, .name = op_name(self, op)};
  open.detail =
      at_line(self, op->origin.inst, text_printf(self->machine->arena, "by warp %d", op->origin.warp));
  open.track = free_track(track);
  if (open.track >= track->named) {
    track->named = open.track + 1;
    name_track(self, t->cta, engine_tid(op->engine, open.track),
               ((int)op->engine + 1) * ENGINE_SORT + open.track, engine_names[op->engine]);
  }
  vec_push(self->machine->arena, &track->open, open);
  if (op->engine == ENGINE_TMA_LOAD || op->engine == ENGINE_CP_ASYNC) t->roles[op->origin.warp] |= ROLE_LOAD;
  if (op->engine == ENGINE_TMA_STORE) t->roles[op->origin.warp] |= ROLE_STORE;
  span(self, "issue", t->cta, warp_tid(op->origin.warp, 0), open.name, open.start, open.start + 1,
       at_line(self, op->origin.inst, ""));
}

static void close_op(State *self, const CtaTrace *t, EngineKind engine, const Open *open) {
  span(self, "operation", t->cta, engine_tid(engine, open->track), open->name, open->start,
       self->machine->steps + 1, open->detail);
}

static void on_done(State *self, const EngineOp *op) {
  CtaTrace *t = find(self, op->origin.cta);
  if (t == NULL) return;
  Track *track = &t->engines[op->engine];
  for (int i = 0; i < track->open.len; i++) {
    if (track->open.data[i].key != op) continue;
    close_op(self, t, op->engine, &track->open.data[i]);
    track->open.data[i] = track->open.data[--track->open.len];
    return;
  }
}

// ---- end

static void close_cta(State *self, CtaTrace *t) {
  for (int w = 0; w < t->cta->nwarps; w++) {
    if (t->begun[w] == UINT64_MAX) continue;
    for (int i = t->warps[w].open.len - 1; i >= 0; i--) close_wait(self, t, w, i, self->machine->steps);
    close_role(self, t, w);
  }
  for (int e = 0; e < ENGINE_COUNT; e++)
    for (int i = 0; i < t->engines[e].open.len; i++)
      close_op(self, t, (EngineKind)e, &t->engines[e].open.data[i]);
}

static void on_cta_end(State *self, const Cta *cta) {
  for (CtaTrace **link = &self->ctas; *link != NULL; link = &(*link)->next) {
    if ((*link)->cta != cta) continue;
    close_cta(self, *link);
    *link = (*link)->next;
    return;
  }
}

static void close_all(State *self) {
  for (; self->ctas != NULL; self->ctas = self->ctas->next) close_cta(self, self->ctas);
}

static void cut(State *self) {
  close_all(self);
  if (!begin_event(self)) return;
  textbuf_printf(
      self->out,
      "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"the trace was cut here\",\"pid\":1,\"tid\":1,\"ts\":%llu}",
      (unsigned long long)self->machine->steps);
  self->cut = true;
  self->machine->trace_cut = self->machine->steps > 0 ? self->machine->steps : 1;
}

static void *begin(Machine *machine) {
  State *self = ARENA_NEW(machine->arena, State);
  self->machine = machine;
  self->out = machine->trace;
  self->kinds = inst_kinds(machine);
  textbuf_puts(self->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  return self;
}

static void on_event(void *state, Machine *machine, const Event *event) {
  State *self = state;
  if (self->cut) return;
  if (event->kind == EVENT_CTA_BEGIN) on_cta_begin(self, event->cta);
  if (event->kind == EVENT_CTA_END) on_cta_end(self, event->cta);
  if (event->kind == EVENT_ASYNC_START) on_start(self, machine->op);
  if (event->kind == EVENT_ASYNC_DONE) on_done(self, machine->op);
  if (event->kind == EVENT_STOP) close_all(self);
  CtaTrace *t = event->warp != NULL ? find(self, event->cta) : NULL;
  if (t != NULL && event->kind == EVENT_ISSUE) on_issue(self, t, event);
  if (t != NULL && event->kind == EVENT_WAIT) on_wait(self, t, event);
  if (t != NULL && event->kind == EVENT_THREAD_EXIT) on_thread_exit(self, t, event);
  if (self->events >= machine->launch->watch.trace_events) cut(self);
}

static void end(void *state, Machine *machine) {
  State *self = state;
  textbuf_printf(self->out,
                 "\n],\"otherData\":{\"time\":\"warp instructions executed\",\"instructions\":%llu",
                 (unsigned long long)machine->steps);
  if (self->cut)
    textbuf_printf(self->out, ",\"cut\":\"after %llu events, at instruction %llu\"",
                   (unsigned long long)self->events, (unsigned long long)machine->trace_cut);
  textbuf_puts(self->out, "}}\n");
}

const Observer chrome_observer = {
    .name = "chrome",
    .events = 1u << EVENT_ISSUE | 1u << EVENT_WAIT | 1u << EVENT_ASYNC_START | 1u << EVENT_ASYNC_DONE |
              1u << EVENT_THREAD_EXIT | 1u << EVENT_CTA_BEGIN | 1u << EVENT_CTA_END | 1u << EVENT_STOP,
    .begin = begin,
    .on_event = on_event,
    .end = end,
};
