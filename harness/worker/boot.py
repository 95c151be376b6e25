"""Starts a fork server in any interpreter, and makes only `harness` importable there.

Run as ``python boot.py PACKAGE_FOLDER BACKEND CONTROL_FD``. With the file of a job instead of CONTROL_FD, the job runs
in this process.
"""

import gc
import importlib.util
import os
import sys


def boot() -> None:
    folder, backend, control = sys.argv[1:4]
    # Garbage collection takes a sixth of the time in which libraries load; the fork server enables it before the first
    # cell.
    gc.disable()
    # The script's own folder must not shadow modules of the libraries under test.
    sys.path[:] = [
        entry for entry in sys.path if os.path.realpath(entry or ".") != os.path.dirname(os.path.realpath(__file__))
    ]
    spec = importlib.util.spec_from_file_location(
        "harness", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["harness"] = module
    # Plugins are found by the scheduler in its own environment (harness/plugins.py).
    os.environ["CUMATRIX_NO_PLUGINS"] = "1"
    spec.loader.exec_module(module)
    if control.isdigit():
        from harness.worker.processes import keep

        keep()
        from harness.worker.fork_server import serve

        serve(backend, int(control))
    else:
        from harness.worker.child import run_once

        gc.enable()
        run_once(backend, control)


if __name__ == "__main__":
    boot()
