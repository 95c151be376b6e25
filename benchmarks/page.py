"""Measure the page with many cells: building it from Parquet, loading it, and filtering it in a headless Chromium.

``python benchmarks/page.py [--cells 100000] [--json page.json]``. The records are generated (made_up.py). See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from made_up import made_up, made_up_plan

from harness.records import this_machine
from harness.records.parquet import results_parquet
from harness.report.build import build_report

AIMS = {"build_s": 15.0, "first_load_bytes": 3_000_000, "usable_ms": 2000.0, "filter_ms": 100.0}
"""What 100,000 cells may cost."""

QUERIES = (
    *('backend == "numba"', 'status == "rejected"', "not expected", 'cc >= "8.0" and status != "built"'),
    *('"wmma/" in case', "overloaded function f12", '"f299" in message', "registers > 100"),
    *('"wmma" in text or "numba" in text', 'toolkit >= "12.9" and library == "13.*"'),
)

_BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

_WATCH = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("#viewport tbody td")) return;
  observer.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => (window.usable = performance.now())));
}).observe(document, { subtree: true, childList: true });
"""

# Time from the keystroke until the next frame is drawn.
_FILTER = """async (query) => {
  const input = document.getElementById("q");
  const before = location.hash;
  const start = performance.now();
  input.value = query;
  input.dispatchEvent(new Event("input"));
  while (location.hash === before) await new Promise((go) => setTimeout(go, 0));
  await new Promise((go) => requestAnimationFrame(() => setTimeout(go, 0)));
  return performance.now() - start;
}"""


def main() -> int:
    options = _arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        records = list(made_up(options.cells))
        (folder / "results.parquet").write_bytes(results_parquet(records, [made_up_plan(records)]))
        del records
        result: dict[str, Any] = {"cells": options.cells, "machine": this_machine(), **_build(folder, options.rounds)}
        if not options.no_browser:
            result |= _browse(folder / "html", options.rounds)
    for name, aim in AIMS.items():
        if name in result:
            told = "" if options.cells != 100_000 else f" (aim {aim:,.0f}{'' if result[name] <= aim else ': MISSED'})"
            print(f"{name:18} {result[name]:>12,.1f}{told}")
    print(f"processor time of the two processes that build, s: {result['build_processor_all_s']}")
    for query, milliseconds in result.get("filters", {}).items():
        print(f"  {query:45} {milliseconds:6.0f} ms")
    print(f"\nrepeat with: {' '.join(['python', 'benchmarks/page.py', *sys.argv[1:]])}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def _build(folder: Path, rounds: int) -> dict[str, Any]:
    times = []
    processor = []
    for _ in range(rounds):
        start, before = time.perf_counter(), os.times()
        build_report([folder / "results.parquet"], folder / "html")
        times.append(time.perf_counter() - start)
        own, child = before[0] + before[1], before[2] + before[3]
        after = os.times()
        processor.append((after[0] + after[1] - own, after[2] + after[3] - child))
    html = folder / "html"
    first = [html / "matrix.html", html / "data" / "matrix.js", *(html / "assets").iterdir()]
    every = [path for path in html.rglob("*") if path.is_file()]
    return {
        "build_s": min(times),
        "build_all_s": times,
        "build_processor_s": min(max(pair) for pair in processor),
        "build_processor_all_s": processor,
        "first_load_bytes": sum(path.stat().st_size for path in first),
        "largest_data_bytes": max(path.stat().st_size for path in (html / "data").iterdir()),
        "site_bytes": sum(path.stat().st_size for path in every),
        "site_files": len(every),
    }


def _browse(html: Path, rounds: int) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    browser_path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser_path is None:
        print("no Chromium on the PATH: nothing is measured in a browser", file=sys.stderr)
        return {}
    usable: list[float] = []
    filters: dict[str, list[float]] = {query: [] for query in QUERIES}
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for _ in range(rounds):
            context = chromium.new_context(viewport={"width": 1500, "height": 1000}, bypass_csp=True)
            page = context.new_page()
            page.add_init_script(_WATCH)
            page.goto(f"{html.as_uri()}/matrix.html")
            page.wait_for_function("window.usable")
            usable.append(page.evaluate("window.usable"))
            page.wait_for_timeout(2000)
            for query in QUERIES:
                filters[query].append(page.evaluate(_FILTER, query))
                # Wait as a reader does; the browser draws the rest of the page in that time.
                page.wait_for_timeout(700)
            context.close()
        chromium.close()
    medians = {query: statistics.median(times) for query, times in filters.items()}
    return {
        "usable_ms": statistics.median(usable),
        "filter_ms": max(medians.values()),
        "filters": medians,
        "usable_all_ms": usable,
        "filters_all_ms": filters,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-browser", action="store_true", help="Measure building only.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Keep every measurement.")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
