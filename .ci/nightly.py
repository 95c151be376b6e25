#!/usr/bin/env python3
"""The steps of .github/workflows/nightly-gpu.yml, so that they run and are tested anywhere. The standard library only.

nightly.py matrix --runner gpu --shards 2      which job runs which tox environments, as JSON
nightly.py run ENV,ENV -- -a own               these environments, one after another
nightly.py collect ARTIFACTS --jobs JSON       the records of all jobs in one folder; 3 when there are none
nightly.py judge --address URL                 merge, history, diff with the night before, page
nightly.py issue --state STATE                 opens, updates or closes the one issue
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

LABEL = "nightly"
TITLE = "The nightly run is not as it was"
HOSTED = "ubuntu-latest"
SUMMARY = Path("summary.md")
NIGHT, BEFORE = Path("night"), Path("before")  # what this night made, and what the last one left


def matrix(args: argparse.Namespace) -> int:
    """Each environment once on a hosted runner for all targets, and once on the GPU's for its own."""
    said = subprocess.run(
        ["tox", "list", "--no-desc", "-q", "-m", LABEL], stdout=subprocess.PIPE, text=True, check=True
    )
    names = [line.strip() for line in said.stdout.splitlines() if re.fullmatch(r"[\w.-]+", line.strip())]
    names = [name for name in names if re.search(args.only, name)]
    if not names:
        print(f"nightly.py: no environment of the label {LABEL!r} fits {args.only!r}", file=sys.stderr)
        return 3
    jobs = []
    for tier, runner, options in (
        ("cpu", HOSTED, "--device none"),
        ("gpu", ["self-hosted", args.runner], "-a own"),
    ):
        shards = [names[number :: args.shards] for number in range(args.shards)]
        jobs += [
            {"tier": tier, "shard": number, "runner": runner, "options": options, "environments": ",".join(shard)}
            for number, shard in enumerate(shards, 1)
            if shard
        ]
    print(json.dumps({"include": jobs}))
    return 0


def run(args: argparse.Namespace) -> int:
    """Run environments; cells that are not as expected are for `judge`, an environment without records is a failure."""
    silent = []
    for name in filter(None, args.environments.split(",")):
        records = Path("reports") / f"{name}.jsonl"
        subprocess.run(["tox", "run", "-e", name, "--", *args.options])
        if not records.is_file() or not records.stat().st_size:
            silent.append(name)
    if silent:
        print(f"nightly.py: no records from {', '.join(silent)}", file=sys.stderr)
    return 1 if silent else 0


def collect(args: argparse.Namespace) -> int:
    """Copy what the jobs sent (``records-TIER-SHARD/``) to ``night/TIER/``, and say what is not there."""
    missing, count = [], 0
    for job in json.loads(args.jobs)["include"]:
        source = args.artifacts / f"records-{job['tier']}-{job['shard']}"
        target = NIGHT / job["tier"]
        target.mkdir(parents=True, exist_ok=True)
        for name in job["environments"].split(","):
            files = [source / f"{name}{ending}" for ending in (".jsonl", ".plan.json")]
            for file in files:
                if file.is_file():
                    shutil.copyfile(file, target / file.name)
            if files[0].is_file() and files[0].stat().st_size:
                count += 1
            else:
                missing.append(f"{name} ({job['tier']}, shard {job['shard']})")
    lines = [f"Records of {count} environments."]
    lines += [f"**Nothing came from {', '.join(missing)}.**"] if missing else []
    _write(lines)
    if not count:
        print("nightly.py: the night has no results at all", file=sys.stderr)
        return 3
    return 0


def judge(args: argparse.Namespace) -> int:
    """One set of records, the history, what changed, the page; tells the state as the step's output."""
    after = Path("after")
    after.mkdir(exist_ok=True)
    if (BEFORE / "history").is_dir():
        shutil.copytree(BEFORE / "history", after / "history", dirs_exist_ok=True)
    merged = after / "night.jsonl"
    said = _cumatrix("merge", str(NIGHT), "--out", str(merged))
    if not merged.is_file():
        return said.returncode or 1
    _cumatrix("history", "add", str(NIGHT), "--history", str(after / "history"), "--commit", args.commit, check=True)
    state = "fine"
    if (BEFORE / "night.jsonl").is_file():
        said = _cumatrix("diff", str(BEFORE / "night.jsonl"), str(merged))
        if said.returncode not in (0, 1):
            return said.returncode
        state = "regression" if said.returncode else "fine"
        _write(["", f"Against the night before: {state}.", "", fenced(said.stdout)])
    else:
        _write(["", "There is no earlier night to compare with."])
    address = ["--address", args.address] if args.address else []
    _cumatrix("report", str(merged), "--history", str(after / "history"), "--out", "site", *address, check=True)
    with open(os.environ.get("GITHUB_OUTPUT", os.devnull), "a") as file:
        file.write(f"state={state}\n")
    print(f"state={state}")
    return 0


def issue(args: argparse.Namespace) -> int:
    """Open the issue, or add to the one that is open; close it when all is fine again."""
    found = _gh("issue", "list", "--label", LABEL, "--state", "open", "--limit", "1", "--json", "number")
    number = next((str(item["number"]) for item in json.loads(found or "[]")), None)
    body = SUMMARY.read_text("utf-8") if SUMMARY.is_file() else "The night left no summary.\n"
    body = f"{args.state}: {args.link}\n\n{body}"[:60_000]
    if args.state == "fine":
        if number:
            _gh("issue", "close", number, "--comment", body)
    elif number:
        _gh("issue", "comment", number, "--body", body)
    else:
        _gh("label", "create", LABEL, "--force", "--description", "Regressions that the nightly run found")
        _gh("issue", "create", "--title", TITLE, "--label", LABEL, "--body", body)
    return 0


def fenced(text: str) -> str:
    """A code block that the text cannot end: parts of it come from compilers."""
    text = text[:40_000]
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", text)), default=0))
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _write(lines: list[str]) -> None:
    with open(SUMMARY, "a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _cumatrix(*argv: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["cumatrix", *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="", flush=True)
    if check:
        done.check_returncode()
    return done


def _gh(*argv: str) -> str:
    return subprocess.run(["gh", *argv], stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="nightly.py", description="The steps of the nightly workflow.")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("matrix")
    one.set_defaults(call=matrix)
    one.add_argument("--runner", default="gpu")
    one.add_argument("--shards", type=int, choices=range(1, 21), default=2, metavar="N")
    one.add_argument("--only", default="", metavar="REGEX")
    one = commands.add_parser("run")
    one.set_defaults(call=run)
    one.add_argument("environments")
    one.add_argument("options", nargs="*")
    one = commands.add_parser("collect")
    one.set_defaults(call=collect)
    one.add_argument("artifacts", type=Path)
    one.add_argument("--jobs", required=True, metavar="JSON")
    one = commands.add_parser("judge")
    one.set_defaults(call=judge)
    one.add_argument("--commit", default=os.environ.get("GITHUB_SHA", ""))
    one.add_argument("--address", default="")
    one = commands.add_parser("issue")
    one.set_defaults(call=issue)
    one.add_argument("--state", required=True)
    one.add_argument("--link", default="")
    args = parser.parse_args()
    try:
        code: int = args.call(args)
    except (OSError, subprocess.CalledProcessError, ValueError, re.error) as error:
        print(f"nightly.py: {error}", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
