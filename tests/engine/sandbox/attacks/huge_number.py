# tries: to return a number that takes the reader quadratic time
# path: call
# observed: output_limit, memory_limit

def solve(x):
    return 1 << (1 << 26)
