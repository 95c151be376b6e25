"""Compare cumatrix with plain loops, lit, pytest-xdist and ReFrame on the same programs, alternating in one run. See README.md.

Every side compiles each program once, with the same compiler, options and parallelism. The benchmark stops if the outcomes (built or
refused) differ.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import __version__
from harness.backends import BACKENDS, nvcc, nvrtc
from harness.engine.context import RunRequest, prepare
from harness.engine.executor import Run
from harness.engine.plan import cells_of
from harness.engine.prepared import PreparedCell
from harness.engine.toolchain import clean_environment
from harness.errors import CumatrixError
from harness.protocol.backend import Job
from harness.protocol.messages import Setup
from harness.records import this_machine

ROOT = Path(__file__).resolve().parents[1]
CASES = ("wmma", "exceptions", "shared-memory/static", "shared-memory/dynamic", "shared-memory/no-opt-in")
CUMATRIX = [sys.executable, "-c", "from harness.cli import main; main()"]


@dataclass(frozen=True)
class Program:
    """A program, its compilation without cumatrix, and the expected outcome.

    Parameters
    ----------
    name : str
        Number of the program.
    cell : str
        Id of the cell.
    ask : dict
        Input of ``one.py``; empty if `argv` is the compiler's own command.
    argv : list of str
        A command that compiles the program.
    built : bool
        Whether the program builds with cumatrix.
    """

    name: str
    cell: str
    ask: dict[str, Any]
    argv: list[str]
    built: bool


def main() -> int:
    options = _arguments()
    sides = {name: side for name, side in SIDES.items() if name not in options.without.split(",")}
    found = []
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        try:
            programs = _programs(options, Path(folder))
        except CumatrixError as error:
            print(f"peers.py: {error}", file=sys.stderr)
            return error.exit_code
        print(f"{len(programs)} programs through {options.backend}, CUDA {options.toolkit}, "
              f"{sum(program.built for program in programs)} of them built\n", flush=True)  # fmt: skip
        for jobs in map(int, options.jobs.split(",")):
            for _ in range(options.rounds):
                for name, side in sides.items():
                    measured = _measured(name, side, programs, jobs, options, Path(folder))
                    if measured:
                        found.append(measured)
            _show(jobs, [each for each in found if each["jobs"] == jobs])
    again = " ".join(["python", "benchmarks/peers.py", *map(shlex.quote, sys.argv[1:])])
    print(f"repeat with: {again}")
    if options.json:
        value = {"command": again, "cumatrix": __version__, "machine": this_machine(), "measured": found}
        Path(options.json).write_text(json.dumps(value, indent=1) + "\n", "utf-8")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--backend", choices=list(BACKENDS), default="nvrtc", help="compiler or library (default: nvrtc)"
    )
    parser.add_argument("--python", help="interpreter of the environment that has the library (default: this one)")
    parser.add_argument("--toolkit", default="13.0", help="an installed CUDA release, or local (default: 13.0)")
    parser.add_argument("--target", default="sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120", help="architectures")
    parser.add_argument("--cases", default=",".join(CASES), help=f"cases or topics (default: {','.join(CASES)})")
    parser.add_argument(
        "--jobs", default=str(os.cpu_count()), help="programs at a time: 1,2,4 (default: the number of cores)"
    )
    parser.add_argument("--rounds", type=int, default=1, help="how often each side is measured (default: once)")
    parser.add_argument("--without", default="", help=f"sides to leave out, of {', '.join(SIDES)}")
    parser.add_argument("--json", metavar="FILE", help="write every measurement to FILE")
    return parser.parse_args()


def _programs(options: argparse.Namespace, folder: Path) -> list[Program]:
    """Return the programs of all cells that a compiler answers."""
    request = RunRequest(
        cases=(ROOT / "cases",), selection=tuple(options.cases.split(",")), backends=options.backend,
        toolkits=options.toolkit, targets=options.target, device="none", no_cache=True, python=options.python,
    )  # fmt: skip
    context = prepare(request)
    cells = cells_of(context)
    programs = []
    with Run(context) as run:
        prepared = {cell.id: run.resolver.resolve(cell) for cell in cells}
    answered = _cumatrix_records(options, os.cpu_count() or 1)
    wanted = [cell for cell in cells if answered[cell.id]["status"] in ("built", "rejected")]
    for number, cell in enumerate(wanted):
        each = prepared[cell.id]
        assert isinstance(each, PreparedCell), cell.id
        programs.append(_program(f"p{number:04}", each, answered[cell.id]["status"] == "built", folder))
    return programs


def _program(name: str, prepared: PreparedCell, built: bool, folder: Path) -> Program:
    toolkit = prepared.toolchain.toolkit
    assert toolkit is not None
    include = [str(path) for path in prepared.toolchain.include]
    setup = Setup(home=toolkit.home, release=toolkit.release, headers=toolkit.release, include=include, tools=Path())
    job = Job(**{key: getattr(prepared.job, key) for key in prepared.job.__dataclass_fields__}, scratch=folder)
    backend = prepared.cell.toolchain.backend
    if backend not in ("nvrtc", "nvcc"):
        return _library_program(name, prepared, built, folder)
    if backend == "nvrtc":
        argv = [f"--gpu-architecture={job.target}", *nvrtc.options_of(setup, job)]
        ask = {"home": str(toolkit.home), "release": toolkit.release, "source": str(job.source), "options": argv}
        path = folder / f"{name}.json"
        path.write_text(json.dumps(ask))
        return Program(
            name, prepared.cell.id, ask, [sys.executable, str(ROOT / "benchmarks" / "one.py"), str(path)], built
        )
    options = [*nvcc.options_of(job), *(f"-I{directory}" for directory in nvcc.include_of(setup, job))]
    output = ["-c", str(job.source), "-o", str(folder / f"{name}.o")]
    return Program(
        name, prepared.cell.id, {},
        [str(toolkit.home / "bin" / "nvcc"), f"-gencode=arch=compute_{job.arch},code={job.target}", *options, *output], built,
    )  # fmt: skip


def _library_program(name: str, prepared: PreparedCell, built: bool, folder: Path) -> Program:
    """Return a program of a library, with the interpreter and the environment variables of its workers."""
    toolchain = prepared.toolchain
    setup = toolchain.setup
    ask = {
        "backend": prepared.cell.toolchain.backend,
        "setup": setup.to_line().decode(),
        "job": prepared.job.to_line().decode(),
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(ask))
    variables = [f"{key}={value}" for key, value in clean_environment(str(setup.home)).items()]
    argv = ["env", "-i", *variables, toolchain.environment.python, "-s", str(ROOT / "benchmarks" / "one.py"), str(path)]
    return Program(name, prepared.cell.id, ask, argv, built)


def _cumatrix_records(options: argparse.Namespace, jobs: int) -> dict[str, Any]:
    argv = [
        *CUMATRIX, "run", *options.cases.split(","), "--cases", str(ROOT / "cases"), "-b", options.backend,
        "-t", options.toolkit, "-a", options.target, "-j", str(jobs), "--device", "none", "--no-cache", "--json",
        *(["--python", options.python] if options.python else []),
    ]  # fmt: skip
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return {record["cell"]: record for record in map(json.loads, done.stdout.splitlines())}


@dataclass(frozen=True)
class Round:
    """The input of a side: programs, number of parallel jobs, the script's options, and a working folder."""

    programs: Sequence[Program]
    jobs: int
    options: argparse.Namespace
    folder: Path


Side = Callable[[Round], Mapping[str, bool] | None]


def cumatrix(this: Round) -> Mapping[str, bool]:
    """Run the whole command with an empty cache."""
    records = _cumatrix_records(this.options, this.jobs)
    return {program.name: records[program.cell]["status"] == "built" for program in this.programs}


def loops(this: Round) -> Mapping[str, bool]:
    """Run parallel processes that load NVRTC or the library once and take the programs in turn. nvcc runs under xargs."""
    if this.options.backend == "nvcc":
        return _xargs(this.programs, this.jobs, this.folder)
    return _loops(this)


def forked(this: Round) -> Mapping[str, bool] | None:
    """Run the loops with a forked child per program, which measures the minimum cost of isolation. Other loops than NVRTC's fork anyway."""
    return _loops(this, "--forked") if this.options.backend == "nvrtc" else None


def _loops(this: Round, *flags: str) -> Mapping[str, bool]:
    workers = []
    for number in range(this.jobs):
        mine = this.programs[number :: this.jobs]
        if mine:
            argv = [*mine[0].argv[:-1], *flags, *(program.argv[-1] for program in mine)]
            workers.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
    said = [line.split() for worker in workers for line in worker.communicate()[0].splitlines()]
    return {name: word == "built" for name, word in said}


def _xargs(programs: Sequence[Program], jobs: int, folder: Path) -> Mapping[str, bool]:
    (folder / "one.sh").write_text('sh "$1.sh" >/dev/null 2>&1; echo $? >"$1.code"\n')
    _scripts(programs, folder)
    names = "\n".join(program.name for program in programs)
    subprocess.run(["xargs", "-P", str(jobs), "-n1", "sh", "one.sh"], input=names, text=True, cwd=folder, check=True)
    return {program.name: (folder / f"{program.name}.code").read_text().strip() == "0" for program in programs}


def lit(this: Round) -> Mapping[str, bool] | None:
    """Run LLVM's test runner with a RUN line per program."""
    if not shutil.which("lit"):
        return None
    _scripts(this.programs, this.folder)
    suite = this.folder / "lit"
    suite.mkdir(exist_ok=True)
    (suite / "lit.cfg").write_text(
        "import lit.formats\nconfig.name = 'peers'\nconfig.suffixes = ['.test']\nconfig.test_format = lit.formats.ShTest(False)\n"
        "import os\nconfig.environment = dict(os.environ)\n"
    )
    for program in this.programs:
        (suite / f"{program.name}.test").write_text(f"RUN: sh {this.folder}/{program.name}.sh\n")
    done = subprocess.run(["lit", f"-j{this.jobs}", "--no-progress-bar", "-q", "--output", str(this.folder / "lit.json"), str(suite)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
    if not (this.folder / "lit.json").exists():
        raise SystemExit(f"peers.py: lit: {done.stderr.strip()[-500:]}")
    tests = json.loads((this.folder / "lit.json").read_text())["tests"]
    return {test["name"].split("::")[-1].strip().removesuffix(".test"): test["code"] == "PASS" for test in tests}


def xdist(this: Round) -> Mapping[str, bool] | None:
    """Run pytest-xdist with a test per program, which starts the compiler and checks its exit code."""
    _scripts(this.programs, this.folder)
    suite = this.folder / "xdist"
    suite.mkdir(exist_ok=True)
    (suite / "test_peers.py").write_text(
        f"import subprocess\nimport pytest\nNAMES = {[program.name for program in this.programs]!r}\n\n"
        "@pytest.mark.parametrize('name', NAMES)\ndef test(name):\n"
        f"    assert subprocess.run(['sh', f'{this.folder}/{{name}}.sh'], capture_output=True).returncode == 0\n"
    )
    report = this.folder / "xdist.xml"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cumatrix", "-n", str(this.jobs), f"--junit-xml={report}", "--rootdir", str(suite), str(suite)]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=suite)
    if not report.exists():
        print(f"  xdist: not measured: {done.stderr.strip()[-200:]}")
        return None
    import xml.etree.ElementTree as ET

    cases = ET.parse(report).getroot().iter("testcase")
    return {case.attrib["name"][5:-1]: case.find("failure") is None for case in cases}


def reframe(this: Round) -> Mapping[str, bool] | None:
    """Run ReFrame with a run-only check per program, through its local scheduler."""
    if not shutil.which("reframe"):
        return None
    _scripts(this.programs, this.folder)
    (this.folder / "peers_check.py").write_text(
        "import reframe as rfm\nimport reframe.utility.sanity as sn\n\n\n@rfm.simple_test\nclass Peer(rfm.RunOnlyRegressionTest):\n"
        f"    name_of = parameter({[program.name for program in this.programs]!r})\n    valid_systems = ['*']\n    valid_prog_environs = ['*']\n"
        "    executable = 'sh'\n\n    @run_after('init')\n    def which(self):\n"
        f"        self.executable_opts = [f'{this.folder}/{{self.name_of}}.sh', '>/dev/null', '2>&1', ';', 'echo', 'code=$?']\n\n"
        "    @sanity_function\n    def ended(self):\n        return sn.assert_found(r'code=0', self.stdout)\n"
    )
    (this.folder / "settings.py").write_text(
        "site_configuration = {'systems': [{'name': 'here', 'hostnames': ['.*'], 'partitions': [{'name': 'all', 'scheduler': 'local', "
        f"'launcher': 'local', 'environs': ['builtin'], 'max_jobs': {this.jobs}}}]}}], 'environments': [{{'name': 'builtin'}}]}}\n"
    )
    argv = ["reframe", "-C", str(this.folder / "settings.py"), "-c", str(this.folder / "peers_check.py"), "--exec-policy=async", "-r",
            f"--report-file={this.folder}/reframe.json", f"--prefix={this.folder}/rfm"]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=this.folder)
    if not (this.folder / "reframe.json").exists():
        print(f"  reframe: not measured: {done.stdout.strip()[-300:]}")
        return None
    runs = json.loads((this.folder / "reframe.json").read_text())["runs"][0]["testcases"]
    return {
        case["name_of"] if "name_of" in case else case["check_params"]["name_of"]: case["result"] == "pass"
        for case in runs
    }


SIDES: dict[str, Side] = {
    "cumatrix": cumatrix, "loops": loops, "forked": forked, "lit": lit, "xdist": xdist, "reframe": reframe
}  # fmt: skip


def _scripts(programs: Sequence[Program], folder: Path) -> None:
    for program in programs:
        (folder / f"{program.name}.sh").write_text(f"exec {shlex.join(program.argv)}\n")


def _measured(
    name: str, side: Side, programs: Sequence[Program], jobs: int, options: argparse.Namespace, folder: Path
) -> dict[str, Any] | None:
    used, began = os.times(), time.perf_counter()
    outcomes = side(Round(programs, jobs, options, folder))
    seconds, after = time.perf_counter() - began, os.times()
    if outcomes is None:
        return None
    for program in programs:
        if outcomes.get(program.name) != program.built:
            raise SystemExit(
                f"peers.py: {name} says of {program.cell}: built {outcomes.get(program.name)}, cumatrix {program.built}"
            )
    cpu = after.children_user + after.children_system - used.children_user - used.children_system
    return {"side": name, "jobs": jobs, "programs": len(programs), "seconds": round(seconds, 3), "cpu": round(cpu, 2)}


def _show(jobs: int, measured: Sequence[Mapping[str, Any]]) -> None:
    def middle(side: str, key: str) -> float:
        return statistics.median(each[key] for each in measured if each["side"] == side)

    sides = list(dict.fromkeys(each["side"] for each in measured))
    print(f"{jobs} at a time         wall s    CPU s    wall / loops")
    for side in sides:
        ratio = f"{middle(side, 'seconds') / middle('loops', 'seconds'):10.2f}" if "loops" in sides else ""
        print(f"  {side:<16} {middle(side, 'seconds'):8.2f} {middle(side, 'cpu'):8.1f}    {ratio}")
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
