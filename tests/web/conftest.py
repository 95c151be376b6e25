"""Servers of a test, and no settings of the user."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from toolkits.conftest import no_settings

from web.servers import Answer, Server

__all__ = ["no_settings"]


@pytest.fixture
def serve(no_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    """Start a server; all servers end with the test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "*")
    servers: list[Server] = []

    def start(reply: Answer, context: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(reply, context))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
