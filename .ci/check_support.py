"""Checks of the statements of support.html against the cells: clauses of headlines, quoted messages, and untried versions in the notes."""

from __future__ import annotations

import html
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from statement_rules import Range, inside, order

ENDINGS = {"built": "builds", "rejected": "rejected", "crashed": "crashes", "timed_out": "times out"}
_MESSAGE = re.compile(r' \("(.*?)"(?: and \d+ more)?\)(?=[;,.:]|$| on )')
_ITEM = re.compile(r"\d[\w.@]*|sm_\w+|gfx\w+")


@dataclass(frozen=True)
class Row:
    """A cell of the Parquet file, with the columns that the pages other than the answers use."""

    cell: str
    case: str
    variant: str
    backend: str
    library: str
    toolkit: str
    target: str
    status: str
    stage: str
    message: str
    host: str

    @property
    def answered(self) -> bool:
        return self.status in ENDINGS

    @property
    def said(self) -> str:
        """Outcome in words: ``builds``, ``rejected at compile``."""
        return "builds" if self.status == "built" else f"{ENDINGS[self.status]} at {self.stage}"


def rows_of(table: pd.DataFrame) -> list[Row]:
    table = table.assign(toolkit=table["toolkit"].str.replace(r".*@bundled$", "", regex=True))
    hosts = [str(json.loads(text).get("host_compiler") or "") for text in table["more_json"]]
    names = ["cell", "case", "variant", "backend", "library", "toolkit", "target", "status", "stage", "message"]
    values = zip(*(table[name].fillna("") for name in names), hosts, strict=True)
    return [Row(*found) for found in values]


def plain(markup: str) -> str:
    """Return the text of markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def number(text: str) -> int:
    return int(text.replace(",", ""))


def ranges_in(text: str) -> tuple[Range, ...]:
    """Parse ranges: ``12.0 to 12.3, 12.9 and 13.0``, ``sm_75–sm_86, sm_90a``, ``up to CUDA 12.1``, ``from 13.1.0``."""
    text = text.replace("CUDA ", "").strip()
    if found := re.fullmatch(r"(up to|from) (\S+)", text):
        return ((None, found[2]),) if found[1] == "up to" else ((found[2], None),)
    parts = re.split(r", | and ", re.sub(r" \(\d+ versions\)", "", text))
    ends = [re.split(r" to |–", part) for part in parts]
    if any(len(end) > 2 or not all(map(_ITEM.fullmatch, end)) for end in ends):
        raise Unreadable(text)
    return tuple((end[0], end[-1]) for end in ends)


class Unreadable(ValueError):
    """A text that no pattern matches."""


@dataclass(frozen=True)
class Clause:
    """A clause of a headline: outcomes by target, for some library and CUDA releases."""

    libraries: tuple[Range, ...] | None
    toolkits: tuple[Range, ...] | None
    below: tuple[str, str] | None
    outcomes: tuple[tuple[str, tuple[Range, ...] | None], ...]

    def covers(self, row: Row) -> bool:
        return (self.libraries is None or inside(row.library, self.libraries)) and (
            self.toolkits is None or inside(row.toolkit, self.toolkits)
        )

    def of(self, row: Row) -> set[str]:
        """Return the outcomes that the clause states for a cell."""
        if self.below:
            least, other = self.below
            return {other if order(row.target) < order(least) else "builds"}
        return {said for said, targets in self.outcomes if targets is None or inside(row.target, targets)}


def clauses_of(text: str) -> list[Clause]:
    """Parse the clauses of a headline, without its tool and without messages."""
    return [_clause(part) for part in text.split("; ")]


def _clause(text: str) -> Clause:
    place, colon, what = text.partition(": ")
    if not colon:
        place, what = "", text
    library, _, toolkit = place.partition(" with ") if " with " in place else ("", "", place) if "CUDA" in place else (place, "", "")  # fmt: skip
    if needs := re.fullmatch(r"needs (\S+), below it (.+)", what):
        return Clause(*_places(library, toolkit), (needs[1], needs[2]), ())
    outcomes: list[tuple[str, tuple[Range, ...] | None]] = []
    for said in re.split(r", (?=builds|rejected|crashes|times out)", what):
        found = re.fullmatch(r"(builds|(?:rejected|crashes|times out) at \w+)(?: on (.+))?", said)
        if not found:
            raise Unreadable(text)
        outcomes.append((found[1], ranges_in(found[2]) if found[2] else None))
    return Clause(*_places(library, toolkit), None, tuple(outcomes))


def _places(library: str, toolkit: str) -> tuple[tuple[Range, ...] | None, tuple[Range, ...] | None]:
    return ranges_in(library) if library else None, ranges_in(toolkit) if toolkit else None


def check_support(page: str, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield each false statement of support.html with the reason."""
    by_variant: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_variant[row.case, row.variant, row.backend, row.host].append(row)
    count = 0
    page = re.sub(r"\bROCm ([\d.]+)(?<!\.)", r"CUDA \1@rocm", page)  # records have it as a toolkit
    for section in re.findall(r'<section class="lazy" aria-label="([^"]*)">(.*?)</section>', page, re.DOTALL):
        case, body = html.unescape(section[0]), section[1]
        for kind, backend, item in re.findall(r'<li data-kind="(\w+)" data-backend="([^"]+)">(.*?)</li>', body, re.DOTALL):  # fmt: skip
            head, *more = map(plain, re.findall(r"<p\b[^>]*>(.*?)</p>", item, re.DOTALL))
            text = head.removeprefix(backend).strip()
            host = re.match(r"(, \S+?)?\s*: ", text)
            of_host = host[1][2:] if host and host[1] else ""
            said = text[host.end() :].removesuffix(".") if host else text
            try:
                if kind == "along":
                    found = _false_along(said, [row for key, of in by_variant.items() if key[0] == case and key[2] == backend for row in of], more[-1] if len(more) > 1 else "")  # fmt: skip
                else:
                    names = (more[1] if len(more) > 1 else "").split(" · ")
                    shown = [re.sub(r" and \d+ more$", "", name) for name in names]
                    count += len(names) + sum(int(item) for name in names for item in re.findall(r" and (\d+) more$", name))  # fmt: skip
                    found = (why for name in shown for why in _false_statement(said, more[0], by_variant.get((case, name, backend, of_host), ())))  # fmt: skip
                yield from ((f"support.html, {case} {head}", why) for why in dict.fromkeys(found))
            except Unreadable as error:
                yield f"support.html, {case} {head}", f"unreadable: {error}"
    yield from false_numbers("support.html", page, {r"([\d,]+) statements: what was tried": count})


def _without_messages(text: str) -> str:
    return _MESSAGE.sub("", text)


def _false_statement(headline: str, notes: str, rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        yield "no cell"
        return
    if headline in ("not applicable wherever it was tried", "no results"):
        yield from (row.cell for row in rows if row.answered)
    else:
        yield from _false_clauses(clauses_of(_without_messages(headline)), rows)
        yield from _false_messages(headline, rows)
    yield from _false_notes(notes, rows)


def _false_clauses(clauses: Sequence[Clause], rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if row.answered:
            said = [clause.of(row) for clause in clauses if clause.covers(row)]
            if said != [{row.said}]:
                yield f"{row.cell}: {row.said}, not {said}"


def _false_messages(headline: str, rows: Sequence[Row]) -> Iterator[str]:
    every = {" ".join(row.message.split()) for row in rows if row.answered}
    for said in _MESSAGE.findall(headline):
        parts = [part for part in re.split("…", said) if part]
        if not any(message.startswith(parts[0]) for message in every):
            yield f"nothing says {said!r}"


def _false_notes(notes: str, rows: Sequence[Row]) -> Iterator[str]:
    answered = [row for row in rows if row.answered]
    for note in re.split(r"(?<=[\w)])\. ?(?=[A-Z]|$)", notes):
        label, _, said = note.partition(": ")
        if label == "Tested":
            yield from _false_tested(said, answered)
        elif label in ("Unsupported", "Untested", "Never tried together", "Untested in between"):
            yield from _false_gaps(label, said, rows)
        elif found := re.match(r"No result for (\d+) cells? ", note):
            silent = sum(not row.answered and row.status != "unsupported" for row in rows)
            if silent != int(found[1]):
                yield f"{silent} cells without a result, not {found[1]}"
        elif note:
            raise Unreadable(note)


def _false_tested(said: str, answered: Sequence[Row]) -> Iterator[str]:
    found = re.fullmatch(r"(?:(?!CUDA )[\w-]+ (\d.*?), )?(?:CUDA (.+?), )?((?:sm_|gfx).+)", said)
    if not found:
        raise Unreadable(said)
    for name, text in zip(("library", "toolkit", "target"), found.groups(), strict=True):
        values = {getattr(row, name) for row in answered} - {""}
        yield from _false_list(name, text or "", values)


def _false_list(name: str, text: str, values: set[str]) -> Iterator[str]:
    """Yield the errors of a list: a range must have the first and last value, a list every value, and a count must be correct."""
    if not text:
        if values:
            yield f"{name} not named: {sorted(values)}"
        return
    ranges = ranges_in(text)
    ends = {end for found in ranges for end in found if end}
    outside = [value for value in values if not inside(value, ranges)]
    counted = re.search(r"\((\d+) versions\)", text)
    if outside or not ends <= values or (counted and int(counted[1]) != len(values)):
        yield f"{name} {text}, not {', '.join(sorted(values, key=order))}"


def _false_gaps(label: str, said: str, rows: Sequence[Row]) -> Iterator[str]:
    for part in said.split("; "):
        if re.fullmatch(r"and \d+ more of the kind", part):
            continue
        library: tuple[Range, ...] | None = None
        toolkit: tuple[Range, ...] | None = None
        target: tuple[Range, ...] | None = None
        if label == "Untested in between":
            text = re.sub(r"^[a-z][\w-]* (?=\d)", "", part) if not part.startswith(("sm_", "compute_", "gfx")) else part
            if part.startswith(("sm_", "compute_", "gfx")):
                target = ranges_in(text)
            elif part.startswith("CUDA "):
                toolkit = ranges_in(re.sub(r"^\d+ of ", "", text.removeprefix("CUDA "))) if " of " not in text else None
            else:
                library = ranges_in(text) if " of " not in text else None
            if library is toolkit is target is None:
                continue
        else:
            places, _, releases = part.rpartition("CUDA ") if "CUDA " in part else (part, "", "")
            toolkit = ranges_in(releases) if releases else None
            targets, _, libraries = places.partition(" with ") if re.search("sm_|gfx", places) else ("", "", places)
            target = ranges_in(targets) if targets else None
            libraries = libraries.removesuffix(" and ").strip()
            library = ranges_in(libraries) if libraries else None
        plain_only = label == "Untested in between" and target is not None
        named = [
            row
            for row in rows
            if (library is None or inside(row.library, library))
            and (toolkit is None or inside(row.toolkit, toolkit))
            and (target is None or (inside(row.target, target) and not (plain_only and row.target[-1] in "af")))
        ]
        wrong = [row for row in named if row.answered or (label != "Unsupported" and row.status == "unsupported")]
        if wrong:
            yield f"{label}: {part}, and {wrong[0].cell} {wrong[0].said if wrong[0].answered else 'is unsupported'}"
        elif label == "Unsupported" and not named:
            yield f"{label}: {part}, without a cell"


def _false_along(said: str, rows: Sequence[Row], rests: str) -> Iterator[str]:
    """Yield the errors of a sentence about a parameter. Each range of values must have the stated outcome."""
    key = re.match(r"(?i)(?:builds )?(?:up to |from )?([a-z_]\w*)[= ]", said)
    if key is None:
        raise Unreadable(said)
    name = key[1]
    shown = [re.sub(r" and \d+ more$", "", rest) for rest in rests.split(" · ")] if rests else [""]
    said, _, untried = said.partition(f" ({name} ")
    label = rf"{name}[= ]"
    pattern = rf"(?:; |\. |^)(?=(?:[Bb]uilds )?(?:[Uu]p to |[Ff]rom )?{label})"
    parts = [part for part in re.split(pattern, said) if part]
    for rest in shown:
        of_rest = [(value, row) for row in rows if (value := _value(row.variant, name, rest)) is not None]
        for part in parts:
            found = re.fullmatch(rf"(?:[Bb]uilds )?((?:[Uu]p to |[Ff]rom )?){label}(\S+?)(?: to (\S+?))?(?::? ((?:builds|rejected|crashes|times|needs|up to|from|CUDA|\d).*))?", part)  # fmt: skip
            if not found:
                raise Unreadable(part)
            how, low, high, what = found[1].strip().lower(), found[2].rstrip(":"), found[3], found[4] or "builds"
            ranges: tuple[Range, ...] = ((None, low),) if how == "up to" else ((low, None),) if how == "from" else ((low, high or low),)  # fmt: skip
            some = [row for value, row in of_rest if inside(value, ranges)]
            if not any(row.answered for row in some):
                yield f"{part} {rest}: no cell"
            yield from _false_clauses(clauses_of(what), some)
        for value in re.findall(r"\d[\w.]*\w", untried):
            yield from (f"{row.cell} is tried" for each, row in of_rest if each == value and row.answered)


def _value(variant: str, name: str, rest: str) -> str | None:
    """Return the value of a parameter in a variant whose other parameters are `rest`."""
    own = dict(part.partition("=")[::2] for part in variant.split(",") if part)
    value = own.pop(name, None)
    return value if ",".join(f"{key}={of}" for key, of in own.items()) == rest else None


def false_numbers(where: str, text: str, expected: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    for pattern, count in expected.items():
        found = re.search(pattern, text)
        if found is None or number(found[1]) != count:
            yield f"{where}: {found[0] if found else pattern}", f"{count}"
