#!/usr/bin/env python3
"""Check every statement about versions on the page and of `cumatrix ask` against the cells of the published matrix.

check_statements.py [MATRIX] --page DIR --questions 1000 --seed 1

The rules are in `statement_rules.py`, the rules for replies in `check_replies.py`, and the rules for the other pages in
`check_pages.py`. They share no code with the writers of the statements. `claims_of` parses a statement. Without --page, the script
builds the page first. Exits with 1 if a statement is false.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import check_pages
import pandas as pd
from check_replies import check_page
from statement_rules import ITSELF, PARTS_NAMED, Cells, Claim, Finding, Range, Subject, check, order, shows_change

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "reports/matrix/results.parquet"
LIBRARIES = {"cupy": ("cupy-nvrtc", "cupy-jitify"), "torch": ("torch-nvcc",)}
GPUS = ("h100", "b200", "rtx 5090", "rtx 4090", "a100", "t4", "v100", "hopper", "blackwell", "gtx 1080")
BARE = 0.1
"""Share of questions that name no feature."""

SHOWN = 5
"""Number of printed examples of each kind."""

_VALUE = r"(?:sm_|gfx)?\d[\w.@]*"
_VALUES = rf"{_VALUE}(?:(?: to |–){_VALUE})?"
_LIST = rf"{_VALUES}(?:, {_VALUES})*"


class Unreadable(Exception):
    """A statement that no pattern matches."""


@dataclass(frozen=True)
class Statement:
    """A sentence with its subject."""

    where: str
    subject: Subject | None
    kind: str
    text: str
    note: str
    within: tuple[tuple[str, tuple[Range, ...]], ...] = ()
    cells: tuple[str, ...] = ()
    grid: tuple[tuple[tuple[str, str], str], ...] = ()
    changes: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        about = f"{self.subject.case}[{self.subject.variants[0] if self.subject.variants else ''}{'…' * (len(self.subject.variants) > 1)}] {self.subject.tool}{f' with {self.subject.of}' * bool(self.subject.of)} {','.join(self.subject.targets[:4])}" if self.subject else "?"  # fmt: skip
        return f"{self.where}: {about}: {self.text!r}{f' ({self.note})' * bool(self.note)}"


def ranges_of(text: str) -> tuple[Range, ...]:
    """Parse the ranges of a text such as ``12.4 to 12.6, 13.0``."""
    found = []
    for item in text.split(", "):
        low, _, high = item.replace("–", " to ").partition(" to ")
        found.append((low, high or low))
    return tuple(found)


def phrase(text: str, within: Mapping[str, tuple[Range, ...]]) -> list[Claim]:
    """Parse the claims of a phrase."""
    if text in ("runs", "builds"):
        return [Claim("all", within=within, word=text)]
    if text == "never":
        return [Claim("none", within=within, word=text)]
    if text in ("not tried", "not applicable", "not available", "no kernels"):
        return [Claim("silent", within=within, word=text)]
    if found := re.fullmatch(r"(never \(|known fault, |does not build, |)0 of (\d+)\)?(: a known fault)?", text):
        return [Claim("none", within=within, count=(0, int(found[2])), word=found[1].rstrip(" (,"))]
    held = re.fullmatch(rf"(.+) \((CUDA )?({_VALUE})\)", text)
    if held:
        axis = "cuda" if held[2] else "version"
        # The common release of all cells: no cell has another release.
        return [
            *phrase(held[1], {**within, axis: ranges_of(held[3])}),
            Claim("tried", axis, ranges_of(held[3]), within=within),
        ]
    if found := re.fullmatch(rf"({_LIST}): (.+)", text):
        if "version" in within:
            raise Unreadable(text)
        return phrase(found[2], {**within, "version": ranges_of(found[1])})
    if gap := re.fullmatch(rf"(.+?), (CUDA )?({_LIST}) untried", text):
        # A phrase about one version, with the untried releases at its border.
        return [
            *phrase(gap[1], within),
            Claim("untried", "cuda" if gap[2] else "version", ranges_of(gap[3]), within=within),
        ]
    if found := re.fullmatch(rf"builds since (CUDA )?({_VALUE}) except ({_LIST})", text):
        axis, but = "cuda" if found[1] else "version", ranges_of(found[3])
        return [
            Claim("in", axis, ((found[2], None),), only=True, within=within, word="since", exempt=but),
            Claim("none", within={**within, axis: but}, scoped=True),
        ]
    patterns = {
        rf"builds since (CUDA )?({_VALUE})": "since",
        rf"does not build since (CUDA )?({_VALUE})": "not since",
        rf"builds up to (CUDA )?({_VALUE})": "until",
        rf"builds except (CUDA )?({_LIST})": "except",
        rf"builds only with (CUDA )?({_LIST})": "only",
    }
    for pattern, word in patterns.items():
        if found := re.fullmatch(pattern, text):
            axis = "cuda" if found[1] else "version"
            ends: dict[str, tuple[Range, ...]] = {"since": ((found[2], None),), "not since": ((found[2], None),), "until": ((None, found[2]),)}  # fmt: skip
            holds = word not in ("not since", "except")
            return [
                Claim("in", axis, ends.get(word) or ranges_of(found[2]), holds, only=True, within=within, word=word)
            ]
    if found := re.fullmatch(rf"builds with ({_LIST}) and CUDA ({_LIST}); not with ({_LIST}) and CUDA ({_LIST})", text):
        good, bad = ({**within, "version": ranges_of(found[at]), "cuda": ranges_of(found[at + 1])} for at in (1, 3))
        return [Claim("all", within=good, word="builds"), Claim("none", within=bad, scoped=True)]
    if found := re.fullmatch(rf"builds with (CUDA )?({_LIST}); not with (?:CUDA )?({_LIST})", text):
        axis = "cuda" if found[1] else "version"
        return [Claim("with", axis, ranges_of(found[2]), against=ranges_of(found[3]), within=within)]
    if found := re.fullmatch(r"builds in (\d+) of (\d+) combinations", text):
        return [Claim("count", count=(int(found[1]), int(found[2])), within=within)]
    raise Unreadable(text)


def claims_of(text: str, note: str, within: Mapping[str, tuple[Range, ...]]) -> list[Claim]:
    """Return the claims of a statement: those of the verdict, and those of each part of the note."""
    claims = phrase(text, within)
    main, more = 0, False
    exempt: list[Range] = []
    for item in _items(note):
        if found := re.fullmatch(r"(?:with other versions|with the CCCL that CUDA brings|without [\w ]+|with the machine's own host compiler \(.*\)): (.+)", item):  # fmt: skip
            if claims[0].word == "not tried" and not item.startswith("with other"):
                claims = []
            _close(claims, main, exempt, more=more)
            main, exempt = len(claims), []
            claims += phrase(found[1], {})
        elif re.fullmatch(r"with the machine's own host compiler \(.*\)", item) or item == "library and CUDA changed together":  # fmt: skip
            continue
        elif item.startswith("each with its own "):
            # The statement names these parts as changed, too.
            claims = [replace(claim, moved=tuple(PARTS_NAMED)) for claim in claims]
        elif found := re.fullmatch(rf"(CUDA )?({_LIST}) untried", item):
            axis = "target" if item.startswith("sm_") else "cuda" if found[1] else "version"
            claims.append(Claim("untried", axis, ranges_of(found[2]), within={} if axis == "target" else claims[main].within))  # fmt: skip
        elif found := re.fullmatch(rf"and with (?:CUDA )?({_LIST})", item):
            claims[main] = replace(claims[main], ranges=(*claims[main].ranges, *ranges_of(found[1])))
        elif found := re.fullmatch(r"and (\d+) more", item):
            more = True
        elif found := re.fullmatch(r"(?:builds )?from (sm_\w+)", item):
            claims.append(Claim("in", "target", ((found[1], None),), only=True))
        elif found := re.fullmatch(rf"(?:builds )?on ({_LIST}); (?:not on ({_VALUE})|0 of (\d+) others)", item):
            claims.append(Claim("in", "target", ranges_of(found[1]), only=True, others=int(found[3] or 1)))
        elif found := re.fullmatch(rf"not linked with CUDA ({_LIST})", item):
            # After "with other versions", the claims are about those versions.
            claims.append(Claim("unlinked", "cuda", ranges_of(found[1]), within={} if main else within))
        elif item.startswith("tried: "):
            claims += tried(item.removeprefix("tried: "), within)
        elif re.match(rf"{_LIST}: ", item):
            added = [replace(claim, scoped=True) for claim in phrase(item, claims[main].within if "version" not in claims[main].within else {})]  # fmt: skip
            exempt += added[0].within["version"]
            claims += added
        else:
            raise Unreadable(item)
    _close(claims, main, exempt, more=more)
    return claims


def tried(text: str, within: Mapping[str, tuple[Range, ...]]) -> list[Claim]:
    """Return the claims of ``13.0.0 to 14.2.0, CUDA 12.4``: exactly these versions were tried."""
    text = re.sub(r"\bROCm ([\d.]+)", r"CUDA \1@rocm", text)  # records have it as a toolkit
    version, _, cuda = f", {text}".partition(", CUDA ")
    version = re.sub(r"^(cccl|cutlass|gcc|clang|glibc|host compiler) ", "", version.removeprefix(", "))
    claims = []
    for axis, values in (("version", version), ("cuda", cuda)):
        if counted := re.fullmatch(rf"(\d+) of ({_VALUE}) to ({_VALUE})", values):
            claims.append(Claim("tried", axis, ((counted[2], counted[3]),), within=within, others=int(counted[1])))
        elif values:
            claims.append(Claim("tried", axis, ranges_of(values), within=within))
    return claims


def _close(claims: list[Claim], main: int, exempt: Sequence[Range], *, more: bool) -> None:
    """Exempt the ranges of the other claims from the main claim; `more` means that the statement leaves some unnamed."""
    if claims and claims[main].axis == "version":
        others = ((None, max((high for _, high in exempt if high), key=order)),) if more and exempt else tuple(exempt)
        claims[main] = replace(claims[main], exempt=(*claims[main].exempt, *others))


def _items(note: str) -> Iterator[str]:
    """Yield the parts of a note. A part can continue after a semicolon."""
    held = ""
    for item in note.split("; ") if note else ():
        if item.startswith(("not with ", "not on ")) or re.fullmatch(r"0 of \d+ others", item):
            held = f"{held}; {item}"
            continue
        if held:
            yield held
        held = item
    if held:
        yield held


def variants_of(case: str, label: str, cells: Cells) -> tuple[str, ...]:
    """Return the variants that a label names: ``half, type=a or b``, ``x=1; x=2``; all variants without a label."""
    every = cells.variants(case)
    keys = {part.partition("=")[0] for variant in every for part in variant.split(",")}
    found = []
    for variant in every:
        own = dict(part.partition("=")[::2] for part in variant.split(",") if part)
        names = {*own.values(), *check_pages.label_of(case, variant).split(", ")}
        for group in label.split("; "):
            named: dict[str, list[str]] = defaultdict(list)
            for item in group.split(", "):
                key, equals, values = item.partition("=")
                # The label "with cache=True" is a name, not a value of the parameter "cache".
                is_key = bool(equals) and key in keys
                named[key if is_key else ""] += values.split(" or ") if is_key else [item]
            plain = named.pop("", [])
            if all(own.get(key, "") in values for key, values in named.items()) and all(item in names or names & set(item.split(" or ")) for item in plain):  # fmt: skip
                found.append(variant)
                break
    return tuple(found) if label not in ("", "(none)") else tuple(variant for variant in every if not label or not variant)  # fmt: skip


def siblings(target: str, cells: Cells) -> tuple[str, ...]:
    """Return the other targets of the same GPU: ``sm_90a`` for ``sm_90``."""
    plain = target.rstrip("af")
    return tuple(sorted(item for item in cells.universe["target"] if item.rstrip("af") == plain and item != target))


def load(path: Path) -> Any:
    """Read a data file of the page: ``cumatrix.receive("NAME","…");`` with compressed JSON in base64."""
    text = path.read_text(encoding="utf-8")
    found = re.fullmatch(r'cumatrix\.receive\("[^"]*","([^"]*)"\);\s*', text)
    if not found:
        raise SystemExit(f"check_statements.py: {path} is no data of a page")
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def of_page(folder: Path, cells: Cells) -> Iterator[Statement]:
    """Yield the statements of a page: those by architecture, and those of each feature."""
    data = load(folder / "data/answers.js")
    columns = [(key.partition("+")[0], of) for key, _, _, of in data["columns"]]
    for path in sorted(folder.glob("data/answers-*.js")):
        part, target = load(path), path.stem.removeprefix("answers-")
        for place, label, _, fields in (*part["lines"], (-1, "", [], part["itself"])):
            case = data["features"][place]["case"] if place >= 0 else ITSELF
            named = variants_of(case, label, cells)
            for column, verdict, grid, *_own in fields:
                tool, of = columns[column]
                # A line has the variants with equal results on every tool. Some tools were not tried with all of them.
                variants = tuple(item for item in named if any(cell.target == target for cell in cells.by_entry.get((case, tool, of), {}).get(item, ())))  # fmt: skip
                kind, text, note = part["verdicts"][verdict]
                # For a GPU the page shows the target that most tools build: tests/report/test_browser_answers.py.
                subject = Subject(case, variants, tool, of, (target,))
                versions, releases, letters = part["grids"][grid]
                shown = tuple(zip(((version, release) for version in versions for release in releases), letters, strict=True))  # fmt: skip
                yield Statement(path.name, subject, kind, text, note, grid=shown)
    documents = sorted(folder.glob("api/v1/features/*.json"))
    if not documents:
        raise SystemExit(f"check_statements.py: {folder} has no documents of features")
    for path in documents:
        value = json.loads(path.read_text(encoding="utf-8"))
        for label in dict.fromkeys(each["variants"] for each in value["statements"]):
            of_label = [each for each in value["statements"] if each["variants"] == label]
            yield from of_finding(f"features/{path.name}", value["case"], label, of_label, cells)


def of_finding(where: str, case: str, label: str, tools: Sequence[Mapping[str, Any]], cells: Cells, chips: Sequence[Mapping[str, Any]] = ()) -> Iterator[Statement]:  # fmt: skip
    """Yield the statements of a finding of `cumatrix ask`, or of a feature's page."""
    named = variants_of(case, label, cells)
    asked = {
        target for chip in chips if chip["kind"] == "target" and len(chip["values"]) > 1 for target in chip["values"]
    }
    for each in tools:
        of = each["library"] or each["host_compiler"]
        evidence = next((cells.by_id[name] for name in each["cells"] if name in cells.by_id), None)
        tool = each.get("tool_key") or (evidence.tool if evidence and case else each["backend"])
        variants = tuple(item for item in named if any(cell.target in each["targets"] for cell in cells.by_entry.get((case, tool, of), {}).get(item, ())))  # fmt: skip
        every = {target for other in tools if (other["backend"], other["library"], other["host_compiler"]) == (each["backend"], each["library"], each["host_compiler"]) for target in other["targets"]}  # fmt: skip
        gpu = tuple(sorted({item for target in each["targets"] for item in siblings(target, cells)} & asked - every))
        subject = Subject(case, variants, tool, of, tuple(each["targets"]), gpu)
        known = subject if variants or each["kind"] in ("na", "untried") else None
        note = "; ".join(filter(None, (each["note"], f"tried: {each['tried']}" if each.get("tried") and not each["tried"].endswith("not all on each") else "")))  # fmt: skip
        changes = tuple((change["axis"], *change["cells"]) for change in each.get("changes", ()))
        yield Statement(where, known, each["kind"], each["answer"], note, _asked(chips, each, of), tuple(each["cells"]), changes=changes)  # fmt: skip


def _asked(chips: Iterable[Mapping[str, Any]], finding: Mapping[str, Any], of: str) -> tuple[tuple[str, tuple[Range, ...]], ...]:  # fmt: skip
    """Return the releases that a question restricts a statement to."""
    found: dict[str, list[Range]] = defaultdict(list)
    for chip in chips:
        axis = ""
        if chip["kind"] == "toolkit":
            axis = "cuda"
        elif chip["name"] == of if of else chip["kind"] == "tool" and finding["backend"] in (chip["name"], *LIBRARIES.get(chip["name"], ())):  # fmt: skip
            axis = "version"
        if axis:
            found[axis] += [(value, value) for value in chip["values"]]
    return tuple((axis, tuple(ranges)) for axis, ranges in found.items() if ranges)


def questions(cells: Cells, count: int, seed: int) -> list[str]:
    """Return questions about features with GPUs or architectures, and with tools and releases that each was tried with; some name any CUDA release."""
    draw = random.Random(seed)
    places = ["", *sorted(cells.universe["target"], key=order), *GPUS]
    releases = [f"cuda {release}" for release in sorted(cells.universe["cuda"], key=order)]
    tools: dict[str, dict[str, None]] = defaultdict(dict)
    for cell in cells.by_id.values():
        name = cell.of or {"cupy-nvrtc": "cupy", "cupy-jitify": "jitify", "torch-nvcc": "torch"}.get(cell.backend, cell.backend)  # fmt: skip
        version = cell.version if name != "jitify" else ""
        tools[cell.case].update(dict.fromkeys(("", name, f"{name} {version}".strip(), " ".join(filter(None, (name, version, "cuda", cell.cuda))))))  # fmt: skip
    cases = sorted(tools)
    found: dict[str, None] = {}
    while len(found) < count:
        case = draw.choice(cases)
        place, tool = draw.choice(places), draw.choice([*tools[case], *releases])
        name = case.replace("/", " ") if draw.random() > BARE or not place else ""
        found[" ".join(filter(None, (name, place, tool)))] = None
    return list(found)


def of_questions(asked: Iterable[str], cells: Cells, results: Path) -> Iterator[Statement]:
    """Yield the statements of `cumatrix ask --json`. It runs in this process, because starting Python takes longer than the answer."""
    from harness.cli import main as command

    options = [] if results.resolve() == PUBLISHED else ["--results", str(results.resolve())]
    with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
        for question in asked:
            out = io.StringIO()
            sys.argv = ["cumatrix", "ask", "--json", question, *options]
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):  # fmt: skip
                command()
            value = json.loads(out.getvalue() or "{}")
            for finding in value.get("findings", ()):
                yield from of_finding(f"ask {question!r}", finding["case"], finding["variants"], finding["tools"], cells, value["chips"])  # fmt: skip


def other_letters(statement: Statement, cells: Cells) -> Iterator[str]:
    """Yield the cells, or places without a cell, for which the grid of a page has a wrong letter."""
    if not statement.grid or statement.subject is None or statement.subject.case == ITSELF:
        return
    letters = {"builds": "w", "works": "w", "fails": "xks"}
    for entry in cells.entry(statement.subject):
        found = {(cell.version, cell.cuda): cell for cell in entry if cell.target in statement.subject.targets}
        for place, letter in statement.grid:
            cell = found.get(place)
            expected = ("." if cell is None else letters.get(cell.outcome) or {"unsupported": "n", "unavailable": "u"}.get(cell.status, "."))  # fmt: skip
            if letter not in expected:
                yield cell.id if cell else f"{' '.join(place)}: no cell"


def judge(statement: Statement, cells: Cells, least: int) -> Iterator[Finding]:
    """Yield the errors of a statement, at most one finding of each kind."""
    text = "; ".join(filter(None, (statement.text, statement.note)))
    if statement.subject is None:
        yield Finding("no such subject", text)
        return
    missing = [name for name in statement.cells if name not in cells.by_id]
    if missing:
        yield Finding("no such cell", ", ".join(missing))
    # A cell whose toolkit does not support the architecture has no outcome.
    for axis, *pair in statement.changes if statement.subject.case != ITSELF else ():
        moved = tuple(PARTS_NAMED) if "each with its own " in statement.note else ()
        yield from shows_change(Claim("in", axis if axis == "cuda" else "version", moved=moved), pair, cells)
    if wrong := list(other_letters(statement, cells)):
        yield Finding("another letter in the grid", f"{len(wrong)} places", tuple(wrong))
    try:
        claims = claims_of(statement.text, statement.note, dict(statement.within))
    except Unreadable as error:
        yield Finding("unreadable words", str(error))
        return
    seen: set[str] = set()
    for finding in check(claims, statement.subject, cells, least=least):
        if finding.kind not in seen:
            seen.add(finding.kind)
            yield finding


def report(statements: Iterable[Statement], cells: Cells, *, least: int, without: Sequence[str], shown: int = SHOWN) -> int:  # fmt: skip
    """Print the number of false statements of each kind with examples; return how many are false."""
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = defaultdict(list)
    number, false = 0, 0
    for statement in dict.fromkeys(statements):
        number += 1
        found = [item for item in judge(statement, cells, least) if not any(map(item.kind.startswith, without))]
        false += bool(found)
        for item in found:
            counts[item.kind] += 1
            if len(examples[item.kind]) < shown:
                more = f" and {len(item.cells) - 3} more" if len(item.cells) > 3 else ""
                examples[item.kind].append(f"{statement}\n      {item.why}: {'; '.join(item.cells[:3])}{more}")
    for kind in sorted(counts):
        print(f"{counts[kind]:6} {kind}")
        for example in examples[kind]:
            print(f"    - {example}")
    print(f"{number} statements, {false} of them false")
    return false


def main() -> int:
    parser = argparse.ArgumentParser(prog="check_statements.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=PUBLISHED)
    parser.add_argument("--page", type=Path, metavar="DIR", help="a built page; by default it is built from RESULTS")
    parser.add_argument("--no-page", action="store_true", help="check answers to questions only")
    parser.add_argument("--questions", type=int, default=1000, metavar="N", help="questions to put; 0 for none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, metavar="N", help="check as many statements of the page only")
    parser.add_argument("--least", type=int, default=3, help='CUDA releases that a "never" without a count needs')
    parser.add_argument("--without", action="append", default=[], metavar="KIND", help="leave out kinds that start so")
    parser.add_argument("--shown", type=int, default=SHOWN, metavar="N", help="examples of each kind")
    args = parser.parse_args()
    table = pd.read_parquet(args.results).astype(object).where(lambda frame: frame.notna(), None)
    cells, false = Cells(table), 0
    page: list[Statement] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.page
        if folder is None and not args.no_page:
            folder = Path(temporary) / "page"
            command = [sys.executable, "-m", "cumatrix", "report", "--out", str(folder), str(args.results)]
            subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, env=os.environ)
        if folder is not None:
            page = list(of_page(folder, cells))
            if (folder / "data/replies.js").exists():
                false += check_page(folder, table)
            readme = args.results.with_name("README.md")
            text = readme.read_text("utf-8") if readme.exists() else ""
            false += check_pages.report(check_pages.check(folder, pd.read_parquet(args.results), text))
    if args.sample is not None:
        page = random.Random(args.seed).sample(page, min(args.sample, len(page)))
    asked = of_questions(questions(cells, args.questions, args.seed), cells, args.results) if args.questions else ()
    false += report([*page, *asked], cells, least=args.least, without=args.without, shown=args.shown)
    return int(false > 0)


if __name__ == "__main__":
    sys.exit(main())
