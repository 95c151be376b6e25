"""Compare an architecture sweep of exceptions/torchao-1648 by cumatrix with one `load_inline` per architecture.

The benchmark stops if the outcomes of an architecture differ. Run it with cumatrix's interpreter:

    python benchmarks/torch_sweep.py --python .tox/torch211/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.engine.environment import look
from harness.engine.environments import default_toolkit
from harness.toolkits import ToolkitStore

CASE = Path(__file__).parents[1] / "cases" / "exceptions" / "torchao-1648"
TARGETS = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100"

PLAIN = """
import sys, tempfile
from torch.utils import cpp_extension
cpp_extension._import_module_from_library = lambda *a, **k: None  # there may be no driver; only the build is compared
text = open(sys.argv[1]).read()
with tempfile.TemporaryDirectory() as folder:
    cpp_extension.load_inline(
        "kernel", cpp_sources=[""], cuda_sources=[text], extra_cuda_cflags=sys.argv[2:], with_cuda=True, build_directory=folder
    )
"""


def measured(
    argv: list[str], env: dict[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[str], float, float]:
    """Run a command; return its result, its wall time, and the processor time of the command and its children, in seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def sweep(python: str, variant: str, targets: str, toolkit: str) -> tuple[dict[str, bool], float, float]:
    """Run cumatrix's sweep; return the built targets, and wall time and processor time in seconds."""
    command = [str(Path(sys.executable).with_name("cumatrix")), "run", "exceptions/torchao-1648", "-b", "torch-nvcc"]
    command += [
        "-t",
        toolkit,
        "-a",
        targets,
        "--python",
        python,
        "--where",
        f'variant == "{variant}"',
        "--no-cache",
        "--json",
    ]
    with tempfile.TemporaryDirectory() as folder:
        done, wall, cpu = measured([*command, "--out", f"{folder}/r.jsonl", "--cases", str(CASE.parents[1])])
    records = [json.loads(line) for line in done.stdout.splitlines()]
    if not records or any(record["status"] not in ("built", "rejected") for record in records):
        sys.exit(f"the sweep failed: {done.stderr}")
    return {record["target"]: record["status"] == "built" for record in records}, wall, cpu


def plain(python: str, variant: str, targets: str, home: Path) -> tuple[dict[str, bool], float, float]:
    """Run `load_inline` for each target, each in a separate process."""
    flags = [f"-DCHECK_IN_KERNEL={int('reported' in variant)}", f"-DFULL_HEADERS={int('full' in variant)}"]
    built, walls, cpus = {}, 0.0, 0.0
    for target in targets.split(","):
        number = target.removeprefix("sm_")
        env = {
            **os.environ, "CUDA_HOME": str(home), "TORCH_CUDA_ARCH_LIST": f"{number[:-1]}.{number[-1]}",
            "PATH": f"{home}/bin:{Path(python).parent}:{os.environ['PATH']}",
        }  # fmt: skip
        done, wall, cpu = measured([python, "-c", PLAIN, str(CASE / "kernel.cu"), *flags], env)
        if done.returncode and "device code does not support exception handling" not in done.stderr:
            sys.exit(f"load_inline failed for another reason: {done.stderr[-3000:]}")
        built[target], walls, cpus = not done.returncode, walls + wall, cpus + cpu
    return built, walls, cpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", required=True, help="interpreter of an environment with PyTorch, ninja and setuptools"
    )
    parser.add_argument("--target", default=TARGETS)
    parser.add_argument("--variant", nargs="+", default=["form=reported,includes=lean", "form=reported,includes=full"])
    parser.add_argument("--json", type=Path, help="where to keep the measurements")
    options = parser.parse_args()
    release = default_toolkit(look(options.python))
    toolkit = ToolkitStore().find(release)
    if toolkit is None:
        sys.exit(f"run `cumatrix toolkits install {release}` first")
    rows = []
    for variant in options.variant:
        ours, wall, cpu = sweep(options.python, variant, options.target, release)
        theirs, plain_wall, plain_cpu = plain(options.python, variant, options.target, toolkit.home)
        if ours != theirs:
            sys.exit(f"{variant}: the outcomes differ: {ours} and {theirs}")
        rows.append(
            {
                "variant": variant,
                "targets": options.target,
                "wall": wall,
                "cpu": cpu,
                "plain_wall": plain_wall,
                "plain_cpu": plain_cpu,
            }
        )
        print(f"{variant}: outcomes agree for {', '.join(ours)}")
        print(
            f"  sweep {wall:6.0f} s wall {cpu:6.0f} s cpu; load_inline {plain_wall:6.0f} s wall {plain_cpu:6.0f} s cpu",
            end="",
        )
        print(f"; ratio {wall / plain_wall:.2f} wall {cpu / plain_cpu:.2f} cpu", flush=True)
    sums = {name: sum(row[name] for row in rows) for name in ("wall", "cpu", "plain_wall", "plain_cpu")}
    print(f"together: ratio {sums['wall'] / sums['plain_wall']:.2f} wall {sums['cpu'] / sums['plain_cpu']:.2f} cpu")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
