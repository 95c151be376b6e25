"""Answers of the probes (`harness.worker.probe`, `harness.worker.devices`): one line of JSON on standard output each.

The probes themselves import nothing of this: they run by path, with any Python, before every command, and dataclasses would
take as long to load as all that they do. The scheduler checks their output against these types.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.protocol.codec import Message


@dataclass(frozen=True)
class Distribution(Message):
    """A distribution that is installed.

    Parameters
    ----------
    version : str
        Its version, as its metadata spells it.
    requires : list of str
        Normalized names of the distributions that it requires, installed or not.
    root : bool
        Whether it was asked after by name, and is not only required by another one.
    folder : str
        Folder of the package that is imported from it, where it was asked after with one.
    apart : bool
        Whether that is elsewhere than where installers put the distribution's files: an editable install, a ``.pth`` file.
    url, commit, digest : str
        Where it was installed from if not from an index (PEP 610): the address, the commit of a repository, and else a hash
        of the files that were installed.
    editable : bool
        Whether it was installed in editable mode.
    """

    version: str
    requires: list[str] = field(default_factory=list)
    root: bool = True
    folder: str = ""
    apart: bool = False
    url: str = ""
    commit: str = ""
    digest: str = ""
    editable: bool = False


@dataclass(frozen=True)
class Interpreter(Message):
    """The content of an interpreter's environment.

    Parameters
    ----------
    python : str
        Its version: ``"3.11.7"``.
    distributions : dict
        By normalized name, those that were asked after and all that they require.
    """

    python: str
    distributions: dict[str, Distribution] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceProperties(Message):
    """The driver's description of a device; records have the same names.

    Parameters
    ----------
    name, compute_capability : str
        ``"NVIDIA H200"`` and ``"9.0"``.
    memory, shared_opt_in : int
        Memory of the device, and shared memory that a block may ask for, in bytes.
    multiprocessors : int
        How many it has.
    cooperative : bool
        Whether it runs cooperative launches.
    """

    name: str
    compute_capability: str
    memory: int
    multiprocessors: int
    shared_opt_in: int
    cooperative: bool


@dataclass(frozen=True)
class Driver(Message):
    """The driver of this machine and its devices.

    Parameters
    ----------
    devices : list of DeviceProperties
        Those that can be seen, in the driver's order.
    problem : str
        Why there is none; empty where the driver was asked, even if it has none.
    folder : str
        Where its library lies, if the dynamic loader does not know it.
    driver, cuda : str
        Its version, and that of CUDA which it is of; empty where they are not known.
    """

    devices: list[DeviceProperties] = field(default_factory=list)
    problem: str = ""
    folder: str = ""
    driver: str = ""
    cuda: str = ""
