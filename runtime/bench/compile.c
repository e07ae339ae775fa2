// Each child writes its messages into an unnamed file, so that nobody has to read pipes while others run.
#include "bench/compile.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

extern char **environ;

typedef struct {
  pid_t pid;
  FILE *messages;
} Child;

static bool start(CompileJob *job, Child *child) {
  posix_spawn_file_actions_t actions;
  job->status = -1;
  child->messages = tmpfile();
  if (!child->messages || posix_spawn_file_actions_init(&actions) != 0) return false;
  int file = fileno(child->messages);
  bool ready = posix_spawn_file_actions_adddup2(&actions, file, STDOUT_FILENO) == 0 &&
               posix_spawn_file_actions_adddup2(&actions, file, STDERR_FILENO) == 0;
  int failure = ready ? posix_spawn(&child->pid, job->argv[0], &actions, NULL, job->argv, environ) : ENOMEM;
  posix_spawn_file_actions_destroy(&actions);
  if (failure && asprintf(&job->messages, "cannot start %s: %s\n", job->argv[0], strerror(failure)) < 0)
    job->messages = NULL;
  return failure == 0;
}

static char *read_messages(FILE *file) {
  long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
  char *text = length > 0 ? malloc((size_t)length + 1) : NULL;
  if (!text) return NULL;
  rewind(file);
  text[fread(text, 1, (size_t)length, file)] = '\0';
  return text;
}

static void end(CompileJob *job, Child *child, int status) {
  if (WIFEXITED(status)) job->status = WEXITSTATUS(status);
  job->messages = read_messages(child->messages);
}

// Waits until any child has ended; false when none is left.
static bool wait_for_one(CompileJob *jobs, Child *children, int count) {
  int status;
  pid_t ended = waitpid(-1, &status, 0);
  if (ended < 0) return errno == EINTR;
  for (int i = 0; i < count; i++) {
    if (children[i].pid != ended) continue;
    end(&jobs[i], &children[i], status);
    children[i].pid = 0;
  }
  return true;
}

static int running(const Child *children, int count) {
  int number = 0;
  for (int i = 0; i < count; i++) number += children[i].pid > 0;
  return number;
}

TileError *compile_run(CompileJob *jobs, int count, int parallel) {
  Child *children = calloc((size_t)count + 1, sizeof *children);
  if (!children) return error_no_memory();
  for (int i = 0; i < count; i++) {
    while (running(children, i) >= parallel && wait_for_one(jobs, children, i)) continue;
    if (!start(&jobs[i], &children[i])) children[i].pid = 0;
  }
  while (running(children, count) && wait_for_one(jobs, children, count)) continue;
  for (int i = 0; i < count; i++)
    if (children[i].messages) fclose(children[i].messages);
  free(children);
  return NULL;
}
