#!/usr/bin/env python3
"""Steps of .github/workflows/nightly-gpu.yml, as a script that runs and is tested anywhere. Imports the standard library only.

nightly.py matrix --runner gpu --shards 2      print the jobs and their parts of the tox environments as JSON
nightly.py run ENV,ENV -- -a native            run environments one after another
nightly.py fuzz --seconds 3600                 read damaged input with all readers
nightly.py collect ARTIFACTS --jobs JSON       merge the records of all jobs into a folder; exit with 3 if there are none
nightly.py judge --jobs JSON --address URL     compare each environment with its last night
nightly.py next --seconds 3600                 compile missing cells of the plan, and new releases
nightly.py extend                              add the night to the published matrix
nightly.py page --address URL                  write history and page
nightly.py docs                                add the documentation of each version to the site
nightly.py issue --needs JSON                  open, update or close the issue
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import nights

LABEL = "nightly"  # label of the issue
ENVIRONMENTS = (
    "nvrtc-cuda129",
    "nvrtc-cuda130",
    "nvcc-cuda130",
    "cupy13",
    "cupy13-cuda130",
    "cupy14-cuda130",
    "numba061-cuda129",
    "numba068-cuda130",
    "numbacuda024-cuda129",
    "numbacuda030-cuda130",
    "torch211",
)
TITLE = "The nightly run is not as expected"
HOSTED = "ubuntu-latest"
SUMMARY = Path("summary.md")
PUBLISHED = Path("reports/matrix")
NEXT = Path("next")
"""Records of the job `next`."""
WHEELS = "wheels.json"  # next to the matrix: the device code of published wheels
DOCS = "gh-pages"
"""Branch with the documentation of each release: `.github/workflows/release.yml` adds to it."""
COMMANDS = 200  # more commands than run in a night


def matrix(args: argparse.Namespace) -> int:
    """Print the jobs of the night as JSON.

    Each environment runs on hosted runners for all targets, and on the GPU's runner for its native targets. Each tier has a job per shard.
    """
    names = [name for name in ENVIRONMENTS if re.search(args.only, name)]
    if not names:
        print(f"nightly.py: no environment fits {args.only!r}", file=sys.stderr)
        return 3
    jobs = []
    for tier, runner, options in (
        # "*" selects every case, slow cases included.
        ("cpu", HOSTED, "--device none *"),
        ("gpu", ["self-hosted", args.runner], "-a native *"),
    ):
        for number in range(1, args.shards + 1):
            part = f"--shard {number}/{args.shards} " if args.shards > 1 else ""
            job = {"tier": tier, "shard": number, "runner": runner, "options": part + options}
            jobs.append({**job, "environments": ",".join(names)})
    print(json.dumps({"include": jobs}))
    return 0


def run(args: argparse.Namespace) -> int:
    """Run environments; return 1 if an environment did not finish. `judge` handles cells that are not as expected."""
    failed = False
    for name in filter(None, args.environments.split(",")):
        before = nights.last_run(Path("reports"), name)
        subprocess.run(["tox", "run", "-e", name, "--", *args.options])
        problem = nights.unfinished(Path("reports"), name, before)
        if problem:
            print(f"nightly.py: {problem}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


def fuzz(args: argparse.Namespace) -> int:
    """Read damaged records, plans, Parquet, case files, conditions, logs and replies with all readers, with another seed each night."""
    done = subprocess.run(
        [sys.executable, "tests/fuzz/fuzz.py", "--seconds", str(args.seconds), "--seed", args.seed],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    print(done.stdout, end="")
    said = [line for line in done.stdout.splitlines() if " mutations of seed " in line]
    _write(["", "Fuzzed: " + ("; ".join(said) or "nothing, it did not come to its end"), ""])
    return done.returncode


def collect(args: argparse.Namespace) -> int:
    """Merge the artifacts of the jobs (``records-TIER-SHARD/``) into ``night/TIER/``, and count them; return 3 if there are none."""
    expected = nights.planned(args.jobs)
    count = parts = 0
    for each in expected:
        folders = [args.artifacts / f"records-{each.tier}-{shard}" for shard in each.shards]
        came = [folder for folder in folders if nights.sent(folder, each.name)]
        if came and len(folders) > 1:
            nights.put_together(came, nights.NIGHT / each.tier, each.name)
        elif came:
            nights.copy(came[0], nights.NIGHT / each.tier, each.name)
        count += bool(came)
        parts += len(folders) - len(came) if came else 0
    lost = f", of which {parts} {'parts' if parts > 1 else 'part'} never came" if parts else ""
    _write([f"Records of {count} of {len(expected)} environments{lost}."])
    if not count:
        print("nightly.py: the night has no results at all", file=sys.stderr)
        return 3
    return 0


def judge(args: argparse.Namespace) -> int:
    """Compare every environment with its last night, and write the state to the step's output."""
    environments = nights.planned(args.jobs)
    others = nights.left(environments)
    if args.only:
        environments += others
    nights.look(environments)
    state = nights.state_of(environments)
    _write(["", f"**{state}**", "", *nights.told(environments, args.address)])
    if others and not args.only:
        _write([f"- No longer part of the night: {', '.join(map(str, others))}"])
    with open(os.environ.get("GITHUB_OUTPUT", os.devnull), "a") as file:
        file.write(f"state={state}\n")
    print(f"state={state}")
    return 0


def next_(args: argparse.Namespace) -> int:
    """Run the commands that the plan of the matrix proposes, new releases first; return 1 if a command left no records."""
    seconds = ("--next", str(COMMANDS), "--seconds", str(args.seconds))
    asked = ["cumatrix", "publish", *_matrices(), *seconds, "--watch", "--json"]
    done = subprocess.run(asked, capture_output=True, text=True)
    print(done.stderr, end="", file=sys.stderr)
    new = [line.removeprefix("cumatrix: ") for line in done.stderr.splitlines() if ": new on the index: " in line]
    if done.returncode not in (0, 3):  # 3: nothing is missing
        raise subprocess.CalledProcessError(done.returncode, asked)
    proposals = json.loads(done.stdout) if done.returncode == 0 else []
    lost = []
    for number, proposal in enumerate(proposals):
        out = NEXT / f"{number:03}.jsonl"
        # No check of the exit code: cells that are not as expected are answers, too.
        subprocess.run(["cumatrix", *proposal["argv"], "--out", str(out)])
        if not nights.sent(NEXT, out.stem):
            lost.append(" ".join(proposal["argv"]))
    new += _new_wheels()
    cells = sum(proposal["cells"] for proposal in proposals)
    _write([f"{cells:,} missing cells of the plan in {len(proposals)} commands.", "", *(f"- {line}" for line in new)])
    _write([f"- no records: `cumatrix {command}`" for command in lost])
    return 1 if lost else 0


def _new_wheels() -> list[str]:
    """Read the wheels of new releases into next/wheels; return a sentence for each wheel, readable or not."""
    if not (PUBLISHED / WHEELS).is_file():
        return []
    folder = NEXT / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    known = [path for each in _matrices() if (path := Path(each) / WHEELS).is_file()]
    for path in (PUBLISHED / "plan.toml", known[-1]):
        shutil.copy(path, folder)
    done = subprocess.run(["cumatrix", "publish", "--wheels", "--out", str(folder)], capture_output=True, text=True)
    print(done.stderr, end="", file=sys.stderr)
    told = [line.removeprefix("cumatrix: ") for line in done.stderr.splitlines() if line.startswith("cumatrix: ")]
    return told if done.returncode in (0, 4) else [*told, f"cumatrix publish --wheels exited with {done.returncode}"]


def _matrices() -> list[str]:
    return [str(folder) for folder in (PUBLISHED, nights.BEFORE / "matrix") if folder.is_dir()]


def extend(_: argparse.Namespace) -> int:
    """Merge the published matrix, the matrix of the last night, and the cells that this night compiled without a device."""
    more = [str(NEXT)] if list(NEXT.glob("*.jsonl")) else []
    _cumatrix("publish", *_matrices(), str(nights.NIGHT / "cpu"), *more, "--out", str(nights.AFTER / "matrix"))
    folders = (*map(Path, _matrices()), NEXT / "wheels")
    if wheels := [path for folder in folders if (path := folder / WHEELS).is_file()]:
        shutil.copy(wheels[-1], nights.AFTER / "matrix")
    return 0


def page(args: argparse.Namespace) -> int:
    """Add the night to the history, and build the page of night, history and the matrix of `extend`."""
    history, matrix = nights.AFTER / "history", nights.AFTER / "matrix"
    if (nights.BEFORE / "history").is_dir():
        shutil.copytree(nights.BEFORE / "history", history, dirs_exist_ok=True)
    _cumatrix("history", "add", str(nights.NIGHT), "--history", str(history), "--commit", args.commit)
    more = ["--address", args.address] if args.address else []
    more += ["--matrix", str(matrix)] if matrix.is_dir() else []
    _cumatrix("report", str(nights.NIGHT), "--history", str(history), "--out", "site", *more)
    return 0


def docs(_: argparse.Namespace) -> int:
    """Add the documentation of this commit, as ``dev``, and of the releases, from the branch `DOCS`, to the site."""
    fetch = ["git", "fetch", "-q", "--depth", "1", "origin", f"+{DOCS}:{DOCS}"]
    if subprocess.run(fetch, capture_output=True).returncode:
        print(f"nightly.py: there is no branch {DOCS} yet: no release has documentation")
    mike = ["mike", "-q", "{}", "--branch", DOCS, "--deploy-prefix", "docs"]
    # mike commits the built pages to the local branch.
    who = {f"GIT_{of}_{what}": "nightly" for of in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([word.format("deploy") for word in mike] + ["dev"], check=True, env=env)
    listed = subprocess.run(["git", "show", f"{DOCS}:docs/versions.json"], check=True, capture_output=True).stdout
    released = any("latest" in version["aliases"] for version in json.loads(listed))
    subprocess.run(
        [word.format("set-default") for word in mike] + ["latest" if released else "dev"], check=True, env=env
    )
    Path("site").mkdir(exist_ok=True)
    files = subprocess.run(["git", "archive", DOCS, "docs"], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        archive.extractall("site", filter="data")
    return 0


def issue(args: argparse.Namespace) -> int:
    """Open or update the issue, or close it if the night is fine; return 1 if the night is incomplete."""
    state = outcome(json.loads(args.needs))
    found = _gh("issue", "list", "--label", LABEL, "--state", "open", "--limit", "1", "--json", "number")
    number = next((str(item["number"]) for item in json.loads(found or "[]")), None)
    body = SUMMARY.read_text("utf-8") if SUMMARY.is_file() else "The night left no summary.\n"
    body = cut(f"{state}: {args.link}\n\n{body}")
    if state == "fine":
        if number:
            _gh("issue", "close", number, "--comment", body)
    elif number:
        _gh("issue", "edit", number, "--body", body)
        # Known failures get no further comment.
        if state != "failing":
            _gh("issue", "comment", number, "--body", body)
    else:
        _gh("label", "create", LABEL, "--force", "--description", "What the nightly run found not to be as expected")
        _gh("issue", "create", "--title", TITLE, "--label", LABEL, "--body", body)
    if "incomplete" in state or state == "no results":
        print(f"::error::the night ended with: {state}")
        return 1
    return 0


def outcome(needs: dict[str, Any]) -> str:
    """Return the state of the night from the results of the earlier jobs."""
    if needs["matrix"]["result"] != "success":
        return "no results"
    state: str = needs["matrix"]["outputs"]["state"]
    if needs["cells"]["result"] != "success" and "incomplete" not in state:
        return "incomplete" if state == "fine" else f"incomplete, {state}"
    return state


def cut(text: str, size: int = 60_000) -> str:
    """Cut a text at a line to at most `size` bytes: GitHub accepts 65,536 characters."""
    data = text.encode()
    if len(data) <= size:
        return text
    return data[:size].decode("utf-8", "ignore").rpartition("\n")[0] + "\n\n… cut: the rest is in the run's summary."


def _write(lines: list[str]) -> None:
    with open(SUMMARY, "a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _cumatrix(*argv: str) -> None:
    subprocess.run(["cumatrix", *argv], check=True)


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
    one = commands.add_parser("fuzz")
    one.set_defaults(call=fuzz)
    one.add_argument("--seconds", type=int, default=3600)
    one.add_argument("--seed", default=os.environ.get("GITHUB_RUN_ID", "0"))
    one = commands.add_parser("collect")
    one.set_defaults(call=collect)
    one.add_argument("artifacts", type=Path)
    one.add_argument("--jobs", required=True, metavar="JSON")
    one = commands.add_parser("judge")
    one.set_defaults(call=judge)
    one.add_argument("--jobs", required=True, metavar="JSON")
    one.add_argument(
        "--only", default="", metavar="REGEX", help="as for matrix: other environments keep their last night"
    )
    one.add_argument("--address", default="")
    one = commands.add_parser("next")
    one.set_defaults(call=next_)
    one.add_argument("--seconds", type=int, default=3600)
    one = commands.add_parser("extend")
    one.set_defaults(call=extend)
    one = commands.add_parser("page")
    one.set_defaults(call=page)
    one.add_argument("--commit", default=os.environ.get("GITHUB_SHA", ""))
    one.add_argument("--address", default="")
    commands.add_parser("docs").set_defaults(call=docs)
    one = commands.add_parser("issue")
    one.set_defaults(call=issue)
    one.add_argument("--needs", required=True, metavar="JSON", help="what GitHub calls needs")
    one.add_argument("--link", default="")
    args = parser.parse_args()
    try:
        code: int = args.call(args)
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError, re.error) as error:
        print(f"nightly.py: {error}", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
