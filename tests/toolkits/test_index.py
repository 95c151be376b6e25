"""The index that uv uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.toolkits.download import index_called, index_settings

MIRROR = "https://mirror.example/simple"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a user without settings."""
    return {
        "HOME": str(tmp_path),
        "XDG_CONFIG_DIRS": str(tmp_path / "machine"),
        "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
    }


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_variables_of_pip(environ: dict[str, str]) -> None:
    given = {
        "PIP_INDEX_URL": MIRROR,
        "PIP_EXTRA_INDEX_URL": "https://a.example  https://b.example",
        "PIP_CERT": "/ca.pem",
    }
    variables, options = index_settings({**environ, **given})
    assert {
        name: variables[name] for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_STRATEGY", "SSL_CERT_FILE")
    } == {
        "UV_DEFAULT_INDEX": MIRROR,
        "UV_INDEX": "https://a.example https://b.example",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/ca.pem",
    }
    assert options == []


def test_files_of_pip(environ: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / ".config" / "pip" / "pip.conf", "[global]\nindex-url = https://other.example\nno-index = true\n")
    write(tmp_path / "pip.conf", f"[install]\nindex-url = {MIRROR}\nfind-links =\n  /wheels\n  /more%20wheels\n")
    variables, options = index_settings(environ)
    assert variables["UV_DEFAULT_INDEX"] == MIRROR  # the named file takes precedence
    assert variables["UV_FIND_LINKS"] == "/wheels,/more%20wheels"
    assert options == ["--no-index"]
    assert (
        index_settings({**environ, "PIP_INDEX_URL": "https://x.example"})[0]["UV_DEFAULT_INDEX"] == "https://x.example"
    )


def test_no_settings_of_pip_are_read_where_it_reads_none(environ: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / ".config" / "pip" / "pip.conf", f"[global]\nindex-url = {MIRROR}\n")
    assert index_settings({**environ, "PIP_CONFIG_FILE": "/dev/null"}) == ({}, [])


@pytest.mark.parametrize("name", ["UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "UV_CONFIG_FILE"])
def test_what_is_configured_for_uv_comes_first(environ: dict[str, str], name: str) -> None:
    assert index_settings({**environ, "PIP_INDEX_URL": MIRROR})[0]
    assert index_settings({**environ, "PIP_INDEX_URL": MIRROR, name: "https://uv.example"}) == ({}, [])


@pytest.mark.parametrize("text", ['index-url = "x"', '[[index]]\nurl = "x"', '[pip]\nextra-index-url = ["x"]'])
@pytest.mark.parametrize("place", [".config/uv/uv.toml", "machine/uv/uv.toml"])
def test_an_index_in_a_uv_toml_of_the_user_comes_first(
    environ: dict[str, str], tmp_path: Path, place: str, text: str
) -> None:
    environ["PIP_INDEX_URL"] = MIRROR
    write(tmp_path / place, 'cache-dir = "/cache"\n')
    assert index_settings(environ)[0]["UV_DEFAULT_INDEX"] == MIRROR
    write(tmp_path / place, text)
    assert index_settings(environ) == ({}, [])
    assert index_settings({**environ, "UV_NO_CONFIG": "1"})[0]["UV_DEFAULT_INDEX"] == MIRROR


@pytest.mark.parametrize("text", ["index-url", "[global", "[global]\nindex-url", "\x00", "[install]\n[install]\n"])
def test_a_file_that_cannot_be_read_says_nothing(environ: dict[str, str], tmp_path: Path, text: str) -> None:
    before = index_settings(environ)
    write(tmp_path / "pip.conf", text)
    write(tmp_path / ".config" / "uv" / "uv.toml", "index-url = ")
    assert index_settings(environ) == before


def test_messages_name_the_index_without_its_password(environ: dict[str, str]) -> None:
    assert index_called(environ) == "PyPI"
    environ["UV_EXTRA_INDEX_URL"] = "https://me:secret@wheels.example.org/simple"
    assert index_called(environ) == "wheels.example.org and PyPI"
    environ["UV_DEFAULT_INDEX"] = "file:///srv/wheels"
    assert index_called(environ) == "wheels.example.org and file:///srv/wheels"
