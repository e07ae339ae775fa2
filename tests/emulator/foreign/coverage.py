#!/usr/bin/env python3
"""Checks that every form which the emulator must run has a test that runs it: the table is coverage.txt beside this file.

  coverage.py [--fill] [--emu TILE-EMU]

Tests are what runs an instruction against an answer worked out on its own: the families of forms.py and foreign kernels written around
single instructions, and the kernels of ../inst and ../async. An entry without a test, a test that an entry names and that lacks its
form, and an instruction of the emulator's tables that no entry names are errors. With --emu the forms that are refused are run. --fill writes the column of tests anew.
"""
import argparse, glob, itertools, os, re, subprocess, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import forms
import forms_engines
import forms_matrix  # adds kernels to those of forms_engines
import forms_more

SOURCES = os.path.join(here, '..', '..', '..', 'runtime', 'emulator')
TYPE = re.compile(r'(?:[usb]\d+(?:x\d)?|b?f\d+(?:x\d)?|tf32|pred|ue\d+m\d+(?:x\d)?|e\dm\d(?:x\d)?)$')
MNEMONIC = re.compile(r'(?:(?<=[;{}:])|^)\s*(?:@!?[%\w$]+\s+)?([a-z][a-z0-9]*\d*(?:::\w+)?(?:\.\w+(?:::\w+)*)*)(?=[\s\[{;])', re.M)


def key(mnemonic):
    """What makes two spellings one form: the root, the set of words, the list of types."""
    words = mnemonic.split('.')
    return words[0], frozenset(w for w in words[1:] if not TYPE.match(w)), tuple(w for w in words[1:] if TYPE.match(w))


def expand(pattern):
    parts = re.split(r'(\{[^{}]*\})', pattern)
    choices = [part[1:-1].split(',') if part.startswith('{') else [part] for part in parts]
    return [''.join(choice) for choice in itertools.product(*choices)]


def forms_in(text):
    """The mnemonics of a PTX text, and its operand words."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/', ' ', text, flags=re.S)
    words = set(re.findall(r'%?[A-Za-z_]\w*(?:\.[xyz])?', text))
    text = re.sub(r'^\s*\.(?:version|target|address_size|file|loc)\b.*$', '', text, flags=re.M)
    code = re.sub(r'\{[^{};]*\}', ' V ', text)
    return {key(m) for m in MNEMONIC.findall(code)}, words


def tests():
    """Name of a test -> (its forms, its words)."""
    found = {}
    for family in forms.FAMILIES + forms_more.FAMILIES:
        found['forms:' + family.name] = forms_in('\n'.join([family.setup] + [row[0] + ';' for row in family.rows]))
    for kernel in forms_engines.KERNELS:
        found['engines:' + kernel.name] = forms_in(kernel.text)
    for folder in ('../inst', '../async', 'ptx'):
        for path in sorted(glob.glob(os.path.join(here, folder, '*.ptx'))):
            name = os.path.basename(path)[:-4]
            if name.startswith('triton'):
                continue  # whole kernels
            prefix = '' if folder == 'ptx' else folder[3:] + '/'
            with open(path) as file:
                found[prefix + name] = forms_in(file.read())
    return found


def rows():
    """Lines of the table: (number, section, pattern, what stands behind the bar)."""
    section = ''
    with open(os.path.join(here, 'coverage.txt')) as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip('\n')
            if line.startswith('['):
                section = line
            elif line and not line.startswith('#'):
                pattern, _, where = line.partition(' | ')
                yield number, section, pattern.strip(), where


def holds(test, form):
    mnemonics, words = test
    return form[1:] in words if form[0] == '=' else key(form) in mnemonics


def pick(all_tests, wanted):
    """Few tests that hold all wanted forms, the most useful first."""
    chosen = []
    wanted = set(wanted)
    while wanted:
        best = max(all_tests, key=lambda name: (sum(holds(all_tests[name], form) for form in wanted), name))
        hit = {form for form in wanted if holds(all_tests[best], form)}
        if not hit:
            break
        chosen.append(best)
        wanted -= hit
    return chosen, wanted


def roots_of_tables():
    """The roots that the emulator's tables implement, from its sources."""
    found = set()
    for path in glob.glob(os.path.join(SOURCES, '*', '*.c')):
        with open(path) as file:
            for table in re.findall(r'const InstDef \w+_insts\[\] = \{(.*?)\n\};', file.read(), re.S):
                found |= set(re.findall(r'(?:\{|\.name = )"([^"]+)"', table))
    return found


KERNEL = """.version 9.0
.target sm_{}a
.address_size 64
.visible .entry k() {{
  .shared .align 128 .b8 pool[1024];
  .reg .pred p;
  .reg .b16 h;
  .reg .b32 r, s;
  .reg .f32 f;
  .reg .b64 l;
  {}
  ret;
}}
"""


def refusal(emu, statement, words):
    """What is wrong when the emulator is to refuse a statement, or None."""
    target, _, text = statement.partition(' ')
    with tempfile.NamedTemporaryFile('w', suffix='.ptx') as file:
        file.write(KERNEL.format(target, text))
        file.flush()
        result = subprocess.run([emu, file.name, '--entry', 'k', '--grid', '1', '--block', '32'], capture_output=True, text=True)
    return None if result.returncode == 3 and words in result.stderr else f'not refused with "{words}": {text} {result.stderr[:200]}'


def check(emu):
    all_tests, errors, mentioned, count = tests(), [], [], 0
    for number, section, pattern, where in rows():
        if section == '[refused]':
            mentioned += re.findall(r'[a-z][\w.:]*\.[\w.:]*', pattern)
            error = refusal(emu, pattern, where) if emu else None
            errors += [f'coverage.txt:{number}: {error}'] if error else []
            continue
        where = where.split()
        unknown = [name for name in where if name not in all_tests]
        errors += [f'coverage.txt:{number}: there is no test {name}' for name in unknown]
        where = [name for name in where if name not in unknown]
        for form in expand(pattern):
            count += 1
            mentioned.append(form)
            if not any(holds(all_tests[name], form) for name in where):
                errors.append(f'coverage.txt:{number}: no test for {form.lstrip("=")}')
        errors += [f'coverage.txt:{number}: {name} has none of these forms' for name in where if not any(holds(all_tests[name], form) for form in expand(pattern))]
    roots = roots_of_tables()
    if len(roots) < 100:
        errors.append(f'only {len(roots)} instructions found in the sources of the emulator')
    for root in sorted(roots):
        if not any(form == root or form.startswith(root + '.') for form in mentioned):
            errors.append(f'the emulator has {root}, coverage.txt has no form of it')
    print('\n'.join(errors + [f'{count} forms, {len(roots)} instructions, {len(errors)} without a test']))
    return bool(errors)


def fill():
    all_tests = tests()
    path = os.path.join(here, 'coverage.txt')
    with open(path) as file:
        lines = file.read().split('\n')
    for number, section, pattern, _ in rows():
        if section == '[refused]':
            continue
        chosen, missing = pick(all_tests, expand(pattern))
        lines[number - 1] = f'{pattern} | {" ".join(chosen)}'.rstrip(' |')
        for form in sorted(missing):
            print(f'missing: {form}')
    with open(path, 'w') as file:
        file.write('\n'.join(lines))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--fill', action='store_true')
    parser.add_argument('--emu')
    options = parser.parse_args()
    sys.exit(fill() if options.fill else check(options.emu))
