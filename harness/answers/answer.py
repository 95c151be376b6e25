"""Answers to questions: the features that match a question, their findings, and the cells that prove the findings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.answers.cells import UNLINKED, Entry, Feature, Known, Row, are_own, hosted, is_host, place_of_fault
from harness.answers.query import FeatureFinding, Query, QueryResult, ToolFinding, matching
from harness.answers.question import WEIGHTS, Vocabulary
from harness.answers.table import FeatureRow, Field, field_of, lines_of, releases_like, unlinked
from harness.answers.verdict import (
    CLAIM_AXES,
    FAULT,
    NOT,
    NOTHING,
    SILENT,
    UNTRIED_VERDICT,
    WORKS,
    Places,
    Support,
    picked,
)
from harness.backends import label_of, library_of
from harness.matrix.axes import is_real, spell_targets
from harness.model.cell import HOST_COMPILER
from harness.model.target import Target

SAME = "targets/removed"
"""The case about the architecture itself. Its row would repeat the row of the architecture."""

_NOT_KNOWN = re.compile(
    "invalid value for --gpu-architecture|Unsupported gpu architecture|is not defined for option 'gpu-name'|Cannot find option named 'sm_"
)

FEATURE = Feature(case="", title="The architecture itself: whether anything is compiled for it", topic="")


def known_of_itself(known: Known) -> Known:
    """Return the cells, reduced to whether their compiler supports the architecture.

    A compiler supports an architecture if it compiled or refused a program for it. It does not support the architecture
    if its message or the record says so (``CUDA 13.0 knows no sm_70``). Any other refusal by a library that brings its
    own CUDA proves neither: the library's front end may stop before the architecture matters.
    """
    rows = []
    for row in known.rows:
        unknown = row.letter == NOTHING or _NOT_KNOWN.search(row.message)
        silent = row.letter in SILENT and f" knows no {row.target} " not in f"{row.message} "
        if not (row.axis or silent or (not row.toolkit and row.letter != WORKS and not unknown)):
            rows.append(row._replace(case="", rest="", letter=NOT if unknown else WORKS))
    # The last of several cells in one place counts: a built cell proves more than a refused one.
    rows.sort(key=lambda row: row.message == "built")
    return Known(rows=rows, features={"": FEATURE}, runs=known.runs)


def is_about_architecture(query: Query) -> bool:
    """Return whether a question names an architecture, perhaps a CUDA release or a tool, and nothing else."""
    return bool(query.targets) and not query.words


SHOWN = 5
"""The number of features in an answer. The page shows all of them."""


_LEADS = {"works": "Yes", "part": "In part", "refused": "No", "silent": "Not tried"}
"""The first word of an answer, by the sense of the statements (`harness.matrix.marks.AnswerKind`), best first."""
_SENSES = tuple(_LEADS)
_LONG = 110
"""The maximum number of characters for other versions in the first sentence."""
_MOST_VARIANTS = 3
"""The maximum number of variants with full statements in one sentence."""


def sentence_of(
    findings: Sequence[FeatureFinding], targets: Sequence[str], intent: str = "", *, decides: bool = True
) -> str:
    """The answer of the first case in one sentence: ``Yes. NVRTC, as sm_90a: builds since CUDA 12.0.``

    Variants with different findings get a part each. A GPU has several targets; the best target of each tool counts.

    Parameters
    ----------
    findings : sequence of FeatureFinding
        The findings, best first.
    targets : sequence of str
        The targets of the question. The sentence names them if there are several.
    intent : str
        Intent of the question. With ``since``, the release comes first.
    decides : bool
        Whether a yes or no leads the sentence.
    """
    since = intent == "since"
    variants = [(finding, *_best(finding, targets)) for finding in findings if finding.case == findings[0].case]
    variants = [variant for variant in variants if variant[2]] or variants[:1]
    if not variants or not variants[0][2]:
        others = {f" {item.tool}: {item.overall}." for item in findings[0].tools if _short(item.overall)}
        return f"{_LEADS['silent']}.{others.pop() if len(others) == 1 else ''}"
    leads = {lead for _, lead, _ in variants}
    (lead,) = leads if len(leads) == 1 else (_LEADS["part"],)
    if since and lead != _LEADS["refused"]:
        lead = _since(variants) or lead
    head = f"{lead}. " if decides else ""
    contrary = _contrary(findings, leads, targets)
    by_text: dict[str, list[str]] = {}
    for finding, _, of_tools in variants:
        by_text.setdefault(_statements(of_tools, targets, since=since), []).append(finding.label)
    if len(by_text) == 1:
        return f"{head}{next(iter(by_text))}.{contrary}"
    if len(by_text) <= _MOST_VARIANTS:
        return head + " ".join(f"{'; '.join(labels)}: {text}." for text, labels in by_text.items()) + contrary
    by_lead: dict[str, list[str]] = {}
    for finding, of, _ in sorted(variants, key=lambda variant: list(_LEADS.values()).index(variant[1])):
        by_lead.setdefault(of, []).append(finding.label)
    words = {"Yes": "Builds", "In part": "Builds in part", "No": "Does not build", "Not tried": "Not tried"}
    return head + " ".join(f"{words[of]}: {'; '.join(labels)}." for of, labels in by_lead.items()) + contrary


def _contrary(findings: Sequence[FeatureFinding], leads: Collection[str], targets: Sequence[str]) -> str:
    """Name the other matching cases with the opposite answer: ``But instructions/fp8-mma does not build.``"""
    opposite = {_LEADS["works"]: _LEADS["refused"], _LEADS["refused"]: _LEADS["works"]}.get(*leads) if len(leads) == 1 else None  # fmt: skip
    by_case: dict[str, set[str]] = {}
    for finding in findings:
        of, of_tools = _best(finding, targets)
        if of_tools and finding.weight >= findings[0].weight and finding.case != findings[0].case:
            by_case.setdefault(finding.case, set()).add(of)
    cases = [case for case, of in by_case.items() if of == {opposite}]
    if not (cases and findings[0].case):
        return ""
    more = f" and {len(cases) - _MOST_VARIANTS} more" if len(cases) > _MOST_VARIANTS else ""
    one = len(cases) == 1
    verb = ("does not build" if one else "do not build") if _LEADS["refused"] == opposite else "builds" if one else "build"  # fmt: skip
    return f" But {', '.join(cases[:_MOST_VARIANTS])}{more} {verb}."


def _statements(findings: Sequence[ToolFinding], targets: Sequence[str], *, since: bool) -> str:
    # A GPU has several targets. A question without targets is about all of them.
    if not targets:
        by_tool: dict[str, list[ToolFinding]] = {}
        for finding in findings:
            by_tool.setdefault(finding.tool, []).append(finding)
        return "; ".join(f"{tool}: {_on_all(of)}" for tool, of in by_tool.items())
    parts = []
    for finding in findings:
        place = "" if len(targets) == 1 else f", as {finding.place}"
        every = f" in each release tried ({finding.tried})" if since and finding.verdict.kind == "works" else ""
        parts.append(f"{finding.tool}{place}: {finding.verdict.text}{every}{_qualified(finding)}")
    return "; ".join(parts)


def _short(text: str) -> str:
    """Return the text, or an empty string if it is too long for the first sentence.

    The following lines contain it anyway.
    """
    return text if len(text) <= _LONG else ""


def _qualified(finding: ToolFinding) -> str:
    linked = [note for note in finding.verdict.note.split("; ") if note.startswith(UNLINKED)]
    notes = "; ".join(filter(None, (*linked, _short(finding.overall))))
    return f" ({notes})" if notes else ""


def _on_all(findings: Sequence[ToolFinding]) -> str:
    """Return a tool's statement about all architectures: ``builds since CUDA 12.0 on sm_90a; never (0 of 28) on sm_52–sm_90``."""
    by_text: dict[str, list[ToolFinding]] = {}
    for finding in sorted(findings, key=lambda finding: _SENSES.index(finding.verdict.sense)):
        by_text.setdefault("" if finding.verdict.refused else finding.verdict.text, []).append(finding)
    if len(by_text) > _MOST_VARIANTS:
        senses = dict.fromkeys(finding.verdict.sense for finding in findings)
        return "builds with releases that depend on the architecture" + (", on some not" if "refused" in senses else "")
    parts = []
    for text, of in by_text.items():
        words = text or _refusal(of)
        targets = [target for finding in of for target in finding.targets]
        place = f" on {spell_targets(targets)}" if len(by_text) > 1 else ""
        notes: dict[str, list[str]] = {}
        for finding in of:
            if short := _short(finding.overall):
                notes.setdefault(short, []).extend(finding.targets)
        linked = {note for finding in of for note in finding.verdict.note.split("; ") if note.startswith(UNLINKED)}
        note = f" ({linked.pop()})" if len(linked) == 1 else ""
        if len(notes) == 1:
            ((others, some),) = notes.items()
            note = f" ({others}{'' if len(some) == len(targets) else f', on {spell_targets(some)}'})"
        parts.append(f"{words}{place}{note}")
    return ", ".join(parts)


def _refusal(of: Sequence[ToolFinding]) -> str:
    """Return the combined count of several refusals: ``never (0 of 28)``."""
    if len(of) == 1:
        return of[0].verdict.text
    count = sum(finding.verdict.cells for finding in of)
    return (
        f"never (0 of {count})" if all(finding.verdict.text.startswith("never") for finding in of) else f"0 of {count}"
    )


def _since(variants: Sequence[tuple[FeatureFinding, str, Sequence[ToolFinding]]]) -> str:
    """Return ``Since CUDA 12.1`` if each statement about what builds names that release, or builds with every release tried."""
    verdicts = {of_tool.verdict for _, _, of_tools in variants for of_tool in of_tools if not of_tool.verdict.refused}
    texts = {verdict.text for verdict in verdicts if verdict.kind == "since"}
    found = {match[1] for text in texts if (match := re.fullmatch(r"builds since (.+)", text))}
    plain = all(verdict.silent or verdict.kind in ("since", "works") for verdict in verdicts)
    return f"Since {found.pop()}" if plain and len(found) == len(texts) == 1 else ""


def _best(finding: FeatureFinding, targets: Sequence[str]) -> tuple[str, list[ToolFinding]]:
    """Return the first word of an answer, and the best finding of each tool.

    "Yes" and "No" are about all tools, and, without targets, about all architectures.
    """
    best: dict[str, ToolFinding] = {}
    for of_tool in sorted(finding.tools, key=lambda each: (_SENSES.index(each.verdict.sense), not each.overall)):
        best.setdefault(of_tool.tool, of_tool)
    answered = [of_tool for of_tool in best.values() if not of_tool.verdict.silent]
    every = [of_tool for of_tool in finding.tools if not of_tool.verdict.silent]
    builds = {target for of_tool in answered if of_tool.verdict.works for target in of_tool.targets}
    tried = {
        of_tool.tool: {target for each in finding.tools if each.tool == of_tool.tool for target in each.targets}
        for of_tool in answered
    }
    # A tool without a cell for the GPU's target that builds does not count as a no.
    counted = answered if targets else every
    senses = {
        of_tool.verdict.sense
        for of_tool in counted
        if not of_tool.verdict.refused or not builds or builds & tried[of_tool.tool]
    }
    return _LEADS[senses.pop() if len(senses) == 1 else "part" if senses else "silent"], answered if targets else every


def answer(query: Query, known: Known, vocabulary: Vocabulary, most: int = SHOWN) -> QueryResult:
    """Answer a question.

    Parameters
    ----------
    query : Query
        The question.
    known : Known
        The tried cells.
    vocabulary : Vocabulary
        The vocabulary of the cells (`harness.answers.store.vocabulary_of`).
    most : int
        The maximum number of findings.
    """
    targets = [target for target in query.targets if target in known.targets] or (
        [] if query.targets else [target for target in known.targets if is_real(target)]
    )
    lines, lacking = matching(lines_of(known, targets), query, known, vocabulary)
    tools = query.tools(vocabulary) or {}
    itself = known_of_itself(known) if is_about_architecture(query) and query.intent != "fails" else None
    findings = [finding_of(line, query, itself, tools) for line in lines_of(itself, targets)] if itself else []
    features = [finding_of(line, query, known, tools) for line in lines]
    some = bool(tools or query.toolkits)
    if some and not query.words:
        # For a question about versions alone, breakage that is specific to these versions comes first.
        features.sort(key=lambda finding: not finding.broken)
    answered = any(not of_tool.verdict.silent for finding in findings for of_tool in finding.tools)
    features = [finding for finding in features if not answered or finding.case != SAME]
    if some and answered:
        # A feature without an answer is not applicable, as the findings imply.
        features = [finding for finding in features if any(not of_tool.verdict.silent for of_tool in finding.tools)]
    findings = [finding for finding in (*findings, *features) if finding.tools]
    if _is_best_untried(findings, query):
        findings = [finding for finding in findings if not any(of_tool.proof for of_tool in finding.tools)]
    findings.sort(key=lambda finding: not any(of_tool.proof for of_tool in finding.tools))
    lacking = (*(chip.text for chip in query.unknown), *lacking)
    if query.intent == "fails" and not lacking:
        sentence, findings = _failing(findings, query)
    elif lacking:
        sentence = f"Not known: no case has {' and '.join(lacking)}."
    elif findings and not (query.words or query.targets):
        sentence = _failing(findings, query)[0]
    elif findings:
        sentence = sentence_of(findings, query.targets, query.intent, decides=query.decides)
    else:
        sentence = f"{_LEADS['silent']}."
    return QueryResult(
        sentence=sentence, findings=tuple(findings[:most]), more=max(0, len(findings) - most), lacking=lacking
    )


def _is_best_untried(findings: Sequence[FeatureFinding], query: Query) -> bool:
    """Return whether an untried case fits the question's words clearly better than every tried case.

    The tried cases do not answer such a question.
    """
    tried = [finding.weight for finding in findings if any(of_tool.proof for of_tool in finding.tools)]
    most = max((finding.weight for finding in findings), default=0)
    return bool(query.words) and max(tried, default=most) <= most - (WEIGHTS[0] - WEIGHTS[1])


def _failing(findings: Sequence[FeatureFinding], query: Query) -> tuple[str, list[FeatureFinding]]:
    """Return a sentence with the number of failing cases, and their findings, known faults first.

    A case fails if one of its forms does not build.
    """
    tried = [finding for finding in findings if any(not of_tool.verdict.silent for of_tool in finding.tools)]
    failing = [finding for finding in tried if any(_refused(of_tool) for of_tool in finding.tools)]
    failing.sort(key=lambda finding: not any(of_tool.verdict.kind == "fault" for of_tool in finding.tools))
    count, of = (len({finding.case for finding in each}) for each in (failing, tried))
    if not of:
        return f"{_LEADS['silent']}.", []
    used = dict.fromkeys(chip.text for chip in query.chips if chip.kind in ("tool", "toolkit", "header", "host"))
    where = "".join(
        (f" on {', '.join(query.targets)}" if query.targets else "", f" with {' and '.join(used)}" if used else "")
    )
    kept = [replace(finding, tools=tuple(filter(_refused, finding.tools))) for finding in failing]
    return f"{count} of {of} cases tried{where} have a form that does not build.", kept


def _refused(finding: ToolFinding) -> bool:
    return not finding.verdict.silent and not finding.verdict.works


def finding_of(
    line: FeatureRow, query: Query, known: Known, tools: Mapping[str, Sequence[str] | None]
) -> FeatureFinding:
    """Return the finding for a row.

    Parameters
    ----------
    line : FeatureRow
        The feature, on the relevant architectures.
    query : Query
        The question, with its CUDA releases and header libraries.
    known : Known
        The tried cells.
    tools : Mapping
        Versions by backend, or None for all versions (`Query.tools`). An empty mapping selects every tool.
    """
    hosts = query.hosts()
    axes = {**query.headers(), **hosts}
    of_tools: list[ToolFinding] = []
    by_tool: dict[tuple[str, str], list[Field]] = {}
    for field in line.fields:
        if not tools or field.entry.backend in tools:
            by_tool.setdefault((field.entry.tool, field.entry.axis), []).append(field)
    named_hosts = {fields[0].entry.tool for fields in by_tool.values() if fields[0].entry.axis in hosts}
    for fields in by_tool.values():
        entry = fields[0].entry
        versions = axes.get(entry.axis, []) or None if entry.axis else tools.get(entry.backend)
        if entry.axis not in axes and any(query.headers().values()):
            of_tools += _without(_of_tools(fields, versions, query.toolkits), query.headers())
        elif not hosts or entry.axis in hosts or entry.backend not in hosted():
            of_tools += _of_tools(fields, versions, query.toolkits)
        elif not is_host(entry.axis) and entry.tool not in named_hosts:
            of_tools += _on_own(_of_tools(fields, versions, query.toolkits), known, hosts)
    if len(query.targets) > 1 and len({(each.vendor, each.cc) for each in map(Target.parse, query.targets)}) == 1:
        # A GPU runs all of its targets: the target that builds counts.
        order = list(dict.fromkeys(each.tool for each in of_tools))
        of_tools.sort(key=lambda each: (order.index(each.tool), _SENSES.index(each.verdict.sense)))
    feature = known.features[line.case]
    # Faults of other tools, architectures or releases do not answer the question.
    places = {
        place_of_fault(item.entry.backend, row.version, row.toolkit)
        for item in of_tools
        for row in item.entry.proofs.values()
        if row.letter == FAULT
        and row.target in item.targets
        and (query.toolkits is None or row.toolkit in query.toolkits)
        and (not tools or not (versions := tools.get(item.entry.backend)) or row.version in versions)
    }
    faults = tuple((reason, link) for reason, link, of in feature.faults if places.intersection(of))
    return FeatureFinding(
        case=line.case, title=feature.title, label=line.label, tools=tuple(of_tools), faults=faults, weight=line.weight
    )


def _without(findings: Iterable[ToolFinding], headers: Mapping[str, Sequence[str]]) -> Iterator[ToolFinding]:
    """Yield the findings for programs without a header library if the question names a release of one."""
    name = "with the CCCL that CUDA brings" if "cccl" in headers else f"without {' and '.join(headers)}"
    for each in findings:
        overall = f"{name}: {each.verdict.text}"
        yield each if each.verdict.silent else replace(each, verdict=UNTRIED_VERDICT, overall=overall, proof=())


def _on_own(findings: Iterable[ToolFinding], known: Known, hosts: Mapping[str, Sequence[str]]) -> Iterator[ToolFinding]:
    """Yield the findings for the machine's own host compiler if the question names a host compiler.

    An own host compiler of the same version counts as the requested one.
    """
    name = f"the machine's own host compiler ({' or '.join(known.hosts) or 'version unknown'})"
    same = are_own(known.hosts, hosts)
    for each in findings:
        if each.verdict.silent:
            yield each
        elif same:
            yield replace(each, overall="; ".join(filter(None, (each.overall, f"with {name}"))))
        else:
            yield replace(each, verdict=UNTRIED_VERDICT, overall=f"with {name}: {each.verdict.text}", proof=())


def _of_tools(
    fields: Sequence[Field], versions: Sequence[str] | None, toolkits: Sequence[str] | None
) -> list[ToolFinding]:
    """Return the findings of one tool. Architectures with the same verdict share a finding."""
    some = versions is not None or toolkits is not None
    groups: dict[tuple[Support, str, str], list[Field]] = {}
    for field in fields:
        verdict = picked(field.grid, versions, toolkits) if some else field.verdict
        if some and (note := unlinked(_rows(field, versions, toolkits))):
            verdict = replace(verdict, note=note)
        overall = (
            "; ".join(filter(None, (f"with other versions: {field.verdict.text}", field.verdict.note)))
            if some
            and not field.verdict.silent
            and field.verdict.text != verdict.text
            and (verdict.silent or not field.verdict.refused)
            else ""
        )
        alone = len(fields) == 1
        where = (
            f"builds {field.where}" if alone and field.where and field.where != "nowhere" and not verdict.works else ""
        )
        own = field.own.text if field.own else ""
        # Architectures that were tried with other versions form one group if the outcome is the same.
        alike = replace(verdict, tried="", claims=(), cells=0)
        groups.setdefault((alike, "; ".join(filter(None, (overall, where))), own), []).append(field)
    if any(not verdict.silent for verdict, _, _ in groups):
        groups = {key: group for key, group in groups.items() if not key[0].silent}
    return [
        ToolFinding(
            tool=tool_label(group[0].entry),
            entry=group[0].entry,
            targets=tuple(field.target for field in group),
            place=spell_targets(field.target for field in group),
            verdict=replace(verdict, cells=sum(len(_rows(field, versions, toolkits)) for field in group)),
            overall=overall,
            proof=_proof(group[-1], versions, toolkits),
            own=own,
            tried=_tried(group, versions, toolkits),
            of_all=not some,
        )
        for (verdict, overall, own), group in groups.items()
    ]


def _rows(field: Field, versions: Sequence[str] | None, toolkits: Sequence[str] | None) -> list[Row]:
    """Return the requested cells with a compiler's answer, oldest first."""
    return [
        row
        for row in field.entry.answers.get(field.target, ())
        if (versions is None or row.version in versions) and (toolkits is None or row.toolkit in toolkits)
    ]


def _proof(field: Field, versions: Sequence[str] | None, toolkits: Sequence[str] | None) -> tuple[Row, ...]:
    rows = _rows(field, versions, toolkits)
    if not rows:
        return ()
    other = [row for row in rows if (row.letter == WORKS) != (rows[-1].letter == WORKS)]
    return (rows[-1], *other[-1:])


def tool_label(entry: Entry) -> str:
    """Return the label of a tool: ``CuPy, Jitify``.

    If the versions are those of another library or of a host compiler, the label includes it: ``NVRTC with cutlass``,
    ``nvcc with gcc``.
    """
    backend, _, more = entry.tool.partition(" ")
    label = " ".join(filter(None, (label_of(backend), more)))
    return f"{label} with {entry.axis}" if entry.axis else label


def _tried(fields: Sequence[Field], versions: Sequence[str] | None, toolkits: Sequence[str] | None) -> str:
    by_target = [_rows(field, versions, toolkits) for field in fields]
    spans = {_span(fields[0].entry, rows) for rows in by_target}
    # CUDA 11.7 does not support Blackwell, and CUDA 13 does not support Pascal.
    return _span(fields[0].entry, [row for rows in by_target for row in rows]) + (", not all on each" if len(spans) > 1 else "")  # fmt: skip


def _span(entry: Entry, rows: Sequence[Row]) -> str:
    library = entry.axis or library_of(entry.backend)
    places = Places(
        {(row.version, row.toolkit): True for row in rows},
        *(releases_like(name, [row.version for row in rows]) for name in (library, "cuda")),
    )
    axis = f"{entry.axis} " if entry.axis and any(row.version for row in rows) else ""
    return axis + places.tried(places.answered)


def newest_day(values: Mapping[str, str]) -> str:
    """Return the day of the newest run's start, or an empty string if no plan has a start."""
    return max(values.values(), default="")[:10]


def _changes(finding: ToolFinding, target: str) -> list[dict[str, Any]]:
    """Return the changes that the statement names: axis, versions before and after, and the two cells."""
    found = []
    for claim in field_of(finding.entry, target).verdict.claims:
        number = CLAIM_AXES.index(claim.axis)
        rows = [finding.entry.proofs.get((*place, target)) for place in (claim.before, claim.after)]
        cells = [row.cell for row in rows if row]
        axis = finding.entry.axis or library_of(finding.entry.backend) if number == 0 else "cuda"
        found.append({"axis": axis, "before": claim.before[number], "after": claim.after[number], "builds": claim.builds, "cells": cells})  # fmt: skip
    return found


def finding_json(finding: ToolFinding) -> dict[str, Any]:
    """Return the keys that ``cumatrix ask --json`` and the page's API share."""
    return {
        "backend": finding.entry.backend,
        "library": "" if is_host(finding.entry.axis) else finding.entry.axis,
        "host_compiler": finding.entry.axis if is_host(finding.entry.axis) else "",
        "targets": list(finding.targets),
        "kind": finding.verdict.kind,
        "answer": finding.verdict.text,
        "note": "; ".join(filter(None, (finding.verdict.note, finding.overall))),
        "tried": finding.tried,
        "changes": [change for target in finding.targets for change in _changes(finding, target) if finding.of_all],
        "cells": [row.cell for row in finding.proof],
    }


def command_for(query: Query, vocabulary: Vocabulary, case: str = "", backend: str = "") -> str:
    """Return the command that tries an untried combination: ``cumatrix run`` for an existing case, else ``cumatrix try``."""
    hosts = query.hosts()
    # Select the first of several backends that use a host compiler.
    tools = (
        (query.tools(vocabulary) or {})
        if any(chip.kind == "tool" for chip in query.chips) or not hosts
        else dict.fromkeys(hosted()[:1])
    )
    other = [
        name
        for start, names in vocabulary.builders.items()
        if any(each.startswith(start) for each in query.targets)
        for name in names
    ]
    backends = list(dict.fromkeys(filter(None, (backend, *tools)))) or other[:1]
    program = "kernel.py" if backends and all(name in vocabulary.python for name in backends) else "kernel.cu"
    parts = [f"cumatrix run {case.rpartition('@')[0] or case}" if case else f"cumatrix try {program}"]
    for name in backends:
        library = vocabulary.libraries.get(name, "")
        versions = tools.get(name)
        text = f"--with {library}={versions[-1] if versions else 'all'}" if library else f"-b {name}"
        if text not in parts:
            parts.append(text)
    parts += [f"--library {name}={','.join(versions) or 'all'}" for name, versions in query.headers().items()]
    names = [f"{name}-{version}" for name, versions in hosts.items() for version in versions]
    if names:
        parts.append(f"--host-compiler {','.join(name if re.fullmatch(HOST_COMPILER, name) else f'{name}=/path/to/g++' for name in names)}")  # fmt: skip
    if query.toolkits:
        parts.append(f"-t {','.join(query.toolkits)}")
    if query.targets:
        parts.append(f"-a {query.targets[0]}")
    return " ".join(parts)
