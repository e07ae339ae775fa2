#!/usr/bin/env python3
"""Kernels that other compilers made, run in the emulator and compared with numpy.

  foreign.py [--emu TILE-EMU] [--ptxas PTXAS] [--only TEXT] [--orders fair,lazy,random:1] [--check LIST] [--list] [-j N]

With --emu the kernels run, with --ptxas each PTX file is assembled. --only takes cases whose name contains TEXT. The exit code is the number of failures (at most 99).
"""
import argparse, concurrent.futures, glob, importlib, os, subprocess, sys, tempfile, time, traceback
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import harness


def command(emu, case, call, directory):
    o = {**case.options, **call.options}
    words = [emu, os.path.join(here, 'ptx', case.ptx), '--entry', case.entry, '--grid', str(o.get('grid', 1)),
             '--block', str(o.get('block', 32)), '--shared', str(o.get('shared', 0))]
    for name in ('cluster', 'sms'):
        if name in o:
            words += ['--' + name, str(o[name])]
    for arg in call.args:
        words += ['--arg', arg.replace('{dir}', directory)]
    return words


def prepare(case, directory):
    call = harness.Call()
    with np.errstate(all='ignore'):
        case.function(call)
    for name, array in call.inputs.items():
        np.save(os.path.join(directory, name + '.npy'), array)
    return call


def judge(case, call, directory, result):
    fails = case.options.get('fails')
    if fails:
        return [] if result.returncode and fails in result.stderr else [f'expected the error "{fails}", got: {result.stderr[:400]}']
    if result.returncode:
        return [f'exit {result.returncode}: {(result.stderr + result.stdout)[:1500]}']
    errors = []
    if call.stdout is not None and result.stdout != call.stdout:
        errors.append(f'printed {result.stdout!r}, expected {call.stdout!r}')
    for name, want, *how in call.wants:
        file = os.path.join(directory, name + ('.npy' if name in call.inputs else '.out.npy'))
        error = harness.difference(name, np.load(file), want, *how)
        if error:
            errors.append(error)
    return errors


def run(case, emu, orders, check):
    errors = []
    if check and 'race' in check and 'race' in case.options:  # why it has one
        check = 'default'
    for order in case.options.get('orders', orders):
        with tempfile.TemporaryDirectory() as directory:
            call = prepare(case, directory)
            words = command(emu, case, call, directory) + ['--order', order] + (['--check', check] if check else [])
            try:
                result = subprocess.run(words, capture_output=True, text=True, timeout=300)
            except subprocess.TimeoutExpired:
                errors.append(f'{order}: still running after 300 s')
                continue
            errors += [f'{order}: {e}' for e in judge(case, call, directory, result)]
    return errors


def assemble(ptxas, file):
    arch = 'sm_100a' if 'sm100' in file else 'sm_90a'
    result = subprocess.run([ptxas, f'-arch={arch}', '-O0', os.path.join(here, 'ptx', file), '-o', os.devnull], capture_output=True, text=True)
    return [] if result.returncode == 0 else [f'ptxas: {result.stderr[:600]}']


def load_cases():
    for file in sorted(glob.glob(os.path.join(here, 'cases_*.py'))):
        importlib.import_module(os.path.basename(file)[:-3])
    return harness.CASES


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--emu')
    parser.add_argument('--ptxas')
    parser.add_argument('--only', default='')
    parser.add_argument('--orders', default='fair')
    parser.add_argument('--check', default='')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('-j', type=int, default=2)
    parser.add_argument('-v', action='store_true')
    o = parser.parse_args()
    cases = [c for c in load_cases() if o.only in c.name]
    if o.list:
        print('\n'.join(c.name for c in cases))
        return 0
    jobs = {}
    with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
        if o.ptxas:
            for file in sorted({c.ptx for c in cases}):
                jobs[file] = pool.submit(assemble, o.ptxas, file)
        for c in cases if o.emu else []:
            jobs[c.name] = pool.submit(timed, c, o)
    failures = 0
    for name, job in jobs.items():
        result = job.result()
        errors, seconds = result if isinstance(result, tuple) else (result, 0)
        failures += bool(errors)
        if errors or o.v:
            print(f'{"FAIL" if errors else "ok  "} {name} {seconds:.2f}s')
        for error in errors:
            print('   ', error.replace('\n', '\n      '))
    ran = len(cases) if o.emu else 0
    print(*([f'{ran} kernels,'] if ran else []), *([f'{len(jobs) - ran} files assembled,'] if o.ptxas else []), f'{failures} failures')
    return min(failures, 99)


def timed(case, o):
    start = time.time()
    try:
        errors = run(case, o.emu, o.orders.split(','), o.check)
    except Exception as error:  # a mistake in the expectation is a failure of this case only
        errors = [f'{type(error).__name__} at line {error.__traceback__.tb_lineno}: {error}'] + traceback.format_tb(error.__traceback__)[-2:]
    return errors, time.time() - start


if __name__ == '__main__':
    sys.exit(main())
