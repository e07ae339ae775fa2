// What the sanitizers of a fuzz build do unless ASAN_OPTIONS says otherwise: a large allocation fails, as it may anywhere; freed
// blocks are kept for a while, but not so many that they leave the caches.
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
  return "allocator_may_return_null=1:max_allocation_size_mb=64:quarantine_size_mb=16:malloc_context_size=8:"
         "detect_leaks=1";
}
