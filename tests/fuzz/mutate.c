// How libFuzzer changes texts here. Its own changes of bytes seldom leave a program that parses; these work on words and lines: a
// word becomes another word of its kind from the same text, a number an interesting one, a dotted part of a mnemonic another such
// part, lines go, move, double, or come from a second text. One change in four is still one of bytes, or of bytes within a word.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

enum { MOST_BYTES = 1 << 16, TRIES = 40 };

typedef struct {
  uint8_t *text;
  size_t size, room;
  uint64_t rng;
} Edit;

typedef struct {
  size_t begin, end;
} Range;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out,
                                 size_t most, unsigned seed);

static size_t any(uint64_t *rng, size_t below) {
  *rng = *rng * 6364136223846793005u + 1442695040888963407u;
  return below > 0 ? (size_t)(*rng >> 33) % below : 0;
}

// ---- words and lines

static bool word_byte(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '%' ||
         c == '$';
}

// Names, numbers, registers and single marks are exchanged among themselves only.
static int kind_of(uint8_t c) {
  if (c >= '0' && c <= '9') return '0';
  return c == '%' || !word_byte(c) ? c : 'a';
}

static Range word_at(const uint8_t *text, size_t size, size_t at) {
  Range r = {at, at + 1};
  if (!word_byte(text[at])) return r;
  while (r.begin > 0 && word_byte(text[r.begin - 1])) r.begin--;
  while (r.end < size && word_byte(text[r.end])) r.end++;
  return r;
}

static Range any_word(Edit *e) {
  size_t at = any(&e->rng, e->size);
  while (at + 1 < e->size && (e->text[at] == ' ' || e->text[at] == '\n')) at++;
  return word_at(e->text, e->size, at);
}

// One to three lines, with their ends.
static Range any_lines(uint64_t *rng, const uint8_t *text, size_t size) {
  size_t at = any(rng, size), lines = 1 + any(rng, 3);
  Range r = {at, at};
  while (r.begin > 0 && text[r.begin - 1] != '\n') r.begin--;
  for (; lines > 0 && r.end < size; lines--) {
    while (r.end < size && text[r.end] != '\n') r.end++;
    if (r.end < size) r.end++;
  }
  return r;
}

static bool replace(Edit *e, Range r, const uint8_t *with, size_t length) {
  uint8_t copy[MOST_BYTES];
  size_t rest = e->size - r.end, size = r.begin + length + rest;
  if (size > e->room || length > sizeof copy) return false;
  memcpy(copy, with, length);  // `with` may lie in the text
  memmove(e->text + r.begin + length, e->text + r.end, rest);
  memcpy(e->text + r.begin, copy, length);
  e->size = size;
  return true;
}

// ---- changes; false: not here

static bool other_word(Edit *e) {
  Range r = any_word(e), other = any_word(e);
  for (int i = 0; kind_of(e->text[other.begin]) != kind_of(e->text[r.begin]); i++) {
    if (i == TRIES) return false;
    other = any_word(e);
  }
  return replace(e, r, e->text + other.begin, other.end - other.begin);
}

static bool other_number(Edit *e) {
  static const char *const numbers[] = {"0",          "1",          "2",
                                        "3",          "4",          "7",
                                        "8",          "16",         "31",
                                        "32",         "63",         "64",
                                        "127",        "128",        "255",
                                        "256",        "1024",       "4096",
                                        "65535",      "0x7fffffff", "0x80000000",
                                        "-1",         "-2",         "1e9",
                                        "4294967295", "4294967296", "0xffffffffffffffff"};
  Range r = any_word(e);
  for (int i = 0; kind_of(e->text[r.begin]) != '0'; i++) {
    if (i == TRIES) return false;
    r = any_word(e);
  }
  const char *number = numbers[any(&e->rng, sizeof numbers / sizeof numbers[0])];
  return replace(e, r, (const uint8_t *)number, strlen(number));
}

// The part behind a dot, with the dot; empty: no dot was found.
static Range any_part(Edit *e) {
  for (int i = 0; i < TRIES; i++) {
    size_t at = any(&e->rng, e->size);
    while (at < e->size && e->text[at] != '.' && e->text[at] != '\n') at++;
    if (at + 1 >= e->size || e->text[at] != '.' || !word_byte(e->text[at + 1])) continue;
    return (Range){at, word_at(e->text, e->size, at + 1).end};
  }
  return (Range){0, 0};
}

static bool other_part(Edit *e) {
  Range r = any_part(e), other = any_part(e);
  size_t length = other.end - other.begin;
  if (r.end == 0 || other.end == 0) return false;
  switch (any(&e->rng, 4)) {
  case 0:
    return replace(e, r, e->text, 0);
  case 1:
    return replace(e, (Range){r.end, r.end}, e->text + other.begin, length);
  default:
    return replace(e, r, e->text + other.begin, length);
  }
}

static bool other_lines(Edit *e) {
  Range r = any_lines(&e->rng, e->text, e->size), other = any_lines(&e->rng, e->text, e->size);
  switch (any(&e->rng, 3)) {
  case 0:
    return replace(e, r, e->text, 0);
  case 1:
    return replace(e, (Range){r.begin, r.begin}, e->text + other.begin, other.end - other.begin);
  default:
    return replace(e, r, e->text + other.begin, other.end - other.begin);
  }
}

// libFuzzer's own changes, its dictionary among them, kept within a word.
static bool bytes_of_word(Edit *e) {
  uint8_t word[256];
  Range r = any_word(e);
  size_t length = r.end - r.begin;
  if (length > sizeof word / 2) return false;
  memcpy(word, e->text + r.begin, length);
  return replace(e, r, word, LLVMFuzzerMutate(word, length, sizeof word));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  static bool (*const changes[])(Edit *) = {other_word,  other_word,  other_number, other_part,
                                            other_lines, other_lines, bytes_of_word};
  Edit e = {.text = data, .size = size, .room = most, .rng = seed};
  if (size == 0 || any(&e.rng, 8) == 0) return LLVMFuzzerMutate(data, size, most);
  for (size_t n = 1 + any(&e.rng, 3); n > 0 && e.size > 0; n--) {
    for (int i = 0; i < TRIES && !changes[any(&e.rng, sizeof changes / sizeof changes[0])](&e); i++) {
    }
  }
  return e.size > 0 ? e.size : LLVMFuzzerMutate(data, e.size, most);
}

// The first text with lines of the second.
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out,
                                 size_t most, unsigned seed) {
  uint64_t rng = seed;
  if (na == 0 || nb == 0 || na > most) return 0;
  memcpy(out, a, na);
  Edit e = {.text = out, .size = na, .room = most, .rng = seed};
  Range here = any_lines(&rng, a, na), there = any_lines(&rng, b, nb);
  if (any(&rng, 2) == 0) here.end = here.begin;
  replace(&e, here, b + there.begin, there.end - there.begin);
  return e.size;
}
