# tries: to leave with success before a test is run
# path: call
# observed: runtime_error

import os

os._exit(0)
