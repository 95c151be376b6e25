"""Messages of Numba shortened to the error, from Numba's own logs."""

from __future__ import annotations

import pytest

from harness.diagnostics import parse_log, place_of, telling_part, tells_most

CANDIDATE = """\
TypingError: Failed in cuda mode pipeline (step: nopython frontend)
No implementation of function Function(<function sort at 0x7f4496566b60>) found for signature:

 >>> sort(array(float64, 1d, C))

There are 2 candidate implementations:
  - Of which 2 did not match due to:
  Overload in function 'impl_np_sort': File: numba/np/arrayobj.py: Line 6423.
    With argument(s): '(array(float64, 1d, C))':
   Rejected as the implementation raised a specific error:
     NumbaTypeError: Failed in cuda mode pipeline (step: nopython frontend)
   Only accept returning of array passed into the function as argument
  raised from /e/lib/python3.11/site-packages/numba/core/typed_passes.py:157

During: resolving callee type: Function(<function sort at 0x7f4496566b60>)
During: typing of call at b.py (6)


File "b.py", line 6:
def k(x):
    x[i] = np.sort(x)[0]
    ^
"""
TYPES = """\
TypingError: Failed in cuda mode pipeline (step: nopython frontend)
Failed in cuda mode pipeline (step: nopython frontend)
No implementation of function Function(<class 'numba.cuda.stubs.shfl_sync_intrinsic'>) found for signature:

 >>> shfl_sync_intrinsic(Literal[int](1), array(float64, 1d, C))

There is 1 candidate implementation:
    - Of which 1 did not match due to:
    Type Restricted Function in function 'shfl_sync_intrinsic': File: unknown: Line unknown.
      With argument(s): '(int64, array(float64, 1d, C))':
     No match for registered cases:
      * (int32, int32) -> Tuple(int32, bool)

File "../e/lib/python3.11/site-packages/numba/cuda/intrinsic_wrapper.py", line 48:
def shfl_sync(mask, value, src_lane):
    ^

File "e.py", line 6:
"""
LOWERING = """\
NumbaNotImplementedError: Failed in cuda mode pipeline (step: native lowering)
Cannot cast Literal[str](a) to float64: i8* null
During: lowering "$58call.7 = call $26load_method.3(x)" at d.py (5)
"""


@pytest.mark.parametrize(
    ("log", "said", "place"),
    [
        (
            CANDIDATE,
            "TypingError: No implementation of function Function(<function sort>) found for signature: >>> sort(array(float64, 1d, C)): Only accept returning of array passed into the function as argument",
            ("b.py", 6),
        ),
        (
            TYPES,
            "TypingError: No implementation of function Function(<class 'numba.cuda.stubs.shfl_sync_intrinsic'>) found for signature: >>> shfl_sync_intrinsic(Literal[int](1), array(float64, 1d, C))",
            ("e.py", 6),
        ),
        (LOWERING, "NumbaNotImplementedError: Cannot cast Literal[str](a) to float64: i8* null", ("d.py", 5)),
    ],
    ids=["what a candidate said", "types", "lowering"],
)  # fmt: skip
def test_what_is_wrong_comes_first_and_its_place_is_the_programs(log: str, said: str, place: tuple[str, int]) -> None:
    message = parse_log(log)[0].message
    assert tells_most(message, log) == said
    # A summary has only this part of the log, and gives the same result.
    part = telling_part(message, log)
    assert len(part) < len(log)
    assert (tells_most(message, part), place_of(part)) == (said, place)


@pytest.mark.parametrize(
    "message", ["incomplete type is not allowed", "TypeError: Signature mismatch", "LLVM ERROR: x"]
)
def test_other_messages_stay(message: str) -> None:
    assert (tells_most(message, CANDIDATE), telling_part(message, CANDIDATE)) == (message, "")


def test_a_hostile_log_takes_no_time() -> None:
    """The tests measure no time: pytest-timeout ends a test that hangs."""
    message = "TypingError: Failed in cuda mode pipeline (step: x) No implementation of function f found"
    logs = (
        "TypingError: " + "Failed in cuda mode pipeline (step: " * 2000,
        "During: " + " at a" * 20000,
        'File "' + "a" * 60000,
    )
    for log in logs:
        assert tells_most(message, f"{log}\n" * 3) == "TypingError: No implementation of function f found"
        assert place_of(f"{log}\n" * 3) is None
