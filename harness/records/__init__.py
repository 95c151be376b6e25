"""Records: one JSON object for each cell, the plan, and merging of several runs."""

from harness.records.failures import again_command, builds_of, not_repeatable, repro_command
from harness.records.make import expected_json, make_record
from harness.records.merge import (
    Conflict,
    Merged,
    agreement_key,
    at_stage,
    failed_at,
    merge,
    spell_other_result,
    weight,
    write_merged,
)
from harness.records.plan import make_plan, plan_path, read_plans, this_commit, this_machine
from harness.records.record import SCHEMA, Record, RecordError
from harness.records.store import RecordWriter, Results, read_records

__all__ = [
    "SCHEMA",
    "Conflict",
    "Merged",
    "Record",
    "RecordError",
    "RecordWriter",
    "Results",
    "again_command",
    "agreement_key",
    "at_stage",
    "builds_of",
    "expected_json",
    "failed_at",
    "make_plan",
    "make_record",
    "merge",
    "not_repeatable",
    "plan_path",
    "read_plans",
    "read_records",
    "repro_command",
    "spell_other_result",
    "this_commit",
    "this_machine",
    "weight",
    "write_merged",
]
