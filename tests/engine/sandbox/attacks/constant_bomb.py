# tries: to have the compiler fold a huge constant
# path: call
# observed: time_limit, memory_limit, wrong_answer

def solve(x):
    return 10 ** 10 ** 10 % 7
