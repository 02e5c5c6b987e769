# tries: to take memory that the allocator does not count
# path: call
# observed: runtime_error, killed, time_limit, memory_limit, output_limit, wrong_answer

import mmap


def solve(x):
    kept = []
    while True:
        kept.append(mmap.mmap(-1, 16 << 20))
        kept[-1][:] = b"x" * (16 << 20)
