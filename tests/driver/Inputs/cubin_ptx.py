"""cubin_ptx.py FILE.cubin FILE.ptx: reads the cubin's ELF structure and compares the PTX in it."""
import struct
import sys

cubin = open(sys.argv[1], "rb").read()
phoff, shoff = struct.unpack_from("<QQ", cubin, 0x20)
phnum, _, shnum, shstrndx = struct.unpack_from("<HHHH", cubin, 0x38)
NOBITS, LOAD = 8, 1

sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, shoff + 64 * i) for i in range(shnum)]
names = sections[shstrndx][4]
named = {}
for name, kind, flags, address, offset, size, link, info, align, entry in sections:
    assert kind == NOBITS or offset + size <= len(cubin), "a section leaves the file"
    if flags & 4:
        assert offset % align == 0, "code is not aligned"
    text = cubin[names + name : cubin.index(b"\0", names + name)].decode()
    named[text] = (offset, size)
print("sections inside the file")

segments = [struct.unpack_from("<IIQQQQQQ", cubin, phoff + 56 * i) for i in range(phnum)]
loaded = [(offset, offset + size) for kind, flags, offset, _, _, size, _, _ in segments if kind == LOAD]
assert all(end <= len(cubin) for _, end in loaded), "a segment leaves the file"
for text, (offset, size) in named.items():
    if text.startswith(".text."):
        assert any(begin <= offset and offset + size <= end for begin, end in loaded), text
print("segments inside the file, code at the address of its section")

offset, size = named[".nv_debug_ptx_txt"]
kept = cubin[offset : offset + size].replace(b"\0", b"\n")
assert kept == open(sys.argv[2], "rb").read() and b"\t.loc\t" in kept
print("the same text")
