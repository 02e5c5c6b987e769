# tries: to return a value that contains itself
# path: call
# observed: runtime_error

def solve(x):
    x[0] = x
    return x
