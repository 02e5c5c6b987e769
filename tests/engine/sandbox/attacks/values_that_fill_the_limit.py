# tries: to keep the service busy with as many results as are allowed, each slow to read
# path: many
# observed: output_limit, wrong_answer


def solve(x):
    return [{1}] * 12000
