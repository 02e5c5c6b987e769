"""Isolation of a program: its walls, as far as the host allows them.

A zygote calls `enter` once, before it forks any child; every child calls `confine`, after the fork
and before the program is compiled. Between two children, `Isolation.renew` removes what one has
left for the next to see: files, the numbers of files and of processes, and times. Standard library
only: all run in a bare interpreter outside the package.

Two tiers hold. `full`: namespaces, a read-only root without /proc in which only a small /tmp
is writable, no network, and the walls of the second. `restricted`, for plain containers: a system
call filter, and Landlock or, as root, its own root directory and uid; no path leads to any file,
and the modules that programs import are in memory. Always: a private uid as root, no capability,
resource limits.

Invariant: `confine` applies every wall or raises; a program never runs behind some of them.
"""

# ruff: noqa: PTH120, PTH123
# ruff: noqa: PTH116

import ctypes
import os
import resource
from collections.abc import Callable
from contextlib import suppress

import landlock
import linked
import seccomp
from mounts import TEMPORARY, call, change_root, mount_temporary

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 4, 38, 36
NEWNS, NEWUTS, NEWIPC, NEWUSER = 0x20000, 0x4000000, 0x8000000, 0x10000000
NEWPID, NEWNET = 0x20000000, 0x40000000
SIGKILL = 9
FULL = {"pid", "net", "ipc", "uts", "mount", "seccomp"}
LAST_NUMBER, RULES = 7, 8
"""Descriptors of a zygote: the kernel's last process id (ns_last_pid), and Landlock's rules."""
GIVEN, GIVEN_WITH_CHANNEL = 4, 6
"""The descriptors below this number are given to a child: its standard streams, the file of its
results and, if it has one, the two ends of its channel."""
MAX_THREADS = 40  # a ThreadPoolExecutor takes up to 32
# Modules that load shared libraries: a root without these needs them loaded in advance.
_WITH_LIBRARIES = ("zlib", "bz2", "lzma", "pyexpat", "_hashlib", "_ssl", "_sqlite3", "_uuid")
_PRIVATE_UIDS = 1_000_000_000
_CAPABILITY_VERSION_3 = 0x20080522

_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()
_CAPABILITY_HEADER = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)


def _prctl(option: int, value: int) -> None:
    call("prctl", option, ctypes.c_ulong(value), 0, 0, 0)


def die_with_parent() -> None:
    """Has this process killed (SIGKILL) when the thread that started it ends."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL)


def hide() -> None:
    """Disables core dumps, ptrace and /proc/PID/mem for processes without capabilities."""
    _prctl(PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def trim() -> None:
    """Returns freed memory to the kernel, where the C library can: no fork then has to copy it."""
    with suppress(AttributeError):
        call("malloc_trim", 0)


class Isolation:
    """Walls around a zygote, and those that its children add.

    `uid` 0: children keep the zygote's. `threads`: most threads of a child; 0 where the kernel
    counts other processes of the same user too. `ruled`: the zygote has to mount and is
    outside of Landlock, whose rules its children find in the descriptor RULES.
    """

    def __init__(self, uid: int):
        self.uid = uid
        self.walls = ["uid"] * bool(uid)
        self.filters: dict[int, seccomp.Program] = {}
        self.ruled = False

    @property
    def owns_pid_namespace(self) -> bool:
        """Whether every process that the zygote can see is its own."""
        return "pid" in self.walls

    @property
    def closed(self) -> bool:
        """Whether no process of a job can leave the group in which it can be killed."""
        return self.owns_pid_namespace or "seccomp" in self.walls

    @property
    def without_files(self) -> bool:
        """Whether children reach no file by a path, and see the numbers of none."""
        return "no_files" in self.walls

    @property
    def threads(self) -> int:
        return MAX_THREADS if {"uid", "user"} & set(self.walls) else 0

    @property
    def tier(self) -> str | None:
        if set(self.walls) >= FULL:
            return "full"
        closed = {"landlock", "chroot"} & set(self.walls)
        return "restricted" if closed and "seccomp" in self.walls else None

    def missing(self) -> str:
        """Returns what a host without a tier lacks, and what would provide it."""
        remedies = {
            "seccomp": "seccomp filters (a kernel with CONFIG_SECCOMP_FILTER, x86_64 or aarch64)",
            "landlock": "Landlock (Linux 5.13 or newer with landlock in its lsm= list)",
            "mount": "namespaces (as root, CAP_SYS_ADMIN; as a user, kernel.unprivileged_userns_"
            "clone and user.max_user_namespaces, and a container profile that allows unshare)",
        }
        return "; ".join(text for name, text in remedies.items() if name not in self.walls)

    def renew(self) -> None:
        """Resets the state that a new child sees to that of the first one.

        A folder that was touched is replaced by a new one, in which inode numbers start again. Its
        ctime, which no process can set, is always that of the last moment before a child starts;
        the other times are always 0. In a pid namespace of its own, processes and threads get the
        same numbers again.
        """
        if "tmp" in self.walls:
            if not self._is_new():
                call("umount2", TEMPORARY.encode(), 0)
                mount_temporary(TEMPORARY)
                self._open_rules()
            os.utime(TEMPORARY, (0, 0))
        if "numbers" in self.walls:
            os.pwrite(LAST_NUMBER, b"1", 0)

    def _is_new(self) -> bool:
        """Whether the writable folder was neither written nor listed since it was renewed."""
        status = os.stat(TEMPORARY)
        return status.st_mtime_ns == status.st_atime_ns == 0

    def _open_rules(self) -> None:
        """Puts Landlock's rules, which name the folder mounted now, into the descriptor RULES."""
        if self.ruled and (rules := landlock.rules(["/"], [TEMPORARY, os.devnull])) is not None:
            os.dup2(rules, RULES)
            os.close(rules)


def enter(
    number: int, library: str, become_init: Callable[[], None], leave_files: Callable[[], None]
) -> Isolation:
    """Sets up all walls that children share; omits only those that the host refuses.

    `library` is the folder of the standard library: with the shared libraries that it is linked
    with, the only visible files in a root of its own. `become_init` continues in the first process
    of a new pid namespace. `leave_files` loads the files that children need, where they will reach
    none.
    """
    isolation = Isolation(private_uid(number))
    isolation.walls += _enter_namespaces(library)
    if "mount" not in isolation.walls and seccomp.supported():
        leave_files()
        isolation.walls.append("no_files")
    if "mount" not in isolation.walls and isolation.uid:
        isolation.walls += _enter_library(library)
    die_with_parent()
    if isolation.owns_pid_namespace:
        become_init()
        die_with_parent()
    hide()
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if "tmp" in isolation.walls:
        isolation.ruled = landlock.version() > 0
        os.utime(TEMPORARY, (1, 1))  # so that `renew` replaces and rules it before the first child
    else:
        whole = "chroot" in isolation.walls
        readable = ["/"] if whole else [os.path.realpath(library), *linked.libraries(library)]
        rules = landlock.rules([] if isolation.without_files else readable, [])
        if rules is not None:
            landlock.restrict_self(rules)
            os.close(rules)
    if landlock.version():
        isolation.walls.append("landlock")
    if "tmp" in isolation.walls and _numbers_can_be_set():
        isolation.walls.append("numbers")
    _build_filters(isolation)
    return isolation


def _build_filters(isolation: Isolation) -> None:
    """Builds the system call filters of children, one for each number of descriptors that they are
    given."""
    for given in (GIVEN, GIVEN_WITH_CHANNEL):
        program = seccomp.build(
            "tmp" in isolation.walls, "numbers" in isolation.walls, not isolation.without_files,
            given,
        )  # fmt: skip
        if program is not None:
            isolation.filters[given] = program
    if isolation.filters:
        isolation.walls.append("seccomp")


def _enter_namespaces(library: str) -> list[str]:
    """Leaves the host's namespaces, for all processes forked after this call."""
    libraries = linked.libraries(library)  # while a fork is not the first process of a namespace
    active = _unshare(os.getuid(), os.getgid())
    with suppress(OSError):  # only walls that were set up are named
        if active:
            change_root(library, libraries)
            active += ["mount", "tmp"]
    return active


def _enter_library(library: str) -> list[str]:
    """Makes the folder around the standard library the root; needs CAP_SYS_CHROOT."""
    for name in _WITH_LIBRARIES:
        with suppress(ImportError):
            __import__(name)
    try:
        os.chroot(os.path.dirname(library))
    except OSError:
        return []
    os.chdir("/")
    return ["chroot"]


def _unshare(uid: int, gid: int) -> list[str]:
    """Enters new namespaces, all or none; a normal user does so inside a user namespace."""
    try:
        call("unshare", NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET | (NEWUSER if uid else 0))
    except OSError:
        return []
    call("sethostname", b"sandbox", 7)  # hides the host's own name from programs
    with suppress(OSError):  # opened while there is still a /proc
        number = os.open("/proc/sys/kernel/ns_last_pid", os.O_WRONLY)
        os.dup2(number, LAST_NUMBER)
        os.close(number)
    if not uid:
        return ["pid", "net", "ipc", "uts"]
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {uid} 1")
    _write("/proc/self/gid_map", f"0 {gid} 1")
    return ["pid", "net", "ipc", "uts", "user"]


def _numbers_can_be_set() -> bool:
    """Whether the kernel lets this process, in its new namespace, set the next process id."""
    try:
        os.pwrite(LAST_NUMBER, b"1", 0)
    except OSError:
        return False
    return os.fstat(LAST_NUMBER).st_rdev == 0  # not /dev/null, the placeholder of a missing file


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def private_uid(number: int) -> int:
    """Returns a unique unprivileged uid for slot `number`; 0 if this process cannot change uids."""
    if os.getuid() != 0:
        return 0
    with open("/proc/self/uid_map") as file:
        start, _, length = max((list(map(int, line.split())) for line in file), key=lambda r: r[2])
    if _PRIVATE_UIDS + number < start + length:
        return _PRIVATE_UIDS + number
    if length < 4:
        return 0
    half = length // 2
    return start + half + number % (half - 1)


def confine(
    isolation: Isolation,
    cpu_seconds: float,
    memory_bytes: int,
    file_bytes: int,
    reserve_bytes: int,
    given: int = GIVEN,
) -> None:
    """Puts this process behind every wall that a child has; `given` is one of the constants.

    Raises:
        OSError: a wall could not be set up; the program must not run.
    """
    # Its own process group, by which all of it is killed. A session would do too, but where the
    # kernel divides cores among sessions (autogroup) each has a full share, whatever its niceness.
    os.setpgid(0, 0)
    if "tmp" in isolation.walls:
        os.chdir(TEMPORARY)
    _set_limits(cpu_seconds, memory_bytes, file_bytes, reserve_bytes)
    if isolation.ruled:
        landlock.restrict_self(RULES)
    if isolation.uid:
        os.setgroups([])
        os.setresgid(isolation.uid, isolation.uid, isolation.uid)
        os.setresuid(isolation.uid, isolation.uid, isolation.uid)
    call("capset", _CAPABILITY_HEADER, _NO_CAPABILITIES)
    die_with_parent()
    hide()
    resource.setrlimit(resource.RLIMIT_NPROC, (isolation.threads, isolation.threads))
    if isolation.filters:
        program = ctypes.byref(isolation.filters[given])
        call("prctl", seccomp.PR_SET_SECCOMP, seccomp.MODE_FILTER, program, 0, 0)


def _set_limits(cpu_seconds: float, memory_bytes: int, file_bytes: int, reserve_bytes: int) -> None:
    """Sets all resource limits but that of threads, which counts those of the account."""
    cpu = int(cpu_seconds) + 2  # a backstop; the watchdog of the child enforces the exact limit
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes + reserve_bytes))
    # Deep recursion through built-in functions takes the stack, which counts as memory.
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    stack = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))
    for limit, value in (
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(limit, (value, value))
