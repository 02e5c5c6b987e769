"""Wire format between owner, zygote and child: one definition for all.

Owner to zygote: one ORDER with the descriptors of the job, or STOP. Zygote to owner: HEAD and
READY, or HEAD and the reason why the child has no walls; after a FORK_PER_CALL, also READY and HEAD
of each of its children. Inputs and results of a program are in memory files that owner and child
share and a zygote never reads, so the memory from which the child of the next job is forked holds
nothing of an earlier one:

    CALLS    job, result                        calls of the entry point, in order
    SCRIPT   job, result, stdin, stdout         the program as a script
    ANSWER   job, result, requests, responses   calls as a judge makes them
    JUDGE    job, result, responses, requests   code tests, whose calls go to an ANSWER
    FORK_PER_CALL  job, arguments, code, results   calls, each in its own child

A job is marshal (the owner is trusted), a result is one FRAME and UTF-8 payload per call.
Loaded by path in the zygote: standard library only.
"""

import struct

CALLS, SCRIPT, ANSWER, JUDGE, FORK_PER_CALL = range(5)
ORDER = struct.Struct("<BddQQd")
"""Kind; seconds of CPU and of wall time; bytes of memory, and of the largest file; seconds of CPU
of the kernel's own limit, which a program can read."""
HEAD = struct.Struct("<Bidd")  # exit reason, exit status or minus the signal, wall and CPU seconds
STOP = b"S"
READY = b"\xff"  # the first byte of neither a HEAD nor a text
MAX_MESSAGE = 1024
MAX_FORKS = 32
"""Most children of one FORK_PER_CALL; their HEADs fit into a message."""
MAX_WRITTEN = 32 << 20
"""Bytes of results beyond which a CALLS or a FORK_PER_CALL ends; further ones run the remaining
calls."""

FRAME = struct.Struct("<IBI")  # index of the call, kind, length of the payload
REQUEST = struct.Struct("<I")  # length of the marshalled arguments
EXITED, SIGNALLED, OUT_OF_TIME, STOPPED = range(4)
VALUE, RUNTIME_ERROR, SYNTAX_ERROR, MEMORY_LIMIT, OUTPUT_LIMIT, RAISED, WRONG, PROGRAM_ENDED = (
    range(8)
)
SHAPED = 8
"""VALUE: the payload is a literal. RAISED, to a judge only: a literal (class, message, text).
SHAPED, to a judge only: a literal (shape, items) of a result that is no plain value (shapes.py).
WRONG: a code test failed by itself. PROGRAM_ENDED: the program's process ended during the
test."""
NOT_LOADED = 16
"""Added to the kind of a failure that occurred before any call could be made."""
MAX_ERROR_CHARS = 200
TRACE = "\x1f"
"""Ends the text of a RUNTIME_ERROR of the program; after it the last MOST_FRAMES frames of the
program in the traceback, outermost first, one `LINE NAME` per line."""
MOST_FRAMES, MAX_NAME_CHARS = 2, 60
MAX_TRACE_CHARS = MOST_FRAMES * (MAX_NAME_CHARS + 12)


def max_payload(output_bytes: int) -> int:
    """Returns the most bytes of a frame's payload: a character takes up to four bytes."""
    return 4 * max(output_bytes, 4 * MAX_ERROR_CHARS)
