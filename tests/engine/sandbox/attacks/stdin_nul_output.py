# tries: to print NUL and bytes that are no text after the answer
# path: stdin
# observed: wrong_answer

import sys

numbers = sorted(map(int, input().split()))
sys.stdout.buffer.write(" ".join(map(str, numbers)).encode() + b"\0\xff")
