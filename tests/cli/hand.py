"""Direct calls of NVRTC, in a separate process that imports nothing of cumatrix.

``python hand.py LIB64 SOURCE TARGET OPTION…`` prints one JSON object.
"""

import ctypes
import hashlib
import json
import sys
from pathlib import Path


def main() -> None:
    folder, source, target, *options = sys.argv[1:]
    found = {}
    for stem in ("libnvrtc-builtins.so.", "libnvrtc.so."):
        (path,) = (
            p
            for p in Path(folder).iterdir()
            if p.name.startswith(stem) and ".alt." not in p.name and not p.is_symlink()
        )
        found[stem] = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    nvrtc = found["libnvrtc.so."]
    count = ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    known = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(known)
    if int(target.split("_")[1].rstrip("af")) not in list(known):
        print(json.dumps({"status": "unsupported"}))
        return
    program = ctypes.c_void_p()
    argv = [f"--gpu-architecture={target}", *options]
    text = Path(source).read_bytes()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, Path(source).name.encode(), 0, None, None) == 0
    code = nvrtc.nvrtcCompileProgram(
        program, len(argv), (ctypes.c_char_p * len(argv))(*(option.encode() for option in argv))
    )
    if code:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        # The list has only numbers: a suffix that this release does not support is rejected as the value of the option.
        unknown = b"invalid value for --gpu-architecture" in log.value
        print(json.dumps({"status": "unsupported" if unknown else "rejected", "code": code}))
        return
    kind = "PTX" if target.startswith("compute_") else "CUBIN"
    size = ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)) == 0
    data = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{kind}")(program, data) == 0
    out = data.raw.removesuffix(b"\0") if kind == "PTX" else data.raw  # C terminates a text with a zero
    print(json.dumps({"status": "built", "sha256": hashlib.sha256(out).hexdigest(), "bytes": len(out)}))


if __name__ == "__main__":
    main()
