"""Conversion of dataclasses to JSON and back; each value is checked against its field's type.

The module uses the standard library only. It unpickles nothing, and validates all input: a worker runs programs that
may write arbitrary data.
"""

from __future__ import annotations

import ast
import json
import math
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin

if TYPE_CHECKING:
    from typing import Self


__all__ = ["UNIONS", "hints_of", "is_typeddict", "zipped"]

if TYPE_CHECKING or sys.version_info >= (3, 10):
    from types import UnionType
    from typing import get_type_hints, is_typeddict

    UNIONS: tuple[Any, ...] = (Union, UnionType)
    """Origins of union types."""

    def hints_of(cls: Any) -> dict[str, Any]:
        """Return the types of the fields of a class."""
        return get_type_hints(cls, include_extras=True)

else:
    from typing import _TypedDictMeta

    UNIONS = (Union,)

    class _Unions(ast.NodeTransformer):
        """Converts ``A | B``, which Python cannot evaluate before 3.10."""

        def visit_BinOp(self, node):  # noqa: ANN001, ANN202
            pair = ast.Tuple(elts=[self.visit(node.left), self.visit(node.right)], ctx=ast.Load())
            return ast.Subscript(value=ast.Name(id="Union", ctx=ast.Load()), slice=pair, ctx=ast.Load())

    def hints_of(cls):  # noqa: ANN001, ANN201
        found = {}
        for base in reversed(cls.__mro__):
            names = {**vars(sys.modules[base.__module__]), "Union": Union}
            for name, hint in vars(base).get("__annotations__", {}).items():
                text = getattr(hint, "__forward_arg__", hint)
                tree = ast.fix_missing_locations(_Unions().visit(ast.parse(text, mode="eval")))
                found[name] = eval(compile(tree, "<annotation>", "eval"), names)  # noqa: S307 (cumatrix's own annotations)
        return found

    def is_typeddict(hint):  # noqa: ANN001, ANN201
        return isinstance(hint, _TypedDictMeta)


def zipped(*rows: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Return ``zip(..., strict=True)``, which requires Python 3.10.

    Raises
    ------
    ValueError
        If the rows have different lengths.
    """
    if len(set(map(len, rows))) > 1:
        raise ValueError(f"rows of {', '.join(str(len(row)) for row in rows)} items belong together")
    return zip(*rows)  # noqa: B905 (as above)


JsonValue = Annotated[Any, "json"]
"""Any JSON value."""

Scalar = Union[str, bool, int, float]  # noqa: UP007 (workers run in Python 3.9 as well, which has no |)
"""The values of a case's definitions: texts, booleans and numbers."""

_DEEPEST = 20
_LARGEST = 2**63
_SHOWN = 60


class WireError(ValueError):
    """A message has another form than agreed; the error names the field."""


class Message:
    """Base class of all messages between processes; subclasses are dataclasses."""

    def to_json(self) -> dict[str, Any]:
        """Return JSON values by field name."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    def to_line(self) -> bytes:
        """Return one line of JSON with its newline."""
        return json.dumps(self.to_json()).encode() + b"\n"

    @classmethod
    def from_json(cls, value: object, where: str = "") -> Self:
        """Create a message from a JSON value.

        Raises
        ------
        WireError
            If a field is missing, is unknown, or has another type.
        """
        where = where or cls.__name__
        if not isinstance(value, Mapping):
            raise WireError(f"{where}: not a table but {_shown(value)}")
        readers = _readers(cls)  # type: ignore[arg-type]  # a class is hashable
        unknown = [name for name in value if name not in readers]
        if unknown:
            raise WireError(f"{where}: unknown field {_shown(unknown[0])}")
        found = {}
        for name, (read, needed) in readers.items():
            if name in value:
                found[name] = read(value[name], f"{where}.{name}")
            elif needed:
                raise WireError(f"{where}: {name} is missing")
        return cls(**found)

    @classmethod
    def from_line(cls, line: bytes | str) -> Self:
        """Parse one line of JSON; raise `WireError` if it is invalid."""
        try:
            value = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise WireError(f"{cls.__name__}: not JSON: {str(error)[:_SHOWN]}") from None
        try:
            return cls.from_json(value)
        except RecursionError:  # messages may be nested to any depth
            raise WireError(f"{cls.__name__}: nested too deep") from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_json()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


Reader = Callable[[Any, str], Any]


@cache
def _readers(cls: Hashable) -> dict[str, tuple[Reader, bool]]:
    """Return a reader for each field of a message, and whether the field is required."""
    hints = hints_of(cls)
    if is_typeddict(cls):  # all of its keys are optional
        return {name: (_reader(hint), False) for name, hint in hints.items()}
    return {
        field.name: (_reader(hints[field.name]), field.default is MISSING and field.default_factory is MISSING)
        for field in fields(cls)  # type: ignore[arg-type]
    }


def _reader(hint: Any) -> Reader:
    if get_origin(hint) is Annotated:
        return _read_json
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in UNIONS:
        some = _choice([_reader(each) for each in arguments if each is not type(None)])
        # A present value is not checked against None, which would build an error message only to discard it.
        return (lambda value, where: None if value is None else some(value, where)) if type(None) in arguments else some
    if origin in (list, tuple) and arguments[0] is str:
        return _texts_of(origin)
    if origin in (list, tuple):
        return _list_of(_reader(arguments[0]), origin)
    if origin is not None and issubclass(origin, Mapping):
        return _table_of(_reader(arguments[1]))
    if is_dataclass(hint) and issubclass(hint, Message):  # type: ignore[arg-type]
        return cast("Reader", hint.from_json)  # type: ignore[union-attr]
    if is_typeddict(hint):
        return lambda value, where: _read_typed(hint, value, where)
    if hint is Path:
        return lambda value, where: Path(_of(str, value, where))
    if hint is float:
        return _read_float
    return lambda value, where: _of(hint, value, where)


def _of(kind: type, value: Any, where: str) -> Any:
    # bool is a subclass of int in Python, but true is not a number in JSON.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise WireError(f"{where}: not {kind.__name__} but {_shown(value)}")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise WireError(f"{where}: does not fit into 64 bits")
    return value


def _read_float(value: Any, where: str) -> float:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(_of(int, value, where))
    if not isinstance(value, float) or not math.isfinite(value):
        raise WireError(f"{where}: not a number but {_shown(value)}")
    return value


def _choice(readers: list[Reader]) -> Reader:
    def read(value: Any, where: str) -> Any:
        for reader in readers[:-1]:
            try:
                return reader(value, where)
            except WireError:
                continue
        return readers[-1](value, where)

    return read


def _list_of(reader: Reader, kind: type) -> Reader:
    def read(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            raise WireError(f"{where}: not a list but {_shown(value)}")
        return kind(reader(item, f"{where}[{index}]") for index, item in enumerate(value))

    return read


def _texts_of(kind: type) -> Reader:
    """Return `_list_of` texts, optimized: a cell reads a hundred files."""
    slow = _list_of(lambda value, where: _of(str, value, where), kind)

    def read(value: Any, where: str) -> Any:
        if isinstance(value, list) and all(type(item) is str for item in value):
            return kind(value)
        return slow(value, where)

    return read


def _table_of(reader: Reader) -> Reader:
    def read(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise WireError(f"{where}: not a table but {_shown(value)}")
        return {name: reader(item, f"{where}.{name}") for name, item in value.items()}

    return read


def _read_typed(hint: type, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WireError(f"{where}: not a table but {_shown(value)}")
    readers = _readers(hint)
    for name in value:
        if name not in readers:
            raise WireError(f"{where}: unknown field {_shown(name)}")
    return {name: readers[name][0](item, f"{where}.{name}") for name, item in value.items()}


def _read_json(value: Any, where: str, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise WireError(f"{where}: nested more than {_DEEPEST} deep")
    if isinstance(value, dict):
        return {str(name): _read_json(item, where, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_read_json(item, where, depth + 1) for item in value]
    if isinstance(value, float):
        return _read_float(value, where)
    if isinstance(value, int) and not isinstance(value, bool):
        return _of(int, value, where)
    if value is None or isinstance(value, (str, bool)):
        return value
    raise WireError(f"{where}: {_shown(value)} is not a JSON value")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
