# tries: to print without end
# path: call
# observed: output_limit

def solve(x):
    while True:
        print('x' * 1000)
