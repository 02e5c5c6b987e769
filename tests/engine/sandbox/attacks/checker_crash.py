# tries: to crash the checker with a value that it does not expect
# path: checker
# observed: wrong_answer

def solve(x):
    return {None: (1, {2}), b'x': float('nan')}
