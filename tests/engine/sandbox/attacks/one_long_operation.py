# tries: to spend its time in one operation that cannot be interrupted
# path: call
# observed: runtime_error, killed, time_limit, memory_limit, output_limit, wrong_answer

def solve(x):
    return len(str(7 ** (3 ** 15))) and sum(range(10**11))
