"""Pairs of Numba programs: Python can read any file."""

from __future__ import annotations

from .changes import Built, Link, Variable, Zip, delete, link, older, unseen, write
from .pair import KERNEL_PY, ONE, PYTHON, TWO, Pair

HEAD = "from pathlib import Path\nHERE = Path(__file__).parent\n"
LIB = 'import sys\nsys.path.insert(0, "@here@/lib")\n'
ADD = 'extern "C" __device__ int add(int *r, int a) {{ *r = a + {}; return 0; }}\n'
LINKED = """\
from pathlib import Path
from numba import cuda
add = cuda.declare_device("add", "int32(int32)")

@cuda.jit(link=[str(Path("@here@") / "dev.cu")])
def k(a):
    a[0] = add(a[0])
"""
# A user's library that only the dynamic loader opens.
SHARED = "import ctypes\nN = ctypes.CDLL('@here@/libn.so').n()\n"
SO = ("-shared", "-fPIC")
# A statically linked program cannot be traced from within, as many tools in Go and Rust.
CAT = '#include <stdio.h>\nint main(int c, char **v) { FILE *f = fopen(v[1], "r"); putchar(fgetc(f)); return 0; }'
BOTH = PYTHON
ONE_ONLY = ("numba",)

PROGRAMS = (
    Pair(name="python-program", backends=BOTH, files={"kernel.py": "N = 1\n" + KERNEL_PY}, change=(write("kernel.py", "N = 2\n" + KERNEL_PY),)),
    Pair(name="python-helper", backends=BOTH, files={"kernel.py": "from helper import N\n" + KERNEL_PY, "helper.py": "N = 1\n"},
         change=(write("helper.py", "N = 2\n"),)),
    Pair(name="python-helper-older", backends=ONE_ONLY, files={"kernel.py": "from helper import N\n" + KERNEL_PY, "helper.py": "N = 1\n"},
         change=(older(write("helper.py", "N = 2\n")),)),
    Pair(name="python-helper-size-and-time-as-before", backends=ONE_ONLY, files={"kernel.py": "from helper import N\n" + KERNEL_PY, "helper.py": "N = 1\n"},
         change=(unseen(write("helper.py", "N = 2\n")),)),
    Pair(name="python-helper-of-a-helper", backends=BOTH, change=(write("deeper.py", "N = 2\n"),),
         files={"kernel.py": "from helper import N\n" + KERNEL_PY, "helper.py": "from deeper import N\n", "deeper.py": "N = 1\n"}),
    Pair(name="python-helper-inside-a-function", backends=ONE_ONLY, change=(write("helper.py", "N = 2\n"),),
         files={"kernel.py": "def n():\n    import helper\n    return helper.N\nN = n()\n" + KERNEL_PY, "helper.py": "N = 1\n"}),
    Pair(name="python-helper-appears", backends=BOTH, change=(write("helper.py", "N = 2\n"),),
         files={"kernel.py": "try:\n    from helper import N\nexcept ImportError:\n    N = 1\n" + KERNEL_PY}),
    Pair(name="python-helper-missing-appears", backends=ONE_ONLY, files={"kernel.py": "from helper import N\n" + KERNEL_PY},
         change=(write("helper.py", "N = 2\n"),), kept=False),
    Pair(name="python-helper-goes", backends=ONE_ONLY, change=(delete("helper.py"),),
         files={"kernel.py": "try:\n    from helper import N\nexcept ImportError:\n    N = 1\n" + KERNEL_PY, "helper.py": "N = 2\n"}),
    Pair(name="python-package", backends=BOTH, change=(write("lib/pkg/sub/values.py", "N = 2\n"),),
         files={"kernel.py": LIB + "from pkg import N\n" + KERNEL_PY, "lib/pkg/__init__.py": "from .sub.values import N\n", "lib/pkg/sub/__init__.py": "",
                "lib/pkg/sub/values.py": "N = 1\n"}),
    Pair(name="python-package-shadows-a-module", backends=ONE_ONLY, change=(write("lib/pkg/__init__.py", "N = 2\n"),),
         files={"kernel.py": LIB + "from pkg import N\n" + KERNEL_PY, "lib/pkg.py": "N = 1\n"}),
    Pair(name="python-module-earlier-on-the-path", backends=ONE_ONLY, change=(write("first/helper.py", "N = 2\n"),),
         files={"kernel.py": LIB + 'sys.path.insert(0, "@here@/first")\nfrom helper import N\n' + KERNEL_PY, "first/x": "", "lib/helper.py": "N = 1\n"}),
    Pair(name="python-zip", backends=ONE_ONLY, change=(link("lib.zip", "two.zip"),),
         files={"kernel.py": 'import sys\nsys.path.insert(0, "@here@/lib.zip")\nfrom helper import N\n' + KERNEL_PY,
                "one.zip": Zip("N = 1\n"), "two.zip": Zip("N = 2\n"), "lib.zip": Link("one.zip")}),
    Pair(name="python-data", backends=BOTH, files={"kernel.py": HEAD + "N = int((HERE / 'n.txt').read_text())\n" + KERNEL_PY, "n.txt": "1"},
         change=(write("n.txt", "2"),)),
    Pair(name="python-data-in-C", backends=ONE_ONLY, files={"kernel.py": "import numpy\nN = int(numpy.fromfile('@here@/n.bin', 'u1')[0])\n" + KERNEL_PY, "n.bin": "1"},
         change=(unseen(write("n.bin", "2")),)),
    Pair(name="python-data-appears", backends=BOTH, change=(write("n.txt", "2"),),
         files={"kernel.py": HEAD + "N = 2 if (HERE / 'n.txt').exists() else 1\n" + KERNEL_PY}),
    Pair(name="python-data-appears-elsewhere", backends=ONE_ONLY, change=(write("data/n.txt", "2"),),
         files={"kernel.py": "import os.path\nN = 2 if os.path.exists('@here@/data/n.txt') else 1\n" + KERNEL_PY}),
    Pair(name="python-data-goes", backends=ONE_ONLY, change=(delete("n.txt"),),
         files={"kernel.py": HEAD + "N = 2 if (HERE / 'n.txt').is_file() else 1\n" + KERNEL_PY, "n.txt": "2"}),
    Pair(name="python-data-link-retargeted", backends=ONE_ONLY, change=(link("n.txt", "two.txt"),),
         files={"kernel.py": HEAD + "N = int((HERE / 'n.txt').read_text())\n" + KERNEL_PY, "one.txt": "1", "two.txt": "2", "n.txt": Link("one.txt")}),
    Pair(name="python-link-read", backends=ONE_ONLY, change=(link("chosen", "two"),),
         files={"kernel.py": "import os\nN = len(os.readlink('@here@/chosen'))\n" + KERNEL_PY, "chosen": Link("eleven")}),
    Pair(name="python-json", backends=ONE_ONLY, change=(write("config/n.json", '{"n": 2}'),),
         files={"kernel.py": "import json\nwith open('@here@/config/n.json') as file:\n    N = json.load(file)['n']\n" + KERNEL_PY, "config/n.json": '{"n": 1}'}),
    Pair(name="python-listing", backends=BOTH, change=(write("two.txt", ""),),
         files={"kernel.py": HEAD + "N = len(list(HERE.glob('*.txt')))\n" + KERNEL_PY, "one.txt": ""}),
    Pair(name="python-listing-elsewhere", backends=ONE_ONLY, change=(write("data/deep/two.txt", ""),),
         files={"kernel.py": "from pathlib import Path\nN = len(list(Path('@here@/data').rglob('*.txt')))\n" + KERNEL_PY, "data/deep/one.txt": ""}),
    Pair(name="python-size", backends=ONE_ONLY, kept=False, change=(write("n.txt", "xx"),),
         files={"kernel.py": "import os\nN = os.stat('@here@/n.txt').st_size\n" + KERNEL_PY, "n.txt": "x"}),
    Pair(name="python-loads-a-library", backends=ONE_ONLY, kept=False, change=(link("libn.so", "two.so"),),
         files={"kernel.py": SHARED + KERNEL_PY, "one.so": Built("int n(void) { return 1; }", SO), "two.so": Built("int n(void) { return 2; }", SO), "libn.so": Link("one.so")}),
    Pair(name="python-loads-a-library-that-comes-earlier", backends=ONE_ONLY, kept=False,
         change=(link("first/libn.so", "../two.so"),),
         files={"kernel.py": SHARED.replace("libn.so", "user.so") + KERNEL_PY, "one.so": Built("int m(void) { return 1; }", SO),
                "two.so": Built("int m(void) { return 2; }", SO), "second/libn.so": Link("../one.so"), "first/x": "",
                "user.so": Built("int m(void); int n(void) { return m(); }", (*SO, "-L@here@/second", "-ln", "-Wl,-rpath,@here@/first:@here@/second"))}),
    Pair(name="python-listing-by-a-tool", backends=ONE_ONLY, change=(write("data/deep/two.txt", ""),), files={"data/deep/one.txt": "",
         "kernel.py": "import subprocess\nN = len(subprocess.check_output(['find', '@here@/data', '-name', '*.txt']).split())\n" + KERNEL_PY}),
    Pair(name="python-in-memory-disk", backends=ONE_ONLY, change=(write("/dev/shm/@unique@", "2"),),
         files={"kernel.py": "N = int(open('/dev/shm/@unique@').read())\n" + KERNEL_PY, "/dev/shm/@unique@": "1"}),
    Pair(name="python-runs-a-tool", backends=BOTH, change=(write("n.txt", "2"),),
         files={"kernel.py": "import subprocess\nN = int(subprocess.check_output(['cat', '@here@/n.txt']))\n" + KERNEL_PY, "n.txt": "1"}),
    Pair(name="python-runs-a-script", backends=ONE_ONLY, change=(write("tool", "#!/bin/sh\necho 2\n"),),
         files={"kernel.py": "import subprocess\nN = int(subprocess.check_output(['@here@/tool']))\n" + KERNEL_PY, "tool": "#!/bin/sh\necho 1\n"}),
    Pair(name="python-runs-a-static-tool", backends=ONE_ONLY, change=(write("n.txt", "2"),), kept=False,
         files={"kernel.py": "import subprocess\nN = int(subprocess.check_output(['@here@/tool', '@here@/n.txt']))\n" + KERNEL_PY, "tool": Built(CAT, ("-static",)), "n.txt": "1"}),
    Pair(name="python-without-the-preload", backends=ONE_ONLY, change=(write("n.txt", "2"),), kept=False,
         files={"kernel.py": "import subprocess\nN = int(subprocess.check_output(['cat', '@here@/n.txt'], env={'PATH': '/bin'}))\n" + KERNEL_PY, "n.txt": "1"}),
    Pair(name="python-variable", backends=ONE_ONLY, files={"kernel.py": "import os\nN = len(os.environ.get('TZ', ''))\n" + KERNEL_PY},
         variables={"TZ": "UTC"}, change=(Variable("TZ", "Europe/Berlin"),), matters=False),
    Pair(name="python-path", backends=ONE_ONLY, files={"kernel.py": "import shutil\nN = 2 if shutil.which('my-tool') else 1\n" + KERNEL_PY, "bin/x": ""},
         variables={"PATH": "@here@/bin:@path@"}, change=(write("bin/my-tool", "#!/bin/sh\n"),), matters=False),
    Pair(name="linked-cuda", backends=BOTH, files={"kernel.py": LINKED, "dev.cu": ADD.format(1)}, change=(write("dev.cu", ADD.format(2)),)),
    Pair(name="linked-cuda-header", backends=BOTH, change=(write("n.h", TWO),),
         files={"kernel.py": LINKED, "dev.cu": '#include "@here@/n.h"\n' + ADD.format("N"), "n.h": ONE}),
    Pair(name="python-a-file-that-nothing-reads", backends=BOTH, change=(write("other.txt", "1"),),
         files={"kernel.py": "from helper import N\n" + KERNEL_PY, "helper.py": "N = 1\n"}, matters=False),
)  # fmt: skip
