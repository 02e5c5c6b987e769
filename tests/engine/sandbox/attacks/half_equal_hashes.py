# tries: to make comparing slow where only half of the hashes are equal
# path: call
# observed: wrong_answer, output_limit, time_limit, runtime_error

SAME = [n * (2**61 - 1) for n in range(1, 70)]


def solve(x):
    return {*SAME, *range(1, 80)}
