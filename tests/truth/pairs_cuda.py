"""Pairs of CUDA C++ programs: headers, their folders, and their includes."""

from __future__ import annotations

from .changes import Link, append, delete, link, moved, older, touch, unseen, write
from .pair import CUDA, KERNEL, ONE, TWO, Pair

SOURCE = '#include "n.h"\n' + KERNEL
ANGLE = "#include <n.h>\n" + KERNEL
MAYBE = '#if __has_include("n.h")\n#include "n.h"\n#else\n#define N 1\n#endif\n' + KERNEL
INC = ("-I", "@here@/inc")
EARLY = ("-I", "@here@/early", "-I", "@here@/late")
BROKEN = 'extern "C" __global__ void k(int *a) { *a = missing; }\n'

HEADERS = (
    Pair(name="program", backends=(*CUDA, "torch-nvcc"), files={"kernel.cu": "#define N 1\n" + KERNEL},
         change=(write("kernel.cu", "#define N 2\n" + KERNEL),)),
    Pair(name="program-mended", backends=("nvrtc", "nvcc"), files={"kernel.cu": BROKEN},
         change=(write("kernel.cu", "#define N 2\n" + KERNEL),)),
    Pair(name="program-size-and-time-as-before", backends=("nvrtc", "nvcc"), files={"kernel.cu": "#define N 1\n" + KERNEL},
         change=(unseen(write("kernel.cu", "#define N 2\n" + KERNEL)),)),
    Pair(name="program-link-retargeted", backends=("nvrtc",),
         files={"one.cu": "#define N 1\n" + KERNEL, "two.cu": "#define N 2\n" + KERNEL, "kernel.cu": Link("one.cu")},
         change=(link("kernel.cu", "two.cu"),), args=("-D", "X=1")),
    Pair(name="beside", backends=("nvrtc", "nvcc"), files={"kernel.cu": SOURCE, "n.h": ONE}, change=(write("n.h", TWO),)),
    Pair(name="in-I", backends=(*CUDA, "torch-nvcc"), files={"kernel.cu": SOURCE, "inc/n.h": ONE}, args=INC,
         change=(write("inc/n.h", TWO),)),
    Pair(name="in-I-older", backends=CUDA, files={"kernel.cu": SOURCE, "inc/n.h": ONE}, args=INC,
         change=(older(write("inc/n.h", TWO)),)),
    Pair(name="in-I-size-and-time-as-before", backends=CUDA, files={"kernel.cu": SOURCE, "inc/n.h": ONE}, args=INC,
         change=(unseen(write("inc/n.h", TWO)),)),
    Pair(name="in-I-renamed-over", backends=("nvrtc", "nvcc"), files={"kernel.cu": SOURCE, "inc/n.h": ONE}, args=INC,
         change=(unseen(moved("inc/n.h", TWO)),)),
    Pair(name="in-I-nested", backends=CUDA, args=INC, change=(write("inc/deep/m.h", TWO),),
         files={"kernel.cu": SOURCE, "inc/n.h": '#include "deep/m.h"\n', "inc/deep/m.h": ONE}),
    Pair(name="by-absolute-path", backends=("nvrtc", "nvcc"), files={"kernel.cu": '#include "@here@/else/n.h"\n' + KERNEL, "else/n.h": ONE},
         change=(write("else/n.h", TWO),)),
    Pair(name="above-a-linked-folder", backends=("nvrtc", "nvcc"), args=INC, change=(write("else/n.h", TWO),),
         files={"kernel.cu": '#include "sub/../n.h"\n' + KERNEL, "else/deep/x": "", "inc/sub": Link("../else/deep"), "else/n.h": ONE, "inc/n.h": "#define N 3\n"}),
    Pair(name="header-link-retargeted", backends=CUDA, args=INC, change=(link("inc/n.h", "../two.h"),),
         files={"kernel.cu": SOURCE, "one.h": ONE, "two.h": TWO, "inc/n.h": Link("../one.h")}),
    Pair(name="folder-link-retargeted", backends=("nvrtc", "nvcc", "cupy-nvrtc"), args=("--option=-I@here@/inc",), change=(link("inc", "two"),),
         files={"kernel.cu": ANGLE, "one/n.h": ONE, "two/n.h": TWO, "inc": Link("one")}),
    Pair(name="two-of-a-name-angle", backends=CUDA, args=INC, change=(write("inc/n.h", TWO),),
         files={"kernel.cu": ANGLE, "n.h": "#define N 3\n", "inc/n.h": ONE}),
    Pair(name="two-of-a-name-nested-quote", backends=CUDA, args=INC, change=(write("inc/outer/n.h", TWO),),
         files={"kernel.cu": "#include <outer/outer.h>\n" + KERNEL, "n.h": "#define N 3\n", "inc/outer/outer.h": '#include "n.h"\n',
                "inc/outer/n.h": ONE, "inc/n.h": "#define N 4\n"}),
    Pair(name="two-of-a-name-nested-angle", backends=CUDA, args=EARLY, change=(write("early/n.h", TWO),),
         files={"kernel.cu": "#include <outer.h>\n" + KERNEL, "late/outer.h": "#include <n.h>\n", "late/n.h": "#define N 3\n", "early/n.h": ONE}),
    Pair(name="the-next-of-a-name", backends=("nvrtc", "nvcc"), args=EARLY, change=(write("late/n.h", TWO),),
         files={"kernel.cu": ANGLE, "early/n.h": "#include_next <n.h>\n", "late/n.h": ONE}),
    Pair(name="appears-earlier", backends=CUDA, args=EARLY, change=(write("early/n.h", TWO),),
         files={"kernel.cu": ANGLE, "early/other.h": "", "late/n.h": ONE}),
    Pair(name="appears-earlier-with-its-folder", backends=("nvrtc", "nvcc", "cupy-nvrtc"),
         args=("--option=-I@here@/early", "--option=-I@here@/late"), change=(write("early/n.h", TWO),),
         files={"kernel.cu": ANGLE, "late/n.h": ONE}),
    Pair(name="appears", backends=CUDA, args=INC, change=(write("inc/n.h", TWO),),
         files={"kernel.cu": ANGLE, "inc/other.h": ""}),
    Pair(name="appears-where-it-was-asked-for", backends=("nvrtc", "nvcc", "cupy-nvrtc"), args=INC, change=(write("inc/n.h", TWO),),
         files={"kernel.cu": MAYBE, "inc/other.h": ""}),
    Pair(name="goes", backends=CUDA, args=INC, change=(delete("inc/n.h"),), files={"kernel.cu": ANGLE, "inc/n.h": ONE}),
    Pair(name="goes-and-a-later-one-comes-up", backends=CUDA, args=EARLY, change=(delete("early/n.h"),),
         files={"kernel.cu": ANGLE, "early/n.h": ONE, "late/n.h": TWO}),
    Pair(name="takes-the-place-of-the-toolkits", backends=("nvrtc", "nvcc", "cupy-nvrtc"), args=("--option=-I@here@/inc",),
         change=(write("inc/cuda_fp16.h", TWO),),
         files={"kernel.cu": "#include <cuda_fp16.h>\n#ifndef N\n#define N 1\n#endif\n" + KERNEL, "inc/other.h": ""}),
    Pair(name="in-memory-disk", backends=("nvrtc", "nvcc", "cupy-nvrtc"), files={"kernel.cu": '#include "/dev/shm/@unique@.h"\n' + KERNEL, "/dev/shm/@unique@.h": ONE},
         change=(write("/dev/shm/@unique@.h", TWO),)),
    Pair(name="a-file-that-nothing-reads", backends=CUDA, args=INC, change=(write("inc/other.h", "1"), write("x.txt", "")),
         files={"kernel.cu": SOURCE, "inc/n.h": ONE}, matters=False),
    Pair(name="only-another-time", backends=("nvrtc", "nvcc"), args=INC, change=(touch("inc/n.h"), touch("kernel.cu")),
         files={"kernel.cu": SOURCE, "inc/n.h": ONE}, matters=False),
)  # fmt: skip


def _spelled(
    name: str,
    program: str,
    *,
    header: str = "n.h",
    args: tuple[str, ...] = (),
    backends: tuple[str, ...] = ("nvrtc", "nvcc"),
) -> Pair:
    return Pair(
        name=f"spelled-{name}", backends=backends, files={"kernel.cu": program + "\n" + KERNEL, f"inc/{header}": ONE},
        change=(write(f"inc/{header}", TWO),), args=(*INC, *args),
    )  # fmt: skip


SPELLINGS = (
    _spelled("comment-after-the-hash", '#/* x */include "n.h"'),
    _spelled("comment-before-the-name", '#include /* x */ "n.h"', backends=("nvrtc", "nvcc", "cupy-nvrtc")),
    _spelled("comment-before-the-hash", '/* x */ # include "n.h"'),
    _spelled("line-splice-in-the-word", '#incl\\\nude "n.h"'),
    _spelled("line-splice-before-the-name", '#include \\\n "n.h"', backends=("nvrtc", "nvcc", "cupy-nvrtc")),
    _spelled("digraph", '%:include "n.h"', backends=("nvrtc", "nvcc", "cupy-nvrtc")),
    _spelled("macro", '#define H "n.h"\n#include H', backends=("nvrtc", "nvcc", "cupy-nvrtc")),
    _spelled("macro-inc", '#define H "n.inc"\n#include H', header="n.inc", backends=("nvrtc", "nvcc", "cupy-nvrtc")),
    _spelled("macro-no-suffix", "#define H <n>\n#include H", header="n"),
    _spelled("macro-of-macros", "#define S(x) #x\n#define H(x) S(x.def)\n#include H(n)", header="n.def"),
    _spelled("name-from-D", "#include H", header="cfg", args=("--option=-DH=<cfg>",), backends=("nvrtc", "nvcc", "cupy-nvrtc")),
    _spelled("name-from-D-with-quotes", "#include H", header="cfg.txt", args=('--option=-DH="cfg.txt"',), backends=("nvrtc",)),
    _spelled("suffix-def", '#include "n.def"', header="n.def"),
    _spelled("no-suffix", "#include <n>", header="n"),
    Pair(name="has-include-of-a-macro", backends=("nvrtc", "nvcc", "cupy-nvrtc"), args=INC, change=(write("inc/n.inc", TWO),),
         files={"kernel.cu": '#define H "n.inc"\n#if __has_include(H)\n#include H\n#else\n#define N 1\n#endif\n' + KERNEL, "inc/other.h": ""}),
    Pair(name="has-include-alone", backends=("nvrtc", "nvcc"), args=INC, change=(write("inc/flag", ""),),
         files={"kernel.cu": "#if __has_include(<flag>)\n#define N 2\n#else\n#define N 1\n#endif\n" + KERNEL, "inc/other.h": ""}),
    Pair(name="has-include-goes", backends=("nvrtc", "nvcc"), args=INC, change=(delete("inc/flag"),),
         files={"kernel.cu": "#if __has_include(<flag>)\n#define N 2\n#else\n#define N 1\n#endif\n" + KERNEL, "inc/flag": ""}),
)  # fmt: skip

CASE = 'title = "made"\n[source]\ncuda = "kernel.cu"\n[[options]]\nflags = ["-I@here@/inc"]\ndepth = "device"\n'
RUN = ("run", "--cases", "@here@/cases")

OPTIONS = (
    Pair(name="option-I", backends=(*CUDA, "torch-nvcc"), files={"kernel.cu": SOURCE, "inc/n.h": ONE}, args=("--option=-I@here@/inc",),
         change=(write("inc/n.h", TWO),)),
    Pair(name="option-I-in-two-words", backends=("nvrtc", "nvcc"), files={"kernel.cu": SOURCE, "inc/n.h": ONE}, change=(write("inc/n.h", TWO),),
         args=("--option=-I", "--option=@here@/inc")),
    Pair(name="option-include-path", backends=("nvrtc", "nvcc", "cupy-nvrtc"), files={"kernel.cu": SOURCE, "inc/n.h": ONE},
         args=("--option=--include-path=@here@/inc",), change=(write("inc/n.h", TWO),)),
    Pair(name="option-isystem", backends=("nvcc",), files={"kernel.cu": SOURCE, "inc/n.h": ONE}, change=(write("inc/n.h", TWO),),
         args=("--option=-isystem", "--option=@here@/inc")),
    Pair(name="flags-of-a-case", backends=("nvrtc", "cupy-nvrtc", "nvcc"), command=RUN, change=(write("cases/made/one/inc/n.h", TWO),),
         files={"cases/made/one/case.toml": CASE.replace("/inc", "/cases/made/one/inc"), "cases/made/one/kernel.cu": SOURCE, "cases/made/one/inc/n.h": ONE}),
    Pair(name="beside-a-case", backends=("nvrtc", "nvcc"), command=RUN, change=(older(append("cases/made/one/n.h", "#undef N\n#define N 7\n")),),
         files={"cases/made/one/case.toml": CASE, "cases/made/one/kernel.cu": SOURCE, "cases/made/one/n.h": ONE}),
    Pair(name="options-of-a-case", backends=("nvrtc",), command=RUN, change=(write("cases/made/one/case.toml", CASE.replace("-I@here@/inc", "-DN=2")),),
         files={"cases/made/one/case.toml": CASE.replace("-I@here@/inc", "-DN=1"), "cases/made/one/kernel.cu": KERNEL}),
    Pair(name="pre-include", backends=("nvrtc", "cupy-nvrtc", "nvcc"), files={"kernel.cu": KERNEL, "pre.h": ONE}, args=("--option=--pre-include=@here@/pre.h",),
         change=(write("pre.h", TWO),)),
    Pair(name="pre-include-looked-for", backends=("nvrtc",), files={"kernel.cu": KERNEL, "early/x": "", "late/pre.h": ONE}, change=(write("early/pre.h", TWO),),
         args=(*EARLY, "--option=-include=pre.h")),
    Pair(name="pre-include-in-two-words", backends=("nvcc",), files={"kernel.cu": KERNEL, "pre.h": ONE}, args=("--option=-include", "--option=@here@/pre.h"),
         change=(write("pre.h", TWO),)),
    Pair(name="options-file", backends=("nvcc",), files={"kernel.cu": KERNEL, "options": "-DN=1"}, args=("--option=--options-file=@here@/options",),
         change=(write("options", "-DN=2"),)),
    Pair(name="options-file-names-a-folder", backends=("nvcc",), files={"kernel.cu": SOURCE, "options": "-I@here@/inc", "inc/n.h": ONE},
         args=("--option=--options-file", "--option=@here@/options"), change=(write("inc/n.h", TWO),)),
    Pair(name="options-file-short", backends=("nvcc",), files={"kernel.cu": KERNEL, "options": "-DN=1"}, args=("--option=-optf", "--option=@here@/options"),
         change=(unseen(write("options", "-DN=2")),)),
)  # fmt: skip
