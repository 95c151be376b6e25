"""What workers need of later Pythons: the libraries under test of an earlier time are for 3.9."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union

__all__ = ["UNIONS", "hints_of", "is_typeddict", "zipped"]

if TYPE_CHECKING or sys.version_info >= (3, 10):
    from types import UnionType
    from typing import get_type_hints, is_typeddict

    UNIONS: tuple[Any, ...] = (Union, UnionType)
    """What unions of types are made of."""

    def hints_of(cls: Any) -> dict[str, Any]:
        """Types of the fields of a class."""
        return get_type_hints(cls, include_extras=True)

else:
    from typing import _TypedDictMeta

    UNIONS = (Union,)

    class _Unions(ast.NodeTransformer):
        """Reads ``A | B``, which is no type before 3.10."""

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
    """``zip(..., strict=True)``, which is of 3.10.

    Raises
    ------
    ValueError
        When they are not of one length.
    """
    if len(set(map(len, rows))) > 1:
        raise ValueError(f"rows of {', '.join(str(len(row)) for row in rows)} items belong together")
    return zip(*rows)  # noqa: B905 (as above)
