"""Hostile texts of C++ and CUDA for compilers: endless work, full memory, endless output, or input that is no source.

Each text is one cell, whatever its outcome. The texts of `BUILT` are odd but valid. The compiler can reject the others, crash, or run
until the deadline; the outcome depends on the compiler.
"""

from __future__ import annotations

KERNEL = '\nextern "C" __global__ void k(int *a) { *a = 1; }\n'


def _doubled(name: str, times: int, of: str) -> str:
    """Return macros, each twice the size of the last."""
    lines = [f"#define {name}0 {of}"]
    lines += [f"#define {name}{n} {name}{n - 1} {name}{n - 1}" for n in range(1, times)]
    return "\n".join([*lines, f"{name}{times - 1}"])


def _asm(text: str) -> str:
    return f'extern "C" __global__ void k(int *a) {{ asm volatile("{text}"); }}\n'


BUILT: dict[str, str | bytes] = {
    "no-newline-at-the-end": KERNEL.strip(),
    "line-with-odd-names": '#line 7 "%n%s%n$(id)`id`;\\x1b[31m::error::.cu"\n#warning odd\n' + KERNEL,
    "message-with-escapes": '#pragma message("\\x1b[2J\\x1b]0;x\\x07 ::error::x ##[error]y %n%n%s \\u202e")\n' + KERNEL,
    "carriage-returns": KERNEL.replace("\n", "\r\n"),
    "long-identifier": f"__device__ int {'i' * 200_000};" + KERNEL,
    "many-semicolons": ";" * 200_000 + KERNEL,
    "escapes-in-comments": "// \x1b[31m\x1b]8;;file:///\x07 \u202e\u2066 ::error::x\n" + KERNEL,
    "assembly-of-blank-lines": _asm("\\n" * 60_000),
    "assembly-of-entries": _asm("// .entry e()\\n" * 8000),
    "trigraphs-and-splices": "\\\n" * 20_000 + KERNEL,
}

QUICK: dict[str, str | bytes] = {
    # Texts that are no source.
    "includes-itself": "#include __FILE__\n" + KERNEL,
    "includes-itself-by-level": "#if __INCLUDE_LEVEL__ < 100000\n#include __FILE__\n#endif\n" + KERNEL,
    "includes-memory": '#include "/proc/self/mem"\n' + KERNEL,
    "includes-a-folder": '#include "/proc"\n' + KERNEL,
    "includes-maps": '#include "/proc/self/maps"\n' + KERNEL,
    "includes-its-output": '#include "/proc/self/fd/1"\n' + KERNEL,
    "includes-a-long-name": f'#include "{"x" * 5000}"\n' + KERNEL,
    "includes-odd-names": '#include "%n%n%s$(id)`id`\\x1b[31m::error::"\n#include <../../../../../../etc/shadow>\n' + KERNEL,
    "asks-for-a-shell": '#include "|id"\n#include "k.cu;id"\n#pragma comment(lib, "$(id)")\n' + KERNEL,
    "byte-order-mark": b"\xef\xbb\xbf" + KERNEL.encode(),
    "nothing": b"",
    "zeros": b"\0" * 100_000,
    "zeros-within": KERNEL.encode().replace(b" ", b"\0"),
    "utf-16": KERNEL.encode("utf-16"),
    "utf-32": KERNEL.encode("utf-32"),
    "no-utf-8": b"\xff\xfe\x80\xc0" * 10_000 + KERNEL.encode(),
    "one-long-line": b"x" * (4 << 20),
    "one-open-comment": "/*" + "x" * 1_000_000,
    "one-open-text": KERNEL + '"' + "x" * 1_000_000,
    "the-end-of-files": b"\x1a\x04" + KERNEL.encode(),
    # Texts with endless output.
    "errors": "\n".join(f"x{n} y;" for n in range(100_000)),
    "errors-in-a-template": "template <int N> struct A { int x[N - 100]; A<N - 1> a; };\n" + "".join(f"A<{n}> a{n};\n" for n in range(90)),
    "long-names-in-errors": "".join(f"template <class T> struct {'N' * 3000}{n} {{ typename T::x y; }};\n{'N' * 3000}{n}<{'N' * 3000}{max(0, n - 1)}<int>> v{n};\n" for n in range(60)),
    "messages": '#pragma message("::error::x")\n' * 50_000 + KERNEL,
    "error-with-escapes": "#error \x1b[2J\x1b]0;x\x07 ::error::x %n%n%s \u202e\n::error::y\n",
    "static-assertion": f'static_assert(false, "\\n::error::x\\x1b[31m{"%n" * 10_000}");' + KERNEL,
    # Texts with deep nesting.
    "parentheses": "__device__ int x = " + "(" * 100_000 + "1" + ")" * 100_000 + ";" + KERNEL,
    "braces": "namespace a { " * 100_000 + KERNEL,
    "brackets": "__device__ int x" + "[1]" * 50_000 + ";" + KERNEL,
    "pointers": "__device__ int " + "*" * 200_000 + "x;" + KERNEL,
    "conditions": "#if 1\n" * 100_000 + KERNEL,
    "templates-in-templates": "template <class T> struct A {};\n" + "A<" * 20_000 + "int" + ">" * 20_000 + " x;" + KERNEL,
    "a-template-without-end": "template <int N> struct A { static constexpr int x = A<N + 1>::x; };\n__device__ int x = A<0>::x;" + KERNEL,
    "a-constant-without-end": "constexpr int f(int n) { return f(n + 1); }\nconstexpr int x = f(0);" + KERNEL,
    # Texts of large size.
    "a-static-array": "__device__ char x[1ull << 62];" + KERNEL,
    "a-shared-array": 'extern "C" __global__ void k(int *a) { __shared__ char s[1ull << 40]; s[*a] = 1; }',
    "a-local-array": 'extern "C" __global__ void k(int *a) { volatile char s[1ull << 40]; s[*a] = 1; }',
    "registers": 'extern "C" __global__ __launch_bounds__(1024, 64) __maxnreg__(1) void k(int *a) { *a = 1; }',
    # Options for the assembler.
    "odd-assembly": _asm("%n%n%s \\x1b[31m ::error:: ;"),
    "assembly-that-leaves-the-kernel": _asm("} .visible .entry other() { ret; } .func x() {"),
    "assembly-of-another-target": _asm(".target sm_10; .version 99.9; .address_size 1;"),
    "assembly-that-includes": _asm('.file 1 \\"/dev/zero\\"; .incbin \\"/dev/zero\\"; .include \\"/proc/self/mem\\";'),
    "assembly-without-end": _asm(".reg .b32 r<2147483647>; " + "mov.u32 r1, r2; " * 2000),
    "assembly-of-data": _asm(".global .b8 x[18446744073709551615];"),
    "host-assembly-that-includes": '__asm__(".incbin \\"/proc/self/mem\\"\\n.include \\"/dev/zero\\"");' + KERNEL,
    "top-level-assembly": '__asm__("%n%n::error::x\\n.rept 1000\\n.error \\"::error::x\\"\\n.endr");' + KERNEL,
    # Directives to the compiler in the text.
    "pragmas": '#pragma GCC system_header\n#pragma GCC poison int\n#pragma once\n#pragma push_macro("x")\n#pragma nv_exec_check_disable\n' * 1000 + KERNEL,
    "keywords": "#define __global__\n#define int void\n#define __device__ static\n#define extern ::error::\n" + KERNEL,
    "attributes": '__attribute__((section("%n::error::"), alias("k"))) __device__ int y;' + KERNEL,
    "odd-entry-names": 'extern "C" __global__ void \\u202e() {}\nextern "C" __global__ void k\\u200b(int *) {}',
    "a-line-of-odd-numbers": '#line 4294967295 "/proc/self/fd/2"\nerror\n#line 0\nerror\n#line 99999999999999999999\nerror\n',
}  # fmt: skip

HEAVY: dict[str, str | bytes] = {
    "includes-zeros": '#include "/dev/zero"\n' + KERNEL,
    "includes-random": '#include "/dev/urandom"\n' + KERNEL,
    "includes-itself-twice": "#include __FILE__\n#include __FILE__\n" + KERNEL,
    "a-macro-of-gigabytes": _doubled("A", 40, "x+") + KERNEL,
    "a-text-of-gigabytes": "__device__ const char *x =\n" + _doubled("A", 40, '"xxxxxxxxxxxxxxxx"') + ";" + KERNEL,
    "a-template-of-exponential-size": "template <int N, int M> struct A { static constexpr long x = A<N - 1, 2 * M>::x + A<N - 1, 2 * M + 1>::x; };\n"
    "template <int M> struct A<0, M> { static constexpr long x = M; };\n__device__ long x = A<60, 0>::x;" + KERNEL,
    "a-constant-that-never-ends": "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; i++) s += i * s; return s; }\n"
    "__device__ long x = f(1l << 60); constexpr long y = f(1l << 60);" + KERNEL,
    "overloads": "".join(f"template <class T> __device__ auto f{n}(T t) -> decltype(f{max(0, n - 1)}(t) + f{max(0, n - 1)}(t));\n" for n in range(60)) + "__device__ auto x = f59(1);" + KERNEL,
    "unrolled-without-end": 'extern "C" __global__ void k(float *a) {\n#pragma unroll\nfor (int i = 0; i < 4000; i++)\n#pragma unroll\nfor (int j = 0; j < 4000; j++) a[i] = a[j] * a[i ^ j] + i; }',
    "a-sum-of-many-terms": 'extern "C" __global__ void k(int *a) { *a = ' + " + ".join(f"a[{n}]" for n in range(60_000)) + "; }",
    "an-array-with-a-value": "__device__ int x[500000000] = {1};" + KERNEL,
    "assembly-that-takes-long": 'extern "C" __global__ void k(float *a) {\n' + "".join(f"float x{n} = a[{n}];\n" for n in range(3000))
    + "".join(f"x{n} = fmaf(x{(n * 7 + 1) % 3000}, x{(n * 13 + 5) % 3000}, x{n});\n" for n in range(3000)) * 6
    + "".join(f"a[{n}] = x{n};\n" for n in range(3000)) + "}",
    "goto": 'extern "C" __global__ void k(int *a) {\n' + "".join(f"L{n}: if (a[{n}]) goto L{(n * 7919) % 3000}; if (a[{n + 1}]++) goto L{(n * 104729) % 3000};\n" for n in range(3000)) + "}",
}  # fmt: skip

TEXTS = {**BUILT, **QUICK, **HEAVY}
