# tries: to return a set that takes the reader quadratic time
# path: call
# observed: runtime_error, wrong_answer

def solve(x):
    return {n * (2**61 - 1) for n in range(1, 100)}
