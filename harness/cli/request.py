"""From the options that commands share to what is asked to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.cli.where import where_of
from harness.engine.header_axis import Finder
from harness.engine.session import Request
from harness.protocol.wire import Limits


def request_of(options: Mapping[str, Any], **more: Any) -> Request:
    """The request that the shared options make, with a command's own fields."""
    return Request(
        backends=options["backends"],
        toolkits=options["toolkits"],
        targets=options["targets"],
        where=where_of(options["where"], options["words"]),
        python=options["python"],
        environment=options["environment"],
        require=tuple(options["require"]),
        cache=not options["no_cache"],
        limits=Limits(seconds=options["timeout"], memory=options["memory"], rlimits=dict(options["rlimits"])),
        memory=options["total_memory"],
        device=options["device"],
        sanitize=options["sanitize"],
        headers=tuple(options["header_libraries"]),
        finder=Finder(offline=options["offline"]),
        libraries=tuple(options["libraries"]),
        offline=options["offline"],
        trace=options["trace"],
        earlier=tuple(options["earlier"]),
        executor=options["executor"],
        host_compilers=tuple(options["host_compilers"]),
        artifacts=options["keep_artifacts"],
        **more,
    )
