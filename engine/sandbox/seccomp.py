"""System calls that a program has no business with, refused by the kernel.

Invariant: behind this filter a process can signal, trace or open no other process, start none,
reach no network and enter no namespace. Standard library only: loaded by path in the zygote.
"""

import ctypes
import errno
import os

PR_SET_SECCOMP, MODE_FILTER = 22, 2
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000 | errno.EPERM, 0x7FFF0000
_NUMBER, _ARCHITECTURE, _ARGUMENT_0 = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000  # a second table of the same calls on x86_64

# name: (x86_64, aarch64); numbers from the kernel's syscall tables, None where there is none.
REFUSED = {
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "kcmp": (312, 272),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "setpriority": (141, 140), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "clone": (56, 220), "clone3": (435, 435), "fork": (57, None), "vfork": (58, None),
    "execve": (59, 221), "execveat": (322, 281), "unshare": (272, 97), "setns": (308, 268),
    "socket": (41, 198), "socketpair": (53, 199), "io_uring_setup": (425, 425),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "inotify_init1": (294, 26), "fanotify_init": (300, 262), "name_to_handle_at": (303, 264),
}  # fmt: skip
_PRLIMIT64 = (302, 261)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


class _Instruction(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint16),
        ("jump_true", ctypes.c_uint8),
        ("jump_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    ]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction))]


def build() -> _Program | None:
    """The filter for this machine; None if its kernel or architecture has no support."""
    machine = os.uname().machine
    libc = ctypes.CDLL(None, use_errno=True)
    supported = libc.prctl(PR_SET_SECCOMP, MODE_FILTER, None, 0, 0) == -1
    if machine not in _ARCHITECTURES or not (supported and ctypes.get_errno() == errno.EFAULT):
        return None
    column, architecture = _ARCHITECTURES[machine]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for numbers in REFUSED.values():
        if numbers[column] is not None:
            lines += [(_JUMP_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _REFUSE)]
    lines += [  # prlimit64 is how a process sets its own limits (pid 0), or another's
        (_JUMP_EQUAL, 0, 3, _PRLIMIT64[column]),
        (_LOAD, 0, 0, _ARGUMENT_0),
        (_JUMP_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return _Program(len(lines), (_Instruction * len(lines))(*lines))
