"""The kernels of forms_engines.py as cases: their PTX is written when the tests start."""
import atexit, os, shutil, tempfile
from harness import case
import forms_engines
import forms_matrix  # adds kernels to those of forms_engines

folder = tempfile.mkdtemp(prefix='engines')
atexit.register(shutil.rmtree, folder, ignore_errors=True)
for kernel in forms_engines.KERNELS:
    path = os.path.join(folder, f'{kernel.name}_sm{kernel.arch}.ptx')
    with open(path, 'w') as file:
        file.write(kernel.text)
    case(path, kernel.entry, name=kernel.name, **kernel.options)(kernel.run)
