"""Completion with each shell's own interface."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
PAGE = (Path(__file__).parents[2] / "docs" / "completion.md").read_text()
LISTED = 'zstyle ":completion:*" menu no; LISTMAX=9999; bindkey "^I" list-choices; unset zle_bracketed_paste; PS1="> "'


def documented(shell: str) -> str:
    """Return the line for a start-up file."""
    found = re.search(rf"^\| {shell}[^|]* \| `([^`]*)` \|", PAGE.replace(r"\|", "¦"), re.MULTILINE)
    assert found is not None
    return found[1].replace("¦", "|")


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), "ZDOTDIR": str(folder), "TERM": "dumb",
        "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder),
        "CUMATRIX_HOME": os.environ.get("CUMATRIX_HOME", str(Path.home() / ".local/share/cumatrix")),
    }  # fmt: skip


def asked(folder: Path, *argv: str) -> str:
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=100, check=True, env=environment(folder)
    )
    assert done.stderr == ""
    return done.stdout


def bash(folder: Path, *words: str) -> set[str]:
    """Return the completions of the function that the documented line defines."""
    script = (
        f'{documented("bash")}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_cumatrix_completion cumatrix "${!#}" ""; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return set(asked(folder, "bash", "-c", script, "bash", "cumatrix", *words).split())


def fish(folder: Path, *words: str) -> set[str]:
    """Return fish's list; a tab separates descriptions."""
    said = asked(folder, "fish", "-c", f"{documented('fish')}; complete -C $argv[1]", " ".join(("cumatrix", *words)))
    return {line.partition("\t")[0] for line in said.splitlines()}


def zsh(folder: Path, *words: str) -> set[str]:
    """Return the lines that zsh prints below its prompt after Tab, in a terminal."""
    (folder / ".zshrc").write_text(
        f"autoload -U compinit; compinit -u -D\n{documented('zsh')}\n{LISTED}\nprint READY\n"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe("zsh", ["zsh", "-i"], environment(folder))
    typed = " ".join(("cumatrix", *words))
    try:
        _read(terminal, "READY.*> ")
        os.write(terminal, f"{typed}\t".encode())
        # zsh prints the list below the line, and repeats the line.
        said = _read(terminal, rf"{re.escape(typed)}[^\n]*\n(.*)\n> ")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return set(said.split())


def _read(terminal: int, until: str) -> str:
    text, end = "", time.monotonic() + 30
    while time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            text += os.read(terminal, 65536).decode("utf-8", "replace")
        if found := re.search(until, re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", text), re.DOTALL):
            return found[found.lastindex or 0]
    raise AssertionError(f"{until!r} never came: {text!r}")


SHELLS = [
    pytest.param(ask, marks=pytest.mark.skipif(not shutil.which(ask.__name__), reason=f"no {ask.__name__} here"))
    for ask in (bash, zsh, fish)
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("words", "some", "none"),
    [
        (("tool",), {"toolkits"}, {"try"}),
        (("try", "k.cu", "-b", "nvrtc,n"), {"nvrtc,nvcc", "nvrtc,numba"}, {"nvrtc,nvrtc", "nvrtc"}),
        (("run", "-t", "12.4..13"), {"12.4..13.0"}, {"12.4..12.9"}),
        (("run", "-a", "sm_8"), {"sm_80", "sm_89"}, {"sm_90"}),
        (("try", "k.cu", "--with", "cu"), {"cupy="}, {"numba="}),
        (("toolkits", "install", "12.9"), {"12.9"}, {"13.0"}),
        (("run", "wm"), {"wmma"}, {"wmma/one"}),
        (("run", "wmma/"), {"wmma/one", "wmma/two"}, {"other"}),
    ],
)
def test_a_shell_offers_what_could_stand_there(
    tmp_path: Path, shell: object, words: tuple[str, ...], some: set[str], none: set[str]
) -> None:
    assert callable(shell)
    for name in ("wmma/one", "wmma/two", "other/three"):
        (tmp_path / "cases" / name).mkdir(parents=True)
        (tmp_path / "cases" / name / "case.toml").write_text("")
    found = shell(tmp_path, *words)
    assert some <= found
    assert not none & found
