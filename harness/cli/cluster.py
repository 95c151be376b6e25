"""``--dask``: cells on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from harness.cli.chosen import Chosen
from harness.cli.install import install_for
from harness.engine.cluster import Cluster
from harness.engine.context import RunContext
from harness.engine.install import with_made


def cluster_for(place: str | None, jobs: int | None, stack: ExitStack) -> Cluster | None:
    """The cluster that is named, which is left when `stack` ends; None where none is."""
    return stack.enter_context(Cluster(place, jobs)) if place else None


def ready_for(chosen: Chosen, cluster: Cluster | None, options: Mapping[str, Any]) -> RunContext:
    """Install here what the cells need, or tell the cluster what they are; the context that they are run with."""
    if cluster is None:
        return install_for(chosen.cells, chosen.context, offline=options["offline"])
    cluster.begin(chosen.context, chosen.cells, device=options["device"], offline=options["offline"])
    return with_made(chosen.context)
