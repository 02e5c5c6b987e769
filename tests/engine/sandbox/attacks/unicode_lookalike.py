# tries: to return digits that look right and are others
# path: call
# observed: wrong_answer

def solve(x):
    return ['１', '２']
