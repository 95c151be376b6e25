"""``cumatrix repro``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from harness.cases.discovery import load_cases
from harness.cases.sources import packaged_cases
from harness.cli.command import Command
from harness.cli.files import names_of, programs_of
from harness.cli.options import RESULTS, NoSuchCell, cells_in, one_cell, rules_of, trust_option
from harness.cli.run import try_
from harness.cli.selection import of_build
from harness.cli.terminal import say
from harness.engine.environment import look
from harness.engine.program_axes import Finder, parse_chosen, with_libraries
from harness.environments.dev_builds import build, pack, split_with
from harness.environments.releases import parse_pythons
from harness.environments.store import EnvironmentStore
from harness.errors import CumatrixError, UsageError
from harness.model import Case
from harness.process_locks import TEMPORARY, HeldFolder, temporary_folder
from harness.project.current import here
from harness.project.programs import configured
from harness.published import RECORDS, published_folder
from harness.records import Record, again_command, builds_of, repro_command
from harness.records.merge import DIGITS, case_of, is_of
from harness.repro import check_folder, make_folder, reduce_folder
from harness.repro.reduce import check_reducible, reducer
from harness.repro.subject import ReproTarget, check_shown, subject_of


@click.command(cls=Command)
@click.argument("cell", metavar="CELL")
@click.option(
    "--results", multiple=True, type=click.Path(path_type=Path, exists=True), metavar="FILE",
    help="Records with CELL: .jsonl files, results.parquet or folders. Records of neighbouring cells give the conditions. Default: reports, then the published matrix.",
)  # fmt: skip
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder to create.")
@click.option(
    "--cases",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of cases. Default: cases, or cumatrix's own.",
)
@click.option(
    "--program", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
    help="The program of a cell of cumatrix try, if it is not at the path in CELL.",
)  # fmt: skip
@click.option(
    "-I", "include", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
    help="An include directory of a cell of cumatrix try, if it is outside of the current folder.",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="Run the folder in a clean environment, and compare its outcome with the record."
)
@click.option(
    "--reduce",
    "reduced",
    is_flag=True,
    help="Make the program smaller while the outcome stays (cvise or creduce; implies --check).",
)
@trust_option
def repro(
    cell: str,
    results: tuple[Path, ...],
    out: Path,
    cases: Path | None,
    program: Path | None,
    include: tuple[Path, ...],
    check: bool,
    reduced: bool,
    trust: bool,  # noqa: ARG001 - check_trust reads it
) -> int:
    """Write a folder that reproduces a cell without cumatrix.

    CELL is a cell's id, a unique part of it, or a pattern with *. The folder contains the program with its headers,
    requirements with exact versions and hashes, a short script (repro.py) and a README: versions, commands, the
    expected and the observed outcome, the conditions of the failure, and neighbouring cells that differ. If a library
    needs a GPU and there is none, the folder contains a stand-in, and the README states what it replaces.

    Only --check and --reduce compile. With them, the exit code is 1 if the folder does not show the recorded outcome.

    \b
    cumatrix repro 'exceptions/throw nvrtc cuda12.9 sm_80' --out throw
    cumatrix repro 'numba-9432[cache=true]*sm_80' --results reports --out numba-9432 --check
    cumatrix repro kernel.cu --results try.jsonl --out smaller --reduce
    """

    def tell(text: str) -> None:
        say(text, err=True)

    subject = write_folder(cell, results, out, tell, cases=cases, program=program, include=include, reducible=reduced)
    say(f"{out}: what it shows, and how, is in {out / 'README.md'}")
    if reduced:
        say(reduce_folder(out, subject.program.sources, tell))
    if check or reduced:
        same, difference = check_folder(out, tell)
        say(difference)
        return 0 if same else 1
    return 0


def write_folder(
    cell: str,
    results: tuple[Path, ...],
    out: Path,
    tell: Callable[[str], None],
    *,
    cases: Path | None = None,
    program: Path | None = None,
    include: Sequence[Path] = (),
    reducible: bool = False,
) -> ReproTarget:
    """Write the folder of a cell. With `reducible`, refuse cells that ``--reduce`` cannot handle before writing."""
    records, name = _found(cell, results, tell)
    record = records[name]
    check_shown(record)
    if reducible:
        check_reducible(record)
        reducer()
    case, folders = _of_record(record, cases, program, include)
    with HeldFolder(temporary_folder(), TEMPORARY) as scratch:
        subject = subject_of(record, case, folders, _builds(record, Path(scratch), tell))
        make_folder(subject, records.values(), out)
    return subject


def _of_record(
    record: Record, cases: Path | None = None, program: Path | None = None, include: Sequence[Path] = ()
) -> tuple[Case, tuple[Path, ...]]:
    """Return the case of a record, or its program as a case, and the include directories of the run."""
    return (
        _program(record, program, include)
        if record.get("program")
        else (_with_headers(record, _case(record, cases)), ())
    )


def _header_sources(record: Record) -> dict[str, list[str]]:
    """Return the folders and commits of a record's header libraries, in the syntax of ``--library``; empty for releases."""
    libraries = record["toolchain"]["observed"].get("libraries")
    found: dict[str, list[str]] = {}
    for name, origin in (libraries if isinstance(libraries, dict) else {}).items():
        if not isinstance(origin, dict):
            continue
        if path := origin.get("path"):
            found[name] = [str(path)]
        elif origin.get("url") and origin.get("commit"):
            found[name] = [f"git+{origin['url']}@{origin['commit']}"]
    return found


def _with_headers(record: Record, case: Case) -> Case:
    """Return the case with the header folders and commits of the record.

    Records may come from strangers, so no repository is copied that this machine has not copied before.

    Raises
    ------
    UsageError
        If the headers are missing on this machine, or have changed.
    """
    chosen = {name: texts for name, texts in _header_sources(record).items() if name in case.libraries}
    if not chosen:
        return case
    case = _found_headers(record, case, chosen)
    if not any(variant.name == record["variant"] for variant in case.variants):
        raise _headers_changed(record, case)
    return case


def _found_headers(record: Record, case: Case, chosen: Mapping[str, Sequence[str]]) -> Case:
    try:
        (found,) = with_libraries([case], chosen, Finder(offline=True))
    except UsageError as error:
        raise UsageError(f"the headers of {record['cell']} are not on this machine: {error}") from None
    return found


def _headers_changed(record: Record, case: Case) -> UsageError:
    problems = [each.problem for library in case.libraries.values() for each in library.built.values() if each.problem]
    present = ", ".join(variant.name for variant in case.variants[:3])
    why = problems[0] if problems else f"this machine has {present}"
    return UsageError(f"the headers of {record['cell']} have changed since, or are not on this machine: {why}")


def command_for(record: Record, results: Sequence[Path]) -> tuple[str, str]:
    """Return the command that reproduces a record, and options that only the user can complete: ``--program FILE``.

    Both are empty for a record that cannot be reproduced.
    """
    command = repro_command(record, map(str, results))
    if not command:
        return "", ""
    try:
        _of_record(record)
    except CumatrixError:
        away = re.search(r"(?:^| )'?-I\S*@[0-9a-f]+", record["variant"])
        program = f"--program FILE{' -I DIR' if away else ''}"
        return command, program if record.get("program") else "--cases DIR"
    return command, ""


def _builds(record: Record, folder: Path, tell: Callable[[str], None]) -> dict[str, Path]:
    """Pack a record's development builds into wheels, if this machine has them as recorded.

    Records may come from strangers, so this builds nothing that the machine has not built before.

    Raises
    ------
    UsageError
        If an environment of the builds is missing, or its checkout has changed.
    PartUnavailable
        If a checkout cannot be built.
    """
    recorded = builds_of(record)
    if not recorded:
        return {}
    store = EnvironmentStore(tell=tell)
    made = [made.python for made in store.installed() if not made.released and recorded.keys() & made.packages.keys()]
    for environment in map(look, [None, *made]):
        if any(
            name not in environment.origins or environment.origins[name].facts() != origin
            for name, origin in recorded.items()
        ):
            continue
        wheels = {}
        for name, origin in recorded.items():
            python = environment.python
            if origin.get("editable"):  # an editable installation has no files
                address = f"{name} @ {unquote(urlsplit(origin['url']).path)}"
                (development,) = split_with([address], Path.cwd())[1]
                python = build(development, parse_pythons(environment.version)[0], store).python
            wheels[name] = pack(Path(python).parent.parent, name, folder)
        return wheels
    again = again_command(record)
    raise UsageError(
        f"{record['cell']} is of a development build that is not on this machine, or its checkout has changed since"
        + (f": `{again} --out FILE.jsonl` makes it again" if again else "")
    )


def _found(cell: str, results: tuple[Path, ...], tell: Callable[[str], None]) -> tuple[dict[str, Record], str]:
    """Return the records that contain a cell, and its id: from `results`, the user's own records, or the published ones."""
    missing = NoSuchCell(f"there is no folder {RESULTS} to look for a cell in: name the records with --results")
    if results or RESULTS.is_dir():
        own = cells_in(results)
        try:
            return own, one_cell(cell, list(own))
        except NoSuchCell as error:
            missing = error
    matrix = None if results else published_folder()
    if matrix is None:
        raise missing
    try:
        records = cells_in([matrix / RECORDS])
    except ImportError:  # without pyarrow, only the user's own records are readable
        raise missing from None
    try:
        name = one_cell(cell, list(records))
    except UsageError:
        raise missing from None
    tell(f"{name} is a cell of the published matrix")
    return records, name


def _case(record: Record, root: Path | None) -> Case:
    folder = root or (Path("cases") if Path("cases").is_dir() else packaged_cases())
    # A name in a record is not a pattern.
    name = case_of(record)
    found = [case for case in load_cases(folder, [name], configured(here())) if case.name == name]
    if not found:
        raise UsageError(f"there is no case {name} in {folder}: name the folder of cases with --cases")
    (case,) = found
    if not is_of(record, case):
        whose, here_ = (each or "cumatrix itself" for each in (record["project"], case.project))
        raise UsageError(
            f"{record['case']} is a case of {whose}, and {name} is another one here, of {here_}: go to the folder of {whose}, or name its cases with --cases"
        )
    return case


def _program(record: Record, named: Path | None, folders: Sequence[Path]) -> tuple[Case, tuple[Path, ...]]:
    """Return the case of a program, rebuilt from the options in its variant's name."""
    name, colon, text = record["case"].partition(":")
    file = named or Path(re.sub(rf"@[0-9a-f]{{{DIGITS}}}$", "", name))
    path = Path(f"{file}{colon}{text}")
    moved = UsageError(f"{record['case']} is not where it was compiled, as seen from here: name it with --program FILE")
    if not file.is_file():
        raise moved
    try:
        shown = names_of([path], folders)
        sources = _header_sources(record)
        numbered = tuple(f"--library={library}=" for library in sources)
        words = [shown.get(word, word) for word in shlex.split(record["variant"]) if not word.startswith(numbered)]
        context = try_.make_context("cumatrix try", [str(path), *words])
        given = dict(context.params)
        rules = rules_of(given, given["extra"])
        (case,) = programs_of(
            [path], include=given["include"], define=given["define"], rules=rules, signatures=given["signature"]
        )
        chosen = {**parse_chosen(given["header_libraries"], Path.cwd()), **sources}
    except (ValueError, click.ClickException, UsageError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise UsageError(
            f"the options of {record['cell']} cannot be told from its record ({message}): run this from the folder "
            "that cumatrix try was run in, and name include directories outside of it with -I"
        ) from None
    if not named and case.program != record["program"]:
        raise moved
    (case,) = of_build([case], given["compile_commands"])
    case = _found_headers(record, case, chosen)
    if sources and case.variants[0].name != record["variant"]:
        raise _headers_changed(record, case)
    if case.variants[0].name != record["variant"]:
        raise UsageError(
            f"the options of {record['cell']} are too long to be told from its record, or its include directories are elsewhere: "
            "run this from the folder that cumatrix try was run in, and name those outside of it with -I"
        )
    return case, tuple(folder.resolve() for folder in given["include"])
