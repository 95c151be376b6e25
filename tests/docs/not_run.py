"""Sessions of the documentation that no test runs, each with the reason. Tests run every other session."""

from __future__ import annotations

from collections.abc import Mapping

_TOX = "whole environments of tox, some GB and hours: tests/test_tox.py, tests/ci/test_nightly.py and CI's own jobs"
_CHECKOUT = "a checkout of the reader's: tests/engine/test_development.py makes one"
_RELEASES = "many releases of a library, GB of downloads: tests/cli/test_with.py and test_bisect.py have a few"
_GITHUB = "fetches from GitHub: tests/engine/test_development.py and test_header_axis.py use repositories of their own"
_CUTLASS = "minutes of a core: tests/engine/test_header_libraries.py has two versions"
_BENCHMARK = "measures for minutes to hours; whoever changes what it measures runs it by hand"
_WHEELS = "downloads wheels of hundreds of MB: tests/wheels/test_wheel_command.py makes its own"
_INSTALLS = "installs cumatrix from an index: tests/ci/test_release.py installs it from one on this machine"
_GPU = "needs a GPU: tests/gpu"

NOT_RUN: Mapping[str, Mapping[str, str]] = {
    "CONTRIBUTING.md": {
        "python3 -m venv .venv": "sets up a checkout: CI does",
        ".venv/bin/pytest -n 2": "the tests themselves",
        "export PATH=$PWD/.venv/bin:$PATH": "downloads from npm: `tox -e script` in CI",
    },
    "README.md": {
        "python3 -m venv .venv && .venv/bin/pip install -q tox tox-uv && .venv/bin/tox -e page,cupy13,numba059,report": _TOX,
        "python3 -m venv .venv && .venv/bin/pip install -q tox tox-uv && .venv/bin/tox -e tests": _TOX,
        ". .venv/bin/activate": "installs a checkout: tests/ci/test_wheel.py installs the wheel",
        "cumatrix init": "a project of the reader's: docs/configuration.md has the same session with output",
    },
    "benchmarks/README.md": {
        "cumatrix toolkits install 12.4": _BENCHMARK,
        "python benchmarks/engine.py --backend nvrtc,cupy-nvrtc --python .tox/cupy13/bin/python --json engine.json": _BENCHMARK,
        "python benchmarks/hostile.py --cells 10000 --json hostile.json": _BENCHMARK,
        "python benchmarks/growth.py --json growth.json --chart docs/growth.svg": _BENCHMARK,
        "python benchmarks/analysis.py --cells 100000": _BENCHMARK,
        "python benchmarks/unchanged.py --cells 1000,10000": _BENCHMARK,
        "python benchmarks/starts.py": _BENCHMARK,
        "CUMATRIX_CACHE=$(mktemp -d) CUMATRIX_TOOLKIT=12.9 taskset -c 0,1 bash -c 'time cumatrix run --with numba=0.59 -b numba --out numba.jsonl --trace numba.json'": _BENCHMARK,
        "pip install -e '.[report,test]'": _BENCHMARK,
        "python benchmarks/parse_log.py": _BENCHMARK,
        "python benchmarks/torch_sweep.py --python .tox/torch211/bin/python": _BENCHMARK,
        "pip install lit pytest-xdist ReFrame-HPC": _BENCHMARK,
        "PYTHONPATH=. ~/.local/share/cumatrix/test-envs/…/bin/python benchmarks/jitify.py --toolkit 12.9": _BENCHMARK,
        "python benchmarks/precompiled.py --with cupy=13 -b nvrtc,cupy-nvrtc,cupy-jitify -t 12.9 -a sm_75,sm_90,sm_120": _BENCHMARK,
    },
    "docs/backends.md": {
        "cumatrix try dot.py -b triton --with triton=3.3.0,3.3.1,3.5.0,3.9.0 -a sm_90,sm_103,sm_120 --signature 'dot=*fp16, *fp16, *fp32, 128'": _RELEASES,
        "cumatrix try kernel.py -b warp --with warp=1.9.1,1.14,1.19 -a sm_75,sm_90,sm_103": _RELEASES,
        "cumatrix try kernel.hip -b hiprtc,hip-clang -a gfx90a,gfx1030 --with clang=16,19": _RELEASES,
    },
    "docs/bisect.md": {
        "cumatrix bisect cooperative/numba-9432 --over numba -a sm_80": _RELEASES,
        "cumatrix bisect kernel.cu -I ../lib/include --over git:../lib --good v1.2 --build 'cmake --build build'":
            "a checkout of the reader's: tests/bisection/test_git.py makes one",
        'cumatrix bisect kernel.py --over git:../numba-cuda --good v0.20.0 --with "-e ../numba-cuda[cu12]"': _CHECKOUT,
    },
    "docs/install.md": {
        "docker build -t cumatrix .": "needs Docker and a registry: CI's job image",
        "rattler-build build --recipe recipe -c conda-forge --output-dir conda": "needs conda-forge: CI's job conda",
        'uvx cumatrix ask "wgmma h100"': _INSTALLS,
        "uv tool install 'cumatrix[report]'": _INSTALLS,
    },
    "docs/cluster.md": {"pip install 'cumatrix[cluster]'": "needs a cluster: tests/cli/test_dask.py starts one on this machine"},
    "docs/configuration.md": {
        "cmake -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON":
            "CMake's CUDA language wants a whole CUDA installation: tests/project/test_commands.py has what it writes",
        "cumatrix init --record -- sh -c 'cmake -B fresh && cmake --build fresh'":
            "a build of the reader's: tests/project/test_recording.py records one",
    },
    "docs/wheels.md": {
        "cumatrix wheel bitsandbytes==0.50.2": _WHEELS,
        "cumatrix wheel dist/*.whl --require sm_75..sm_121": _WHEELS,
        "cumatrix wheel bitsandbytes==0.49.0 bitsandbytes==0.50.2": _WHEELS,
        "cumatrix wheel bitsandbytes --require 'RTX 5090' --since": _WHEELS,
    },
    "docs/gpu.md": {"cumatrix doctor": _GPU},
    "docs/howto/gpu-runner.md": {"cumatrix run wmma cooperative -a native --out reports/gpu.jsonl": _GPU},
    "docs/howto/header-library.md": {
        "cumatrix run cutlass -b nvrtc,nvcc --library cutlass=3.5.1,3.8..4.2 -t 12.4,13.0": _CUTLASS,
    },
    "docs/howto/numba-pull-request.md": {
        "cumatrix run numba cooperative -b numba-cuda \\": _GITHUB,
        "cumatrix report reports/pr.jsonl --where 'backend == \"numba-cuda\"'": "of the records of the command before it",
    },
    "docs/howto/which-release-broke-it.md": {
        "cumatrix bisect kernel.cu --over cupy -b cupy-jitify -a sm_80": _RELEASES,
        "cumatrix bisect kernel.py --over git:../numba-cuda -b numba-cuda -a sm_90":
            "a checkout of numba-cuda: tests/bisection/test_git.py makes one of its own",
    },
    "docs/json-api.md": {
        "curl -s $REPORT/api/v1/features/wmma-fragments.json | jq -r .sentence": "a published page: tests/report/test_api.py runs the queries",
    },
    "docs/large-runs.md": {
        "cumatrix run -b all -t all --shard 1/3 --out parts/1.jsonl":
            "every case with every compiler, on three machines: the how-to for several machines does it with six cells",
        "cumatrix run wmma -t 12.4,13.0 --from https://example.org/cumatrix/": "a published page: tests/cli/test_from.py has a server",
    },
    "docs/libraries.md": {
        "cumatrix try kernel.cu --with cupy=12,13.0,13.1,14 -a sm_80,sm_90": _RELEASES,
        "cumatrix libraries list cupy": "installs and removes environments that other tests use: tests/environments",
        "cumatrix try kernel.py -t 12.9 --with numba-cuda=0.24,0.30 \\": _GITHUB,
        "cumatrix try kernel.cu -t 13.0 --library cutlass=3.8..4.2 --library cccl=3.1.4": _CUTLASS,
    },
    "docs/pytest-and-tox.md": {
        "tox list": _TOX,
        'pytest cases -k "sm_80 and not implicit"': "every case: tests/test_pytest_plugin.py has a few",
    },
    "reports/h200-2026-11-21/README.md": {
        "mkdir h200 && tar xzf reports/h200-2026-11-21/records.tar.gz -C h200": "some 10 s for the page of a thousand records: tests/report",
    },
    "docs/repro.md": {
        "cumatrix repro 'accumulator*given* nvrtc cuda12.9 sm_75' --results results.jsonl --out smaller --reduce":
            "wants C-Vise, which CI does not have; tests/repro/test_shown.py reduces where it is installed",
    },
}  # fmt: skip
"""Reasons by page and first typed line, without its comment."""
