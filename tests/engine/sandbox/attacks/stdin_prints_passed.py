# tries: to print a verdict instead of an answer
# path: stdin
# observed: wrong_answer

print('PASSED')
print('1 2')
print('3 1')
