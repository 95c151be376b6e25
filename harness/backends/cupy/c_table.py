"""Replacement of the C functions that a Cython module exports.

A module with ``cpdef`` or shared ``cdef`` functions has a dictionary ``__pyx_capi__``. It maps names to capsules with
the addresses of the C functions, and the name of a capsule is the function's C type. A module that uses the functions
looks them up there when it is imported
(https://cython.readthedocs.io/en/latest/src/userguide/sharing_declarations.html), so it calls an entry replaced before
that.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

_TYPES: dict[str, Any] = {
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "size_t": ctypes.c_size_t,
    "intptr_t": ctypes.c_ssize_t,
    "uintmax_t": ctypes.c_ulonglong,
    "float": ctypes.c_float,
    "PyObject *": ctypes.py_object,
}
# Cython appends arguments to functions that Python can call too: whether a method was overridden, and arguments with
# defaults.
_SKIP = "int __pyx_skip_dispatch"

_KEPT: list[Any] = []
"""Objects that C code refers to by address."""


def replace(module: Any, name: str, function: Callable[..., Any]) -> bool:
    """Replace a function of `module` by a Python function, for calls from C and from Python.

    Only modules imported afterwards use the replacement.

    Parameters
    ----------
    module : module
        An extension module.
    name : str
        The function's name.
    function : callable
        The replacement. It must not raise, because C would receive 0 or None. It does not receive arguments with
        defaults.

    Returns
    -------
    bool
        Whether the function was replaced. A function that the module lacks, or with a type that Python does not know,
        stays.
    """
    table = getattr(module, "__pyx_capi__", {})
    signature = _name_of(table[name]) if name in table else ""
    prototype, count = _prototype(signature)
    if prototype is None:
        return False
    pointer = prototype(_callback(function, count, _is_object(signature)))
    text = ctypes.create_string_buffer(signature.encode())
    _KEPT.extend((pointer, text))
    table[name] = _capsule(ctypes.cast(pointer, ctypes.c_void_p), text)
    setattr(module, name, function)
    return True


def _prototype(signature: str) -> tuple[Any, int]:
    """Return the `ctypes` type of a C function, and the number of its own arguments; None if there is no such type."""
    match = re.fullmatch(r"(.*?)\s?\((.*)\)", signature)
    if match is None:
        return None, 0
    result = "PyObject *" if _is_object(signature) else match[1]
    arguments = [each.strip() for each in match[2].split(",") if each.strip() != "void"]
    count = arguments.index(_SKIP) if _SKIP in arguments else len(arguments)
    types: list[Any] = [_TYPES.get(each) for each in arguments[:count]]
    if result not in _TYPES or None in types:
        return None, 0
    # An object is returned as the address of a reference that the caller owns.
    kind = ctypes.c_void_p if result == "PyObject *" else _TYPES[result]
    added = [ctypes.c_int, ctypes.c_void_p][: len(arguments) - count]
    return ctypes.CFUNCTYPE(kind, *types, *added), count


def _is_object(signature: str) -> bool:
    """Return whether a function returns an object of any class."""
    return signature.startswith(("PyObject *", "struct __pyx_obj_"))


def _callback(function: Callable[..., Any], count: int, is_object: bool) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        result = function(*arguments[:count])
        if not is_object:
            return result or 0
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(result))
        return id(result)

    return call


def _name_of(capsule: Any) -> str:
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return bytes(name(capsule)).decode()


def _capsule(pointer: Any, name: Any) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(pointer, name, None)
