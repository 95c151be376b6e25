"""Parts of runs that were shared out (``--shard 2/5``): which of them is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.records.plan import Plan


def missing_shards(plans: Iterable[Plan]) -> list[str]:
    """A sentence for each sharded run with missing parts."""
    runs: dict[tuple[str, int, str], set[int]] = {}
    for plan in plans:
        if shard := plan.get("shard"):
            runs.setdefault((shard["whole"], shard["of"], plan["environment"]), set()).add(shard["number"])
    together = Counter((of, environment) for _, of, environment in runs)
    sentences = []
    for (_, of, environment), there in sorted(runs.items()):
        missing = [str(number) for number in range(1, of + 1) if number not in there]
        if missing:
            parts = f"part {missing[0]}" if len(missing) == 1 else f"parts {', '.join(missing)}"
            other = ""
            if together[of, environment] > 1:
                other = "; other parts were made of other cells, or with another --costs: every part has to be given the same"
            sentences.append(f"{parts} of {of} of the run in {environment} never arrived (--shard){other}")
    return sentences
