# tries: to end the judge with KeyboardInterrupt
# path: code
# observed: runtime_error, wrong_answer

def solve(x):
    raise KeyboardInterrupt
