"""The families of forms.py as cases: their PTX is written when the tests start."""
import atexit, os, shutil, tempfile
from harness import case
import forms

folder = tempfile.mkdtemp(prefix='forms')
atexit.register(shutil.rmtree, folder, ignore_errors=True)
for family in forms.FAMILIES:
    path = os.path.join(folder, f'{family.name}_sm{family.arch}.ptx')
    with open(path, 'w') as file:
        file.write(family.ptx())

    def run(c, family=family):
        inputs = c.input('inputs', family.inputs())
        c.out('results', family.expected(inputs), tol=None)
        name, want, tol, atol, _ = c.wants[-1]
        c.wants[-1] = (name, want, tol, atol, family.nan_free)
    case(path, family.name, name=family.name)(run)
