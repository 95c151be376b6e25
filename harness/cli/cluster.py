"""``--dask``: cells on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import click

from harness.cli.install import install_for
from harness.engine.cluster import Cluster
from harness.engine.context import RunContext
from harness.engine.install import with_made
from harness.engine.session import Request
from harness.model import Cell


def dask_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--dask``."""
    return click.option(
        "--dask",
        envvar="CUMATRIX_DASK",
        metavar="ADDRESS",
        help="Compile on the workers of a Dask cluster: tcp://host:8786, a scheduler's file (scheduler.json), or local:4, which starts four worker processes on this machine. Each worker installs what its cells need. See docs/cluster.md.",
    )(command)


def cluster_for(place: str | None, jobs: int | None, stack: ExitStack) -> Cluster | None:
    """The cluster that is named, which is left when `stack` ends; None where none is."""
    return stack.enter_context(Cluster(place, jobs)) if place else None


def with_devices(context: RunContext, cluster: Cluster | None, device: str) -> RunContext:
    """The context with the devices of the machines that compile."""
    return replace(context, devices=cluster.devices(device)) if cluster else context


def ready_for(cells: Sequence[Cell], context: RunContext, cluster: Cluster | None, request: Request) -> RunContext:
    """Install here what the cells need, or tell the cluster what they are; the context that they are run with."""
    if cluster is None:
        return install_for(cells, context, offline=request.offline)
    cluster.begin(context, cells, device=request.device, offline=request.offline)
    return with_made(context)
