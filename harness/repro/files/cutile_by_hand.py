"""Exports a program's kernels with cuTile for a GPU that need not be present."""

import io

import cuda.tile
import cuda.tile.compilation


def use(architecture):
    """Redirect every export to an architecture such as "sm_90", and collect the results in the returned list."""
    made, export = [], cuda.tile.compilation.export_kernel

    def export_kernel(kernel, signatures, _file, **options):
        image = io.BytesIO()
        export(kernel, signatures, image, **{**options, "gpu_code": architecture})
        made.append(image.getvalue())

    cuda.tile.compilation.export_kernel = export_kernel
    cuda.tile.launch = lambda *_arguments, **_options: None
    return made
