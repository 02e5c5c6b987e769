# tries: to return as many values as possible
# path: call
# observed: output_limit, memory_limit

def solve(x):
    return [0] * 10**6
