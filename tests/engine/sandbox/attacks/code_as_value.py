# tries: to return text that a careless reader would evaluate
# path: call
# observed: wrong_answer

def solve(x):
    return "__import__('os').system('touch /grove-was-here') or [1, 2]"
