# tries: to hide its failure by tearing the channel of failures
# path: stdin
# observed: wrong_answer, runtime_error

import os

os.close(3)
raise ValueError("nobody shall know")
