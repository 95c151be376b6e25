"""Programs that attack other processes and files. Each prints its successes: ``reached`` must not be in its log.

The programs send only harmless signals (SIGURG, or none) to processes that they do not own: the user has other processes, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

# A program exits after its attack: a program without a kernel is rejected.
_END = "\nraise SystemExit(3)\n"
_BEGIN = """
import ctypes, errno, os, resource, signal, stat, struct, subprocess, sys, time
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
scratch = Path(os.environ["TMPDIR"])
server = scratch.parent
os.chdir(scratch)

def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def below(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        for child in map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split()):
            yield child
            yield from below(child)

keeper = parent_of(os.getppid())
scheduler = parent_of(keeper)

def others():
    return [pid for pid in below(scheduler) if pid not in (os.getpid(), *below(os.getpid()))]

def attempt(what, *arguments, **keywords):
    try:
        what(*arguments, **keywords)
        print("reached", *arguments)
    except OSError as error:
        print("refused", errno.errorcode.get(error.errno))

def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
"""

DESCRIPTORS = {
    "holds-nothing": """
for name in os.listdir("/proc/self/fd"):
    link = os.path.realpath(f"/proc/self/fd/{name}")
    if int(name) > 2 and os.path.exists(f"/proc/self/fd/{name}") and not link.endswith(".cell"):
        print("reached", link)
""",
    "gives-nothing-on": """
said = subprocess.run(["sh", "-c", "for f in /proc/self/fd/*; do readlink $f; done"], close_fds=False, capture_output=True, text=True).stdout
print("reached" if "socket:" in said else "refused", said.split())
""",
    "forges-an-answer": """
line = b'{"exit": 0, "signal": null, "timed_out": false, "wall": 1.0, "leftovers": 0, "output": "", "output_total": 0, "reads": null}\\n'
for number in range(3, 256):
    try:
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            os.write(number, line * 3 + b"garbage\\n")
            print("reached", number)
    except OSError:
        continue
""",
    "forges-records-of-reads": """
where = os.environ.get("CUMATRIX_READS")
if where:
    handle = os.open(where, os.O_WRONLY | os.O_NONBLOCK)
    for text in (b"Z\\0", b"R 1\\0", b"R x x x x x /a\\0", b"Q 0 0 0 0 0 /b\\0", b"\\0" * 9, b"R 1 2 3 4 5 " + b"a" * 3000 + b"\\0", b"X 0 0 0 0 0 /c\\0"):
        os.write(handle, text)
""",
}

SIGNALS = {
    "kills-its-parent": "attempt(os.kill, os.getppid(), signal.SIGKILL)",
    "stops-its-parent": "attempt(os.kill, os.getppid(), signal.SIGSTOP)",
    "kills-the-keeper": "attempt(os.kill, keeper, signal.SIGKILL)",
    "kills-the-group-above": "attempt(os.killpg, os.getpgid(os.getppid()), signal.SIGKILL)",
    "kills-threads-above": "attempt(call, 234, os.getppid(), os.getppid(), 9)\nattempt(call, 200, os.getppid(), 9)",
    "kills-by-descriptor": "attempt(lambda: signal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGKILL))",
    "signals-everything": "attempt(os.kill, -1, signal.SIGURG)",
    "signals-the-scheduler": "attempt(os.kill, scheduler, 0)",
    "kills-its-siblings": "for pid in others(): attempt(os.kill, pid, signal.SIGKILL)",
    # The kernel sends a signal of the owner's choice to the process that a file names, whenever the file becomes readable.
    "kills-by-owning-a-file": """
import fcntl, socket, struct
OWN, OWN_EX, SIGNAL_OF, ASYNC, OWN_BY_IOCTL, GROUP_BY_IOCTL = 8, 15, 10, 0o20000, 0x8901, 0x8902
for pid in (os.getppid(), keeper, scheduler, *others()):
    number = signal.SIGURG if pid not in (os.getppid(), keeper) else signal.SIGKILL
    for own in (
        lambda fd: fcntl.fcntl(fd, OWN, pid),
        lambda fd: fcntl.fcntl(fd, OWN, -os.getpgid(pid)),
        lambda fd: call(72, fd, OWN | 7 << 32, pid),
        *(lambda fd, kind=kind: fcntl.fcntl(fd, OWN_EX, struct.pack("ii", kind, pid)) for kind in range(3)),
        lambda fd: fcntl.ioctl(fd, OWN_BY_IOCTL, struct.pack("i", pid)),
        lambda fd: fcntl.ioctl(fd, GROUP_BY_IOCTL, struct.pack("i", pid)),
    ):
        for ours, theirs in (map(socket.socket.detach, socket.socketpair()), os.pipe()):
            attempt(own, ours)
            fcntl.fcntl(ours, SIGNAL_OF, number)
            fcntl.fcntl(ours, fcntl.F_SETFL, fcntl.fcntl(ours, fcntl.F_GETFL) | ASYNC)
            os.write(theirs, b"x")
            os.close(ours)
            os.close(theirs)
""",
}

MEMORY_OF_OTHERS = {
    "traces-its-parent": "for pid in others(): attempt(call, 101, 16, pid, 0, 0)",
    "writes-into-memory": "for pid in others(): attempt(open, f'/proc/{pid}/mem', 'r+b')",
    "opens-files-of-others": """
for pid in others():
    for number in range(3, 20):
        if os.path.lexists(f"/proc/{pid}/fd/{number}"):
            attempt(open, f"/proc/{pid}/fd/{number}", "ab")
        attempt(call, 438, os.pidfd_open(pid) if pid not in (os.getppid(), keeper) else -1, number, 0)
""",
    "limits-others": """
for pid in others():
    attempt(resource.prlimit, pid, resource.RLIMIT_NOFILE, (5, 5))
    attempt(resource.prlimit, pid, resource.RLIMIT_CPU, (1, 1))
""",
    "takes-the-processor-from-others": """
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
cores, worst = os.sched_getaffinity(0), os.sched_param(0)
IOPRIO_IDLE = 3 << 13
import threading
waiting = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
waiting.start()
for own in (0, os.getpid(), waiting.native_id, child.pid):
    os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own))
    os.sched_setaffinity(own, cores)
    os.sched_setscheduler(own, os.SCHED_BATCH, worst)
    os.sched_setparam(own, worst)
    call(314, own, struct.pack("=IIQiIQQQ", 48, 3, 0, 0, 0, 0, 0, 0), 0)
    call(251, 1, own, IOPRIO_IDLE)
os.setpriority(os.PRIO_PGRP, 0, os.getpriority(os.PRIO_PGRP, 0))
os.setpriority(os.PRIO_PGRP, child.pid, os.getpriority(os.PRIO_PGRP, child.pid))
child.kill()
child.wait()
attempt(call, 203, child.pid, 8, ctypes.create_string_buffer(8))
for pid in (os.getppid(), keeper, scheduler, *others()):
    attempt(os.setpriority, os.PRIO_PROCESS, pid, 19)
    attempt(os.setpriority, os.PRIO_PGRP, os.getpgid(pid), 19)
    attempt(os.sched_setaffinity, pid, {min(cores)})
    attempt(os.sched_setscheduler, pid, 5, worst)
    attempt(os.sched_setparam, pid, worst)
    attempt(call, 314, pid, struct.pack("=IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0), 0)
    attempt(call, 251, 1, pid, IOPRIO_IDLE)
    attempt(call, 251, 2, os.getpgid(pid), IOPRIO_IDLE)
    attempt(call, 256, pid, 64, ctypes.create_string_buffer(b"\\1", 8), ctypes.create_string_buffer(b"\\1", 8))
    attempt(call, 279, pid, 0, None, None, None, 2)
    attempt(call, 440, os.pidfd_open(pid) if pid not in (os.getppid(), keeper, scheduler) else -1, None, 0, 21, 0)
for user in (0, os.getuid()):
    attempt(os.setpriority, os.PRIO_USER, user, 19)
    attempt(call, 251, 3, user, IOPRIO_IDLE)
for pid in (os.getppid(), keeper, scheduler):
    if os.getpriority(os.PRIO_PROCESS, pid) == 19 or os.sched_getscheduler(pid) == 5 or os.sched_getaffinity(pid) != cores:
        print("reached", pid)
""",
    # Access that root has by its capabilities; the variables of a process often contain tokens.
    "reads-variables-of-others": """
import socket
def peek(path):
    # A process that has just ended has no memory left, and its files are empty.
    if not os.read(os.open(path, os.O_RDONLY), 1):
        raise ProcessLookupError(errno.ESRCH, "")
def names(path):
    if not os.listdir(path):
        raise ProcessLookupError(errno.ESRCH, "")
for pid in ("1", parent_of(scheduler) or 1, *others()):
    for name in ("environ", "maps", "auxv", "smaps", "pagemap", "io", "stack", "syscall"):
        attempt(peek, f"/proc/{pid}/{name}")
    for name in ("cwd", "root", "exe"):
        attempt(os.readlink, f"/proc/{pid}/{name}")
    attempt(names, f"/proc/{pid}/map_files")
    attempt(call, 312, int(pid), os.getpid(), 0, 0, 0)
    attempt(call, 298, ctypes.create_string_buffer(struct.pack("=II", 1, 128) + bytes(120)), int(pid), -1, -1, 0)
attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)
attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)
# A file by its number, past all folders.
handle, mount = ctypes.create_string_buffer(struct.pack("=II", 128, 0) + bytes(128)), ctypes.c_int()
if libc.syscall(303, -100, b"/etc", handle, ctypes.byref(mount), 0) == 0:
    attempt(call, 304, os.open("/etc", os.O_RDONLY), handle, os.O_RDONLY)
""",
}

FILES = {
    "writes-to-siblings": """
for folder in server.parent.iterdir():
    for path in [folder, *folder.glob("*"), *folder.glob("cell-*/*")]:
        if scratch in (path, *path.parents):
            continue
        if path.is_dir():
            attempt(open, path / "stages", "a")
            attempt(open, path / "reply.json", "w")
        elif path.is_file():
            attempt(open, path, "r+b")
            attempt(os.truncate, path, 0)
""",
    "removes-siblings": """
for folder in server.parent.iterdir():
    for path in folder.glob("cell-*/*"):
        if scratch not in path.parents:
            attempt(os.unlink, path)
    attempt(os.rename, folder, f"{folder}-moved")
    attempt(os.rmdir, folder / "home")
""",
    "writes-to-the-engine": """
import harness, numba
for module in (harness, numba):
    attempt(open, Path(module.__file__).with_name("intruder.py"), "w")
    attempt(open, module.__file__, "r+")
    attempt(os.mkdir, Path(module.__file__).with_name("intruder"))
""",
    "writes-to-what-is-kept": """
for folder in ({cache!r}, {data!r}, os.environ["CUDA_HOME"], "/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~root"), {here!r}):
    attempt(open, f"{folder}/intruder", "w")
    attempt(os.symlink, "/etc/passwd", f"{folder}/intruder")
attempt(open, os.environ["CUDA_HOME"] + "/version.json", "r+")
""",
    "fills-shared-memory": "attempt(lambda: os.truncate(os.open('/dev/shm/intruder', os.O_CREAT | os.O_RDWR), 1 << 30))",
    "makes-devices": """
attempt(os.mknod, "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
attempt(os.mknod, "disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
""",
    "shuts-folders": """
os.makedirs("a/b/c")
Path("a/b/c/file").touch()
for path in ("a/b/c", "a/b", "a"):
    os.chmod(path, 0)
attempt(os.chmod, server, 0)
os.chmod(scratch, 0)
""",
    "changes-modes": """
def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)

import harness
Path("mine").touch()
os.mkdir("folder")
here = os.open(".", os.O_RDONLY)
mine = os.open("mine", os.O_RDONLY)
for number, change in enumerate((lambda m: os.chmod("mine", m), lambda m: os.chmod(scratch / "mine", m), lambda m: os.fchmod(mine, m), lambda m: os.chmod("mine", m, dir_fd=here),
    lambda m: os.chmod(f"/proc/self/fd/{mine}", m), lambda m: os.chmod("folder/../mine", m), lambda m: subprocess.run(["chmod", f"{m:o}", "mine"], check=True),
    lambda m: os.chmod(f"/dev/fd/{mine}", m), lambda m: call(452, here, b"mine", m, 0))):
    change(0o600 + number)
    if mode("mine") != 0o600 + number:
        print("reached not even its own", number)
for path in (server, server.parent, Path(harness.__file__), Path(harness.__file__).parent, {cache!r}, {data!r}, {here!r}, os.environ["CUDA_HOME"], "/tmp", "/dev/null", f"/proc/{os.getppid()}/cwd"):
    same = mode(path)  # should it be changed, nothing is
    attempt(os.chmod, path, same)
    attempt(os.chmod, f"/proc/self/root{path}", same)
    attempt(os.chmod, os.path.relpath(path), same)
    attempt(os.chmod, path, same, dir_fd=here)
    attempt(call, 452, -100, os.fsencode(path), same, 0)
    Path("link").unlink(missing_ok=True)
    os.symlink(path, "link")
    attempt(os.chmod, "link", same)
    handle = os.open(path, os.O_RDONLY)
    attempt(os.fchmod, handle, same)
    attempt(os.chmod, f"/proc/self/fd/{handle}", same)
    if subprocess.run(["chmod", f"{same:o}", path], capture_output=True).returncode == 0:
        print("reached", path)
attempt(call, 90, 1, 0)  # no path
attempt(call, 90, None, 0)
attempt(call, 91, -1, 0)
attempt(call, 91, 1 << 31, 0)
attempt(os.chmod, "/proc/self/fd/999", 0)
attempt(os.chmod, "x" * 5000, 0)
attempt(os.chmod, "", 0)
""",
    "changes-owners": """
import fcntl
Path("mine").touch()
os.chown("mine", -1, -1)
os.chown("mine", os.geteuid(), os.getegid())
for path in ("mine", server, {data!r}):
    for change in (os.chown, os.lchown, lambda path, *ids: os.fchown(os.open(path, os.O_RDONLY), *ids)):
        attempt(change, path, 12345, -1)
        attempt(change, path, -1, 12345)
        attempt(change, path, 0xFFFFFFFE, 12345)
    attempt(os.setxattr, path, "user.x", b"1")
    attempt(os.setxattr, path, "system.posix_acl_access", b"")
    attempt(os.removexattr, path, "user.x")
    for number in (0x40086602, 0x40046602, 0x401C5820):
        attempt(fcntl.ioctl, os.open(path, os.O_RDONLY), number, bytes(64))
attempt(call, 425, 8, ctypes.create_string_buffer(200))
""",
    "asks-for-ever": """
Path("mine").touch()
for number in range(20):
    if os.fork() == 0:
        while True:
            os.chmod("mine", 0o600 + number)
time.sleep(0.5)
""",
    "leaves-huge-files": """
for name in ("reply.json", "log", "stages", "imported", "other"):
    handle = os.open(name, os.O_CREAT | os.O_WRONLY)
    os.truncate(handle, 3 << 30)
os._exit(0)
""",
    "leaves-no-files": """
for name in ("log", "stages", "imported"):
    Path(name).unlink(missing_ok=True)
    os.mkfifo(name)
os.symlink("/proc/kmsg", "reply.json")
os._exit(0)
""",
    "mounts": """
CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x20000
if os.fork() == 0:
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0:
        attempt(call, 165, b"none", str(server).encode(), b"tmpfs", 0, None)
    sys.stdout.flush()
    os._exit(0)
os.wait()
""",
}

PROCESSES = {
    "leaves-a-daemon": """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.execv("/bin/sh", [{mark!r}, "-c", "trap '' TERM HUP INT; while :; do sleep 1000; done"])
    os._exit(0)
os.wait()
""",
    "leaves-many": """
for _ in range(150):
    if os.fork() == 0:
        os.setsid()
        os.execv("/bin/sleep", [{mark!r}, "1000"])
""",
    "forks-and-exits": """
end = time.monotonic() + 60  # should nobody end it
if os.fork() == 0:
    os.setsid()
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
""",
    "forks-and-goes-on": """
if os.fork() == 0:
    raise SystemExit(7)
os.wait()
if Path("reply.json").exists():
    print("reached: the answer")
""",
    # The parent of such a process chooses the signal that its end sends.
    "dies-at-its-parent": """
if libc.syscall(56, 0x8000 | signal.SIGKILL, None, None, None, 0) == 0:
    os._exit(0)
if os.fork() == 0:
    os.setsid()
    if libc.syscall(56, signal.SIGKILL, None, None, None, 0) == 0:
        if libc.syscall(56, signal.SIGKILL, None, None, None, 0) == 0:
            time.sleep(0.1)
        os._exit(0)
    os._exit(0)
time.sleep(0.3)
""",
    "leaves-objects": """
for number, arguments in ((29, (0x5EED, 4096, 0o1600)), (64, (0x5EED, 1, 0o1600)), (68, (0x5EED, 0o1600)), (240, (b"intruder", 0o102, 0o600, None))):
    attempt(call, number, *arguments)
""",
    "floods": "for _ in range(30): os.write(1, b'x' * 999_999 + b'\\n')",
    "ends-silently": "os.closerange(0, 1024)\nos._exit(0)",
}

MACHINE = {
    # Opening a file with a lease blocks for 45 seconds.
    "leases-what-others-read": """
import fcntl, harness
signal.signal(signal.SIGIO, signal.SIG_IGN)
for path in (os.environ["CUDA_HOME"] + "/include/cuda_fp16.h", harness.__file__, sys.executable):
    for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):
        attempt(fcntl.fcntl, os.open(path, os.O_RDONLY), 1024, kind)
""",
    "locks-what-others-read": """
import fcntl, harness, struct
asked = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
with open("mine", "w") as mine:
    for own in (mine.fileno(), os.open(".", os.O_RDONLY)):
        fcntl.flock(own, fcntl.LOCK_EX)
        fcntl.flock(own, fcntl.LOCK_UN)
    fcntl.lockf(mine, fcntl.LOCK_EX)
    fcntl.fcntl(mine, 37, asked)
    fcntl.fcntl(os.open(os.devnull, os.O_RDONLY), 6, asked)
for path in (os.environ["CUDA_HOME"], os.environ["CUDA_HOME"] + "/include/cuda_fp16.h", harness.__file__, sys.executable, server, server.parent, {cache!r}, {data!r}, {here!r}):
    handle = os.open(path, os.O_RDONLY)
    attempt(fcntl.flock, handle, fcntl.LOCK_SH)
    attempt(fcntl.flock, handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for number in (6, 7, 37, 38):
        attempt(fcntl.fcntl, handle, number, asked)
attempt(fcntl.flock, 999, fcntl.LOCK_SH)
""",
    # The files under attack exist.
    "changes-the-machine": """
import socket
attempt(socket.sethostname, socket.gethostname())
attempt(time.clock_settime, time.CLOCK_REALTIME, time.time())
attempt(call, 167, b"/nowhere", 0) if os.geteuid() else None
""",
    "takes-the-processor": """
attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
attempt(os.nice, -5)
attempt(os.setpriority, os.PRIO_PGRP, os.getpgid(os.getppid()), -1)
""",
    "leaves-its-group": """
for line in Path("/proc/self/mountinfo").read_text().splitlines():
    if " - cgroup" in line:
        for folder, _, names in os.walk(line.split()[4]):
            if "cgroup.procs" in names:
                attempt(open, folder + "/cgroup.procs", "w")
                attempt(os.mkdir, folder + "/intruder")
""",
    "is-ended-last": "attempt(lambda: Path('/proc/self/oom_score_adj').write_text('-1000'))",
    # A process that is a child of the fork server, as the cell itself, and in no group of the cell.
    "is-its-own-sibling": """
if libc.syscall(56, 0x8000 | signal.SIGCHLD, None, None, None, 0) == 0:
    os.setsid()
    os.execv("/bin/sleep", [{mark!r}, "1000"])
""",
    "waits-for-pipes": """
for name in ("reply.json", "kernel.ptx", "kernel.cubin", "step.reads"):
    os.mkfifo(name)
""",
    "nests-folders": """
for _ in range(300):
    os.mkdir("x" * 200)
    os.chdir("x" * 200)
""",
    "odd-names": """
for name in (b"\\n::error::x", b"\\xff\\xfe", b"\\x1b[2J", b"$(id)`id`", b"-rf", b"x" * 255, "\u202e".encode(), b" ", b"*"):
    for kind in (os.mkdir, os.mkfifo, lambda path: os.symlink(b"/", path + b"l"[: 255 - len(path)]), lambda path: os.open(path + b"f"[: 255 - len(path)], os.O_CREAT)):
        try:
            kind(name)
        except OSError:
            pass
""",
    "floods-records-of-reads": """
where, end = os.environ.get("CUMATRIX_READS"), time.monotonic() + 3
handle, number = os.open(where, os.O_WRONLY | os.O_NONBLOCK) if where else -1, 0
while handle >= 0 and time.monotonic() < end:
    number += 1
    try:
        os.write(handle, b"".join(b"R 1 2 3 4 5 /%d-%d-%s\\0" % (number, each, b"a" * 90) for each in range(30)))
    except BlockingIOError:
        time.sleep(0.001)
""",
    "opens-without-end": """
kept = []
for more in (lambda: (os.pipe(), libc.syscall(294, 0)), lambda: os.dup(0)):
    try:
        while len(kept) < 100_000:
            kept.append(more())
    except OSError:
        pass
""",
}

_ASSEMBLY = """
from llvmlite import ir
from numba import cuda, types
from numba.extending import intrinsic

@intrinsic
def assembly(context):
    def generate(context, builder, signature, arguments):
        text = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), TEXT, "", True)
        builder.call(text, [])
        return context.get_dummy_value()
    return types.void(), generate

@cuda.jit
def scale(a):
    assembly()
"""
OUTPUT = {
    "numba-assembly-of-entries": _ASSEMBLY.replace(
        "TEXT", r"'\n'.join(f'// .entry e{number}()' for number in range(8000))"
    ),
    "numba-assembly-of-blank-lines": _ASSEMBLY.replace("TEXT", r"'\n' * 60_000"),
    "records-of-reads-by-many": """
where = os.environ.get("CUMATRIX_READS")
for _ in range(4):
    if where and os.fork() == 0:
        handle, end = os.open(where, os.O_WRONLY), time.monotonic() + 5
        while time.monotonic() < end:
            os.write(handle, b"R 1 2 3 4 5 /x\\0" * 200)
        os._exit(0)
""",
}
"""Files that are hard to read; a program with a kernel is compiled to such PTX for ``compute_80``."""

PROGRAMS = {**DESCRIPTORS, **SIGNALS, **MEMORY_OF_OTHERS, **FILES, **PROCESSES, **MACHINE, **OUTPUT}


KERNEL = """
from numba import cuda

@cuda.jit
def scale(a):
    i = cuda.grid(1)
    if i < a.size - {}:
        a[i] *= 2
"""
"""Return an innocent program for a number."""
ENTRIES = {"scale": "void(float32[:])"}


def text_of(program: str, words: Mapping[str, str]) -> str:
    """Return a hostile program as the text of a file.

    Parameters
    ----------
    program : str
        The program's text, as in `PROGRAMS`.
    words : Mapping
        Values for the program: the folders that it attacks (``cache``, ``data``, ``here``), and the mark of processes that it leaves
        behind (``mark``).
    """
    text = _BEGIN + program
    for word, value in words.items():
        text = text.replace("{" + word + "!r}", repr(value))
    return text if "@cuda.jit" in program else text + _END


def intruders(folders: Iterable[Path]) -> list[str]:
    """Return files of hostile programs in these folders, and in folders that every user may write to."""
    places = [*folders, Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/root")]
    return [str(each / name) for each in places for name in ("intruder", "intruder.py") if os.path.lexists(each / name)]
