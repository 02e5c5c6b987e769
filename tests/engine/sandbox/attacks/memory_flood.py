# tries: to take all memory, and again after each refusal
# path: call
# observed: memory_limit, time_limit, killed

def solve(x):
    kept = []
    while True:
        try:
            kept.append(bytearray(1 << 20))
        except MemoryError:
            kept.append(kept[:])
