# tries: to print one line without an end
# path: stdin
# observed: output_limit

import sys

while True:
    sys.stdout.write("1")
