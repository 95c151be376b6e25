"""The site of a night: the page, and the documentation of each version, from a local server."""

from __future__ import annotations

import functools
import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_documentation_of_a_release_and_of_this_commit_lie_next_to_the_page(tmp_path: Path) -> None:
    pytest.importorskip("mike")
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_MKDOCS_2_WARNING": "1"}
    env |= {f"GIT_{of}_{what}": "test" for of in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def run(*argv: str | Path, cwd: Path) -> None:
        done = subprocess.run(list(map(str, argv)), cwd=cwd, env=env, capture_output=True, text=True, timeout=800)
        assert done.returncode == 0, done.stdout + done.stderr

    run("git", "clone", "-q", "--no-hardlinks", ROOT, origin, cwd=tmp_path)
    mike = ["mike", "-q", "deploy", "--branch", "gh-pages", "--deploy-prefix", "docs", "--update-aliases"]
    run(*mike, "0.0.1", "latest", cwd=origin)  # as the release's workflow does
    run("git", "clone", "-q", origin, clone, cwd=tmp_path)
    (clone / "site").mkdir()
    (clone / "site" / "index.html").write_text("the page")
    (clone / "site" / "matrix.json").write_text("{}")
    run(sys.executable, ".ci/nightly.py", "docs", cwd=clone)

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(clone / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def get(path: str) -> str:
            address = f"http://127.0.0.1:{server.server_port}/{path}"
            return str(urllib.request.urlopen(address, timeout=60).read().decode())

        assert (get(""), get("matrix.json")) == ("the page", "{}")
        versions = json.loads(get("docs/versions.json"))
        assert {item["version"]: item["aliases"] for item in versions} == {"dev": [], "0.0.1": ["latest"]}
        assert "latest" in get("docs/")  # the redirection
        for version in ("dev", "0.0.1", "latest"):
            assert "<title>Install - cumatrix</title>" in get(f"docs/{version}/install/")
        assert '"provider": "mike"' in get("docs/dev/")
        server.shutdown()
