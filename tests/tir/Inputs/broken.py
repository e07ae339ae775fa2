"""Each case is a line for the body (or launch block) of a kernel, and words that the message must hold."""
import subprocess
import sys

HEAD = """kernel @k threads(128) facts(%s) {
  shared 64
launch:
  %%M = size "M" : i32
  %%A = tensor "A" %%M, %%M : f32[?, ?] global
  %%c0 = const {bits = 0} : i32
  %%c1 = const {bits = 1} : i32
  %%t = const {bits = 1} : bool
  %%f = const {bits = 1.0} : f32
%s
body:
  %%S = alloc "S" : f32[64, 32] shared
  %%F = alloc "F" : f32[64, 32] fragment
  %%b = alloc_barrier "b" [1, 1] : u64[2] barrier @ shared rows +0
  %%x = thread_idx : i32
  %%V = view %%A, %%c0, %%c0 : f32[64, 32] global
%s
}
"""

BODY = [
    ('%y = add %x, %f : i32', 'takes scalars of one type'),
    ('%y = floordiv %f, %f : f32', 'does not take f32'),
    ('%y = div %x, %x : i32', 'does not take i32'),
    ('%y = lt %x, %x : i32', 'wrong type'),
    ('%y = not %f : f32', 'does not take f32'),
    ('%y = const {bits = 300} : i8', '300 is no i8'),
    ('%y = block_idx {dim = 3} : i32', 'dim is 0, 1 or 2'),
    ('%y = select %x, %x, %x : i32', 'takes a bool'),
    ('%y = for %c0, %c1, %c0 : i32 {\n}', 'a step of 0'),
    ('%y = for %c0, %c1, %c1, %x : i32 {\n}', 'a bool cell'),
    ('%y = cell "y" : cell i32\nwhile %y {\n}', 'a bool cell'),
    ('while %x {\n}', 'a bool cell'),
    ('%y = for %c0, %c1, %c1 : f32 {\n}', "variable's type"),
    ('%y = for %c0, %c1, %c1 : i32 {\n}\n%z = add %y, %y : i32', 'a body that has ended'),
    ('if %t {\n  %y = add %x, %x : i32\n}\n%z = add %y, %y : i32', 'a body that has ended'),
    ('if %x {\n}', 'takes a bool'),
    ('role {lo = 0, hi = 129} {\n}', 'threads 0 to 128, which are no part of the active ones, 0 to 127'),
    ('role {lo = 32, hi = 32} {\n}', 'no part of the active ones'),
    ('role {lo = 32, hi = 64} {\n  role {lo = 0, hi = 64} {\n  }\n}', 'the active ones, 32 to 63'),
    ('one_thread {\n  role {lo = 0, hi = 1} {\n  }\n}', 'cannot stand in one_thread'),
    ('role {lo = 0, hi = 64} {\n}\nrole {lo = 32, hi = 96, arm = true} {\n}',
     'threads 32 to 95, and an arm of the same branch has 0 to 63'),
    ('role {lo = 0, hi = 32} {\n}\nrole {lo = 32, hi = 64, arm = true} {\n}\n%y = add %x, %x : i32\nrole {lo = 31, hi = 32, arm = true} {\n}',
     'threads 31 to 31, and an arm of the same branch has 0 to 31'),
    ('sync_threads {id = 1, count = 48}', 'multiples of 32'),
    ('sync_threads {id = 16, count = 32}', 'ids are 1 to 15'),
    ('sync_threads {count = 32}', 'ids are 1 to 15'),
    ('%y = parallel %f : i32 {\n}', 'one to five i32'),
    ('%y = alloc "y" : f32[0] shared', 'no extents'),
    ('%y = alloc "y" : f32[2000000000, 2000000000] shared', 'too large'),
    ('%y = alloc "y" : f32[?] shared', 'known only at launch'),
    ('%y = alloc "y" : f32[4] global', 'shared, fragment, TMEM or local'),
    ('%y = alloc_barrier "y" [0] : u64[1] barrier', 'count 0'),
    ('%y = alloc_barrier "y" [1048576] : u64[1] barrier', 'count 1048576'),
    ('%y = alloc_barrier "y" [1] : u64[2] barrier', 'one count a barrier'),
    ('%y = view %S, %c0, %c1 : f32[64, 32] shared', 'elements 1 to 32 of dimension 1, which has 32'),
    ('%y = view %S, %c0 : f32[64, 32] shared', 'one i32 a dimension'),
    ('%y = view %S, %c0, %c0 : f16[64, 32] shared', 'same type and space'),
    ('%y = view %S, %c0, %c0 : f32[32] shared', 'fewer dimensions than it keeps'),
    ('%y = view %S, %c0, %c0 {drop = 3} : f32[32] shared', 'more dimensions than it keeps'),
    ('%y = load %S, %x : f32', 'one i32 a dimension'),
    ('%y = load %S, %x, %x : f16', 'the element is a f32'),
    ('%y = load %b, %x : u64', 'cannot take that operand'),
    ('store %S, %x, %x, %x', 'the element is a f32'),
    ('%y = cell "y" %f : cell i32', 'the cell holds a i32'),
    ('set %S, %x', 'takes a cell'),
    ('wait %x', 'takes a token'),
    ('mbar_arrive %b', 'one barrier, not an array'),
    ('mbar_init %S', 'takes a barrier'),
    ('mbarrier_wait_parity %b, %f', 'one barrier'),
    ('tmem_alloc %S {columns = 64}', 'u32[1] shared'),
    ('tmem_dealloc %x {columns = 48}', 'power of two from 32 to 512'),
    ('grid_wait\n  grid_wait', 'stands once in a kernel'),
    ('role {lo = 0, hi = 64} {\n  grid_release\n  }', 'stands in no loop, branch or role'),
    ('%y = size "N" : i32', 'must stand in the launch block'),
    ('copy %S, %F {map = 0}', 'map 0 does not exist'),
    ('copy %F, %V {path = panels}', 'no ring for its panels'),
    ('copy %F, %V, _, %S {path = panels}', 'a ring of slots x rows x columns'),
    ('%R = alloc "R" : f32[2, 64, 24] shared\ncopy %F, %V, _, %R {path = panels}', 'of which whole panels make the tile'),
    ('%R = alloc "R" : f32[2, 64, 16] shared\ncopy %F, %V, _, %R {path = panels, panel = 2}', 'panel 2 of 2 does not exist'),
    ('%y = copy %S, %F : i32', 'has 1 results, not 0'),
    ('sync_threads %x', 'takes 0 operands, has 1'),
    ('%y = alloc "y" : f32[4] fragment @ shared rows', 'layout of another kind'),
    ('%y = alloc "y" : f32[4] fragment @ frag t(64:1) r()', 'over 64 threads, the kernel has 128'),
]

LAUNCH = [
    ('  %y = thread_idx : i32', 'cannot stand in the launch block'),
    ('  %y = tensor "B" %M : f32[16] global', 'not what its operand says'),
    ('  %y = tensor "B" %f : f32[?] global', 'one i32 a dimension'),
    ('  grid %M, %M, %M, %M', 'one to three i32'),
    ('  check "c" %M', 'takes a bool'),
    ('  %y = size "N" : f32', 'is an i32'),
]

FACTS = [
    ('typed, selected', 'copy %S, %F', 'has no path'),
    ('typed, laid_out', '', 'has no layout'),
    ('typed, fragments', '', 'has no layout'),
    ('typed, synced', '%y = copy %S, %F : token', 'still has a token'),
    ('typed, tmem_placed', '%T = alloc "T" : f32[128, 32] tmem', 'has no layout'),
    ('typed, tmem_placed', '%T = alloc "T" : f32[128, 32] tmem @ tmem cols ?+32', 'has no TMEM column'),
    ('typed, tmem_placed', '%T = alloc "T" : f32[128, 32] tmem @ tmem cols 0+32', 'ends at column 32 of 0'),
    ('typed, smem_placed', '%T = alloc "T" : f32[128, 32] shared @ shared rows', 'no offset'),
    ('typed, smem_placed', '%T = alloc "T" : f32[128, 32] shared @ shared rows +16', 'ends at byte 16400 of 64'),
]


def cases():
    for line, words in BODY:
        yield HEAD % ("typed", "", line), words
    for line, words in LAUNCH:
        yield HEAD % ("typed", line, ""), words
    for facts, line, words in FACTS:
        yield HEAD % (facts, "", line), words


failed = 0
for text, words in cases():
    run = subprocess.run([sys.argv[1], "-"], input=text, capture_output=True, text=True)
    if run.returncode == 1 and words in run.stderr and "error[E0131]" in run.stderr:
        continue
    failed += 1
    print("wanted %r, exit %d:\n%s\n%s" % (words, run.returncode, run.stderr, text))
RIGHT = """role {lo = 0, hi = 64} {
}
role {lo = 32, hi = 96} {
}
role {lo = 96, hi = 128, arm = true} {
}
role {lo = 0, hi = 32, arm = true} {
}"""
clean = subprocess.run([sys.argv[1], "-"], input=HEAD % ("typed", "", RIGHT), capture_output=True, text=True)
print("%d cases, %d failed" % (len(BODY) + len(LAUNCH) + len(FACTS), failed))
sys.exit(failed > 0 or clean.returncode != 0)
