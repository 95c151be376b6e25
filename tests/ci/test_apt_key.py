"""`.ci/apt_key`: a repository's keyring has exactly the pinned key."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "apt_key"


def gpg(home: Path, *words: str) -> str:
    done = subprocess.run(
        ["gpg", "--homedir", str(home), "--batch", *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def fingerprints(listing: str) -> list[str]:
    return [line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:")]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    yield home
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True, timeout=60)


@pytest.mark.skipif(not (shutil.which("gpg") and shutil.which("curl")), reason="needs gpg and curl")
def test_only_the_pinned_key_is_in_the_keyring(tmp_path: Path, home: Path) -> None:
    for name in ("pinned", "other"):
        gpg(home, "--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never")
    pinned, other = fingerprints(gpg(home, "--with-colons", "--list-keys"))
    gpg(home, "--output", str(tmp_path / "keys"), "--export")
    address = (tmp_path / "keys").as_uri()

    made = subprocess.run([SCRIPT, address, pinned], capture_output=True, check=False, timeout=60)
    assert made.returncode == 0, made.stderr
    (tmp_path / "keyring").write_bytes(made.stdout)
    assert fingerprints(gpg(home, "--with-colons", "--show-keys", str(tmp_path / "keyring"))) == [pinned]

    wrong = f"{other[:-1]}{'0' if other[-1] != '0' else '1'}"
    refused = subprocess.run([SCRIPT, address, wrong], capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.endswith(f"has no key with the fingerprint {wrong}\n")
