"""Seccomp filter: the system calls that a program may make; the kernel refuses all others.

Invariants: a call that is not named here is refused, and so are calls that future kernels add.
Behind this filter a process can signal, trace or open no other process, start none, reach no
network, enter no namespace, pass on no descriptor, make no pipe, no socket and no memory that the
kernel numbers like a file (their numbers are the host's, and the next program would see how many
were made), see the number of no file that it was given, drop nothing from the page cache and query
the kernel for nothing about the host. Standard library only: loaded by path in the zygote.
"""

import ctypes
import errno
import os

PR_SET_SECCOMP, MODE_FILTER = 22, 2
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000  # a second table of the same calls on x86_64

Line = tuple[int, int, int, int]
"""Operation, number of lines to skip if true, if false, and the operation's value."""

ALLOW: Line = (_RETURN, 0, 0, 0x7FFF0000)
REFUSE: Line = (_RETURN, 0, 0, 0x00050000 | errno.EPERM)
_NO_FILE: Line = (_RETURN, 0, 0, 0x00050000 | errno.ENOENT)
_ABSENT: Line = (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)
_KILL: Line = (_RETURN, 0, 0, 0x80000000)

# name: (x86_64, aarch64); numbers from the kernel's system call tables, None where there is none.
READING = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66),
    "pread64": (17, 67), "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70),
    "lseek": (8, 62), "close": (3, 57), "close_range": (436, 436),
    "getdents64": (217, 61), "getcwd": (79, 17),
    "umask": (95, 166),
    "ftruncate": (77, 46), "fsync": (74, 82), "fdatasync": (75, 83),
    "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226),
    "brk": (12, 214), "msync": (26, 227),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136), "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132), "pause": (34, None), "alarm": (37, None),
    "setitimer": (38, 103), "getitimer": (36, 102),
    "futex_waitv": (449, 449), "set_robust_list": (273, 99),
    "rseq": (334, 293), "membarrier": (324, 283),
    "restart_syscall": (219, 128), "sched_yield": (24, 124),
    "nanosleep": (35, 101), "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153),
    "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158),
    "getrusage": (98, 165), "getcpu": (309, 168),
    "getrandom": (318, 278), "getrlimit": (97, 163),
    "poll": (7, None), "ppoll": (271, 73),
    "select": (23, None), "pselect6": (270, 72), "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "eventfd2": (290, 19),
    "wait4": (61, 260), "waitid": (247, 95), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
# Ids of its own process; hidden where they are the host's, since the next process gets the next.
NUMBERS = {
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getpgrp": (111, None),
    "set_tid_address": (218, 96),
}  # fmt: skip
# Only where the root holds nothing of the host.
LOOKING = {
    "stat": (4, None), "lstat": (6, None), "access": (21, None),
    "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None),
    "readlinkat": (267, 78),
}  # fmt: skip
# Only where the one writable folder is the program's own, and no folder is the host's.
WRITING = {
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None),
    "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "truncate": (76, 45), "chdir": (80, 49), "fchdir": (81, 50),
}  # fmt: skip
_OPEN, _OPENAT, _FSTAT, _FSTATAT = (2, None), (257, 56), (5, 80), (262, 79)
_DUPLICATING = ((32, 23), (33, None), (292, 24))  # dup, dup2, dup3
_CLONE, _CLONE3, _OPENAT2 = (56, 220), (435, 435), (437, 437)
_FCNTL, _IOCTL, _PRLIMIT, _SETRLIMIT = (72, 25), (16, 29), (302, 261), (160, 164)
_GETPGID, _GETSID, _AFFINITY = (121, 155), (124, 156), (204, 123)
_CLOCK_GETTIME, _CLOCK_GETRES, _CLOCK_NANOSLEEP = (228, 113), (229, 114), (230, 115)
_STATX, _MADVISE, _FUTEX, _MMAP = (332, 291), (28, 233), (202, 98), (9, 222)

_WRITE_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000  # and CREAT, TRUNC, APPEND, TMPFILE
_NAMELESS = 0o20000000  # TMPFILE: a nameless file leaves a trace in numbers, none in its folder
_CLONE_THREAD = 0x10000
_CLOCK_OF_A_PROCESS = 1 << 31  # the process id is in the other bits
_RLIMIT_CPU = 0
_DUPFD, _GETFD, _SETFD, _GETFL, _SETFL, _DUPFD_CLOEXEC = 0, 1, 2, 3, 4, 1030
_TCGETS, _TIOCGWINSZ, _FIONREAD, _FIONBIO, _FIOCLEX = 0x5401, 0x5413, 0x541B, 0x5421, 0x5451
# Advice that allocators and the C library use; none drops or reads pages for other processes too.
_ADVICE = (0, 1, 2, 4, 8, 14, 15)
_SHARED, _ANONYMOUS = 0x1, 0x20
# Flags of mappings that allocators, loaders and programs use: SHARED, PRIVATE, DROPPABLE, FIXED,
# ANONYMOUS, 32BIT, GROWSDOWN, DENYWRITE, EXECUTABLE, NORESERVE, POPULATE, STACK, FIXED_NOREPLACE.
# Not HUGETLB, for which the kernel makes a file, with the next number of pipes and sockets.
_MAPPING = 0x12D97B
_FUTEX_COMMAND = 0x7F
_PRIORITY_INHERITANCE = (6, 7, 8, 11, 12, 13)  # for these the kernel writes a thread's id


class _Instruction(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint16),
        ("jump_true", ctypes.c_uint8),
        ("jump_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    ]


class Program(ctypes.Structure):
    """A filter in the kernel's format (struct sock_fprog)."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction))]


def build(writes: bool, numbers: bool = True, files: bool = True, given: int = 0) -> Program | None:
    """Returns the filter for this machine; None if its kernel or architecture has no support.

    `writes`: whether files may be opened for writing, made and removed, as far as other walls
    allow it. `numbers`: whether processes and threads have the same ids in every child; else calls
    that return them are refused, which C libraries and Python report as -1. `files`: whether paths
    lead to files; else every path is absent, and the kernel does not describe open files either,
    whose numbers are the host's. `given`: the descriptors below it are files and pipes of the host;
    the kernel does not describe these, and copies none to another number.
    """
    if not supported():
        return None
    column, _ = _ARCHITECTURES[os.uname().machine]
    unconditional = READING | LOOKING | (WRITING if writes else {})
    blocks = {call[column]: [ALLOW] for call in unconditional.values()}
    if numbers:
        blocks |= {call[column]: [ALLOW] for call in NUMBERS.values()}
    for call, block in _conditional(writes, numbers, given):
        blocks[call[column]] = block
    if not files:
        paths = (*LOOKING.values(), _OPEN, _OPENAT, _FSTATAT)
        blocks |= {call[column]: [_NO_FILE] for call in paths}
        blocks[_FSTAT[column]] = [REFUSE]
    supported_calls = {number: block for number, block in blocks.items() if number is not None}
    return assemble(supported_calls, [REFUSE])


def supported() -> bool:
    """Whether this kernel filters system calls, and the call numbers of its machine are known."""
    libc = ctypes.CDLL(None, use_errno=True)
    has_filters = libc.prctl(PR_SET_SECCOMP, MODE_FILTER, None, 0, 0) == -1
    return (
        os.uname().machine in _ARCHITECTURES and has_filters and ctypes.get_errno() == errno.EFAULT
    )


def _conditional(
    writes: bool, numbers: bool, given: int
) -> list[tuple[tuple[int | None, int | None], list[Line]]]:
    """Returns the calls whose arguments decide. Flags and commands are ints, so the low half of an
    argument holds all of them."""
    refused = _NAMELESS if writes else _WRITE_FLAGS
    opening = [[_argument(1), *_refuse_bits(refused)], [_argument(2), *_refuse_bits(refused)]]
    return [
        (_OPEN, opening[0]),
        (_OPENAT, opening[1]),
        # FSTATAT too, which describes an open file if the path is empty.
        *((call, _not_of(given)) for call in (_FSTAT, _FSTATAT, *_DUPLICATING)),
        # glibc falls back to the calls whose arguments a filter can see.
        (_CLONE3, [_ABSENT]),
        (_OPENAT2, [_ABSENT]),
        (_CLONE, _THREADS_ONLY),
        # Not F_SETOWN, F_SETSIG, F_NOTIFY: they make the kernel signal another process.
        (_FCNTL, [*_only(1, _GETFD, _SETFD, _GETFL, _SETFL)[:-1],
                  (_EQUAL, 1, 0, _DUPFD), (_EQUAL, 0, len(_not_of(given)), _DUPFD_CLOEXEC),
                  *_not_of(given), REFUSE]),
        (_IOCTL, _only(1, _TCGETS, _TIOCGWINSZ, _FIONREAD, _FIONBIO, _FIOCLEX)),
        # Its own limits (pid 0), not another's; and not that of CPU, by which the kernel would kill
        # it: as no program can cause a SIGKILL, it always signals a fault outside.
        (_PRLIMIT, [_argument(0), (_EQUAL, 1, 0, 0), REFUSE,
                    _argument(1), (_EQUAL, 1, 0, _RLIMIT_CPU), ALLOW,
                    _argument(2), (_EQUAL, 1, 0, 0), REFUSE,
                    _argument(2, high=True), (_EQUAL, 0, 1, 0), ALLOW, REFUSE]),
        # Programs fall back to older calls, which reveal less of the host.
        (_STATX, [_ABSENT]),
        (_MADVISE, _only(2, *_ADVICE)),
        # Shared memory is a file too, with the next number of the host's files in memory.
        (_MMAP, [_argument(3), (_ANY_BIT, 0, 1, 0xFFFFFFFF & ~_MAPPING), REFUSE,
                 (_AND, 0, 0, _SHARED | _ANONYMOUS),
                 (_EQUAL, 0, 1, _SHARED | _ANONYMOUS), REFUSE, ALLOW]),
        (_FUTEX, [_argument(1), (_AND, 0, 0, _FUTEX_COMMAND),
                  *(line for command in _PRIORITY_INHERITANCE
                    for line in ((_EQUAL, 0, 1, command), REFUSE)), ALLOW]),
        (_SETRLIMIT, [_argument(0), (_EQUAL, 0, 1, _RLIMIT_CPU), REFUSE, ALLOW]),
        # Only of itself: it may not learn whether other processes exist, or how busy they are.
        (_GETPGID, _only(0, 0) if numbers else [REFUSE]),
        (_GETSID, _only(0, 0) if numbers else [REFUSE]),
        (_AFFINITY, _only(0, 0)),
        (_CLOCK_GETTIME, _NO_PROCESS),
        (_CLOCK_GETRES, _NO_PROCESS),
        (_CLOCK_NANOSLEEP, _NO_PROCESS),
    ]  # fmt: skip


def _argument(index: int, high: bool = False) -> Line:
    """Loads one half of an argument; both architectures are little-endian."""
    return (_LOAD, 0, 0, 16 + 8 * index + 4 * high)


_THREADS_ONLY = [_argument(0), (_ANY_BIT, 0, 1, _CLONE_THREAD), ALLOW, REFUSE]
_NO_PROCESS = [_argument(0), (_AT_LEAST, 0, 1, _CLOCK_OF_A_PROCESS), REFUSE, ALLOW]


def _not_of(given: int) -> list[Line]:
    """Refuses a call whose first argument is a descriptor below `given`."""
    return [_argument(0), (_AT_LEAST, 1, 0, given), REFUSE, ALLOW]


def _refuse_bits(mask: int) -> list[Line]:
    return [(_ANY_BIT, 0, 1, mask), REFUSE, ALLOW]


def _only(index: int, *values: int) -> list[Line]:
    lines: list[Line] = [_argument(index)]
    for value in values:
        lines += [(_EQUAL, 0, 1, value), ALLOW]
    return [*lines, REFUSE]


def assemble(blocks: dict[int, list[Line]], otherwise: list[Line]) -> Program:
    """Returns a filter that runs the block of a call's number, or `otherwise` for other numbers.

    It searches the number by bisection: the kernel runs the filter once for every number when it
    is installed, which a linear search makes slow.
    """
    _, architecture = _ARCHITECTURES[os.uname().machine]
    lines: list[Line] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        _KILL,
        (_LOAD, 0, 0, _NUMBER),
        *_bisect(_segments(blocks | {_X32: [REFUSE]}, otherwise)),
    ]
    return Program(len(lines), (_Instruction * len(lines))(*lines))


def _segments(blocks: dict[int, list[Line]], otherwise: list[Line]) -> list[tuple[int, list[Line]]]:
    """Returns (first number, block) of each run of numbers that share a block, in order."""
    segments = [(0, otherwise)]
    for number in sorted(blocks):
        for start, block in ((number, blocks[number]), (number + 1, otherwise)):
            if segments[-1][0] == start:
                segments.pop()
            if number == _X32 and start > number:
                continue  # everything above the bit
            if not segments or segments[-1][1] != block:
                segments.append((start, block))
    return segments


def _bisect(segments: list[tuple[int, list[Line]]]) -> list[Line]:
    if len(segments) == 1:
        return segments[0][1]
    middle = len(segments) // 2
    below, above = _bisect(segments[:middle]), _bisect(segments[middle:])
    # A jump spans at most 255 lines; `below` ends in a return, so falling through is safe.
    assert len(below) <= 255, "the filter has grown too long for one jump"
    return [(_AT_LEAST, len(below), 0, segments[middle][0]), *below, *above]
