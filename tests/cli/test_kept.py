from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from made_up import made_up

from harness.cli.execute import KeptRecords
from harness.matrix.marks import kind_of

UNREAD = {"title", "features", "links", "toolchain", "command", "device"}


def test_records_come_back_with_what_a_summary_reads() -> None:
    records = [{**record, "log": "x" * 5000} for record in made_up(60)]
    records[5].update(status="rejected", verdict="fail")
    records[7]["reason"] = "\udcff \U0001f600 \0"
    kept = KeptRecords()
    for record in records:
        kept.append(record)  # type: ignore[arg-type]
    bare = [
        {
            key: value if key != "log" else "" if kind_of(record).as_expected else "x" * 4000
            for key, value in record.items()
            if key not in UNREAD or not kind_of(record).as_expected
        }
        for record in records
    ]
    assert len({len(record) for record in bare}) == 2, "records of both kinds"
    assert list(kept) == bare == kept[:]
    assert len(kept) == 60 and kept[0] == bare[0] and kept[-1] == bare[-1] and bare[5] in kept
    assert list(reversed(kept)) == bare[::-1]


def test_there_may_be_none() -> None:
    assert not KeptRecords() and list(KeptRecords()) == []


def test_they_are_small() -> None:
    kept = KeptRecords()
    for record in made_up(2000):
        kept.append(record)
    assert sum(map(sys.getsizeof, kept._packed)) < 2000 * 500
