"""Messages: encoding and decoding are inverse, and invalid messages are rejected."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.protocol import messages
from harness.protocol.codec import Message, WireError

JOB = messages.CellJob(
    cell="a/b nvrtc cuda12.4 sm_80",
    source=Path("/somewhere/kernel.cu"),
    entries={"k": "void(float32[:])"},
    definitions={"N": 4, "NAME": "x", "FLAG": True, "SCALE": 0.5},
    target="sm_80",
    options={"arch": "given", "flags": ["-G"], "rdc": True},
    include=["/include"],
    launches=[
        messages.LaunchSpec(
            "k", [1, 1, 1], [32, 1, 1], 0, False, True,
            [messages.ArgumentSpec("out", "float32", [32], "zeros", 0, None), messages.ArgumentSpec("n", "int32", None, 0.5, 0, 32)],
            messages.CheckSpec("/reference.py", 1e-3, 0.0),
        )
    ],
)  # fmt: skip
SETUP = messages.Setup(Path("/cuda"), "12.4", "12.4", ["/cuda/include"], Path("/tools"))
ORDER = messages.Order(
    JOB, Path("/scratch"), messages.Limits(rlimits={"stack": 1 << 20}), device={"name": "x", "more": [1, None]}
)
MESSAGES: list[Message] = [
    JOB,
    SETUP,
    ORDER,
    messages.Rehearsal(SETUP, ORDER),
    messages.Ready(
        observed={"nvrtc": "12.4", "headers": {"cudart": "12.4"}}, architectures=[50], reads=["R 1 /a\udcff"]
    ),
    messages.Exit(None, 11, False, 1.5, 2, "printed \ud800", 9, 1 << 30, None),
    messages.Reply(
        "built",
        stages=["compile"],
        artifact=messages.Product("/a", "ptx", [messages.Product("/b", "ptx")], names={"k": "f"}),
    ),
    messages.Interpreter("3.11.7", {"numba": messages.Distribution("0.59.1", ["llvmlite"], False)}),
    messages.Driver([messages.DeviceProperties("NVIDIA H200", "9.0", 1 << 40, 132, 232448, True)], driver="580.1"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_what_goes_out_comes_in_again(message: Message) -> None:
    line = message.to_line()
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    again = type(message).from_line(line)
    assert again == message
    assert {field.name: type(getattr(again, field.name)) for field in dataclasses.fields(again)} == {  # type: ignore[arg-type]
        field.name: type(getattr(message, field.name))
        for field in dataclasses.fields(message)  # type: ignore[arg-type]
    }
    assert pickle.loads(pickle.dumps(message)) == message


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (messages.Reply, [], "Reply: not a table but []"),
        (messages.Reply, {}, "Reply: status is missing"),
        (messages.Reply, {"status": "built", "odd": 1}, "Reply: unknown field 'odd'"),
        (messages.Reply, {"status": "built", "signal": "x"}, "Reply.signal: not int but 'x'"),
        (messages.Reply, {"status": "built", "signal": True}, "Reply.signal: not int but True"),
        (messages.Reply, {"status": "built", "seconds": float("inf")}, "Reply.seconds: not a number but inf"),
        (messages.Reply, {"status": "built", "seconds": 10**400}, "Reply.seconds: does not fit into 64 bits"),
        (messages.Reply, {"status": "built", "seconds": True}, "Reply.seconds: not a number but True"),
        (messages.Reply, {"status": "built", "signal": 2**63}, "Reply.signal: does not fit into 64 bits"),
        (
            messages.Reply,
            {"status": "built", "observed": {"x": [2**64]}},
            "Reply.observed.x: does not fit into 64 bits",
        ),
        (messages.Reply, {"status": "built", "notes": ["a", 2]}, "Reply.notes[1]: not str but 2"),
        (messages.Reply, {"status": "built", "artifact": {"path": 1}}, "Reply.artifact.path: not str but 1"),
        (messages.Driver, {"devices": [{"name": "x"}]}, "Driver.devices[0]: compute_capability is missing"),
        (
            messages.Interpreter,
            {"python": "3.11", "distributions": {"numba": {"version": None}}},
            "Interpreter.distributions.numba.version: not str but None",
        ),
        (messages.CellJob, {**JOB.to_json(), "options": {"odd": 1}}, "CellJob.options: unknown field 'odd'"),
        (messages.CellJob, {**JOB.to_json(), "options": {"rdc": "yes"}}, "CellJob.options.rdc: not bool but 'yes'"),
        (messages.CellJob, {**JOB.to_json(), "definitions": {"N": None}}, "CellJob.definitions.N: not "),
    ],
)
def test_what_is_wrong_is_named_with_its_place(kind: type[Message], value: Any, words: str) -> None:
    with pytest.raises(WireError) as error:
        kind.from_json(value)
    assert str(error.value).startswith(words)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(MESSAGES), st.data())
def test_a_message_with_any_value_in_any_place_is_read_or_refused(message: Message, data: st.DataObject) -> None:
    value = message.to_json()
    name = data.draw(st.sampled_from(sorted(value)))
    value[name] = data.draw(json_values)
    try:
        again = type(message).from_line(json.dumps(value))
    except WireError:
        return
    assert type(message).from_json(again.to_json()) == again


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        messages.Reply.from_line(line)
