# tries: to change the judge's own objects through its arguments
# path: code
# observed: wrong_answer

def solve(x):
    x.clear()
    x.extend([1, 2])
    return None
