"""Compiles kernels through Warp's public interface for a GPU that need not be present."""

import os
import tempfile

import warp as wp


def use(suffix):
    """Set the suffix of the GPU's architecture, such as "a", before anything is compiled."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if suffix:
        wp.config.cuda_arch_suffix = suffix
    wp.config.kernel_cache_dir = tempfile.mkdtemp()
    wp.launch = wp.launch_tiled = lambda *_arguments, **_options: None
    wp.init()


def build(names, number, kind):
    """Compile the modules of the kernels among a program's names, and return the artifacts."""
    kernels = [each for each in names.values() if type(each).__name__ == "Kernel"]
    made = []
    for module in {id(each.module): each.module for each in kernels}.values():
        folder = tempfile.mkdtemp()
        wp.compile_aot_module(module, arch=number, module_dir=folder, use_ptx=kind == "ptx")
        for name in sorted(os.listdir(folder)):
            if name.endswith(f".{kind}"):
                with open(os.path.join(folder, name), "rb") as file:
                    made.append(file.read())
    return made
