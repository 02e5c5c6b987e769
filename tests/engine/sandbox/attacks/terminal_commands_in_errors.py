# tries: to command the terminal of whoever reads the log
# path: call
# observed: runtime_error

def solve(x):
    raise ValueError("\x1b]0;owned\x07\x1b[2J\0\r\u202epassed\x9b1m")
