"""Compiles kernels through Triton's public interface for a GPU that need not be present."""

import ast
import inspect

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


class Driver:
    """Answers the device queries of decorators; Triton's own driver needs PyTorch and a GPU."""

    def __init__(self, target):
        self.get_current_target = lambda: target
        self.get_current_device = lambda: 0
        self.get_benchmarker = lambda: None


def use(arch):
    """Set the GPU, such as 90 or "gfx942", before the program's decorators query it."""
    if isinstance(arch, str):
        target = GPUTarget("hip", arch, 64 if arch.startswith("gfx9") else 32)
    else:
        target = GPUTarget("cuda", arch, 32)
    triton.runtime.driver.set_active(Driver(target))
    return target


def build(kernel, signature, target, **options):
    """Compile a kernel for a signature such as "*fp16, i32, 128", once per configuration of its autotuner."""
    configs = [None]
    while not hasattr(kernel, "arg_names") or hasattr(kernel, "configs"):
        configs, kernel = getattr(kernel, "configs", configs), kernel.fn
    made = []
    for config in configs:
        values = dict(config.kwargs) if config else {}
        compile_options = {
            **options,
            **({"num_warps": config.num_warps, "num_stages": config.num_stages} if config else {}),
        }
        source = _source(kernel, signature, values)
        made.append(triton.compile(source, target=target, options=compile_options))
    return made


def _source(kernel, signature, values):
    types, constants, aligned = {}, dict(values), []
    for name, word in zip(kernel.arg_names, (word.strip() for word in signature.split(","))):
        kind, _, hint = word.partition(":")
        if name in constants:
            continue
        try:
            constants[name] = ast.literal_eval(word)
        except (SyntaxError, ValueError):
            if hint == "1":
                constants[name] = 1
            else:
                types[name] = kind.strip()
                aligned += [kernel.arg_names.index(name)] * (hint == "16")
    if "constants" in inspect.signature(ASTSource.__init__).parameters:  # Triton up to 3.2
        try:
            from triton.backends.compiler import AttrsDescriptor

            attrs = AttrsDescriptor.from_hints(dict.fromkeys(aligned, 16))
        except (ImportError, AttributeError):
            from triton.compiler import AttrsDescriptor

            attrs = AttrsDescriptor(divisible_by_16=aligned, equal_to_1=[])
        return ASTSource(fn=kernel, signature=types, constants=constants, attrs=attrs)
    places = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    types = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    return ASTSource(
        fn=kernel, signature=types, constexprs=places, attrs={(p,): [["tt.divisibility", 16]] for p in aligned}
    )
