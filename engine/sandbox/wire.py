"""The bytes between owner, zygote and child: one definition for both sides.

Owner to zygote: LENGTH, then marshal (the owner is trusted). Zygote to owner: LENGTH, then
HEAD and the child's stream, unread. A stream is READY, written before the program is compiled,
and one frame per call: FRAME and a UTF-8 payload. Loaded by path in the zygote: standard
library only.
"""

import struct

LENGTH = struct.Struct("<I")
HEAD = struct.Struct("<Bid")  # how the child ended, exit status or minus the signal, seconds
FRAME = struct.Struct("<IBI")  # index of the call, kind, length of the payload
READY = b"R"
EXITED, SIGNALLED, OUT_OF_TIME, TOO_MUCH_OUTPUT = range(4)
VALUE, RUNTIME_ERROR, SYNTAX_ERROR, MEMORY_LIMIT, OUTPUT_LIMIT = range(5)
MAX_ERROR_CHARS = 200


def max_payload(output_bytes: int) -> int:
    """Most bytes of a frame's payload: a character takes up to four of them."""
    return 4 * max(output_bytes, MAX_ERROR_CHARS)
