"""The families of forms.py as cases: their PTX is written when the tests start."""
import atexit, os, shutil, tempfile
from harness import case
import forms
import forms_more

folder = tempfile.mkdtemp(prefix='forms')
atexit.register(shutil.rmtree, folder, ignore_errors=True)
for family in forms.FAMILIES + forms_more.FAMILIES:
    path = os.path.join(folder, f'{family.name}_sm{family.arch}.ptx')
    with open(path, 'w') as file:
        file.write(family.ptx())

    def run(c, family=family):
        inputs = c.input('inputs', family.inputs())
        c.out('results', family.expected(inputs), tol=None)
        name, want, _, atol, _ = c.wants[-1]
        c.wants[-1] = (name, want, family.tolerance, atol, family.nan_free)
    case(path, family.name, name=family.name)(run)
