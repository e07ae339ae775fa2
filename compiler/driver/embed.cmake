# A file's bytes as a C array: cmake -DINPUT=FILE -DOUTPUT=FILE.h -DNAME=name -P embed.cmake. The array ends with a 0.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}" "static const unsigned char ${NAME}[] = {\n${bytes}0};\n")
