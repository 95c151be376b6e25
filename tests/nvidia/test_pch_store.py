"""What is known of NVRTC's builtin headers."""

from __future__ import annotations

import random
import re

from harness.nvidia import pch_store


def test_texts_in_a_library() -> None:
    numbers = random.Random(9)
    pieces = [
        b"\0" * 3,
        b"\xff\x80",
        *(bytes(numbers.choices(b" #abc\t\n~", k=length)) for length in (1, 199, 200, 201, 5000)),
    ]
    for _ in range(200):
        data = b"".join(numbers.choices(pieces, k=numbers.randrange(9)))
        assert pch_store._texts_in(data) == re.findall(rb"[\t\n\v\f\r -~]{200,}", data)
