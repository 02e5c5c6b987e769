# tries: to be right in later calls only, by how its code was specialised in earlier ones, as a program without state
# path: call
# observed: wrong_answer

def add(a, b):
    return a + b


def solve(x):
    before = "{0.__code__._co_code_adaptive}".format(add)
    for n in range(20):
        add(n, 1)
    after = "{0.__code__._co_code_adaptive}".format(add)
    return sorted(x) if before == after else None
