# tries: to return a value that is nested too deep for any reader
# path: call
# observed: runtime_error, killed

def solve(x):
    for _ in range(10**5):
        x = [x]
    return x
