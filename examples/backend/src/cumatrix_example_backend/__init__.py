"""What cumatrix knows of the backend without loading it. Workers import this file, too: the standard library only."""

from pathlib import Path

from cumatrix.backend import BackendInfo

INFO = BackendInfo(
    name="cuda-core-example",
    title="cuda.core's Program, in sixty lines",
    module="cumatrix_example_backend.backend",
    languages=("cuda",),
    library="cuda-core",  # cumatrix knows it; another one comes with a Library under cumatrix.libraries
)

CAUSES = Path(__file__).with_name("causes.toml")
