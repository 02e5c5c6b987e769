# tries: to break the reader of its output with half a character
# path: stdin
# observed: wrong_answer

import os

numbers = sorted(map(int, input().split()))
os.write(1, " ".join(map(str, numbers)).encode() + b"\xed\xa0\x80")
