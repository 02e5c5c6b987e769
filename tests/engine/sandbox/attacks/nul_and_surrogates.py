# tries: to break the channel with NUL, lone surrogates and line breaks
# path: call
# observed: wrong_answer

def solve(x):
    print("\0\ud800\u2028\x1c" * 10)
    return "[1, 2]\0\ud800\n[1, 2]"
