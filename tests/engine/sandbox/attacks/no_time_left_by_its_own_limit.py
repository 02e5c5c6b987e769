# tries: to have the kernel kill it by SIGKILL, which would look like a failure of the machine
# path: call
# observed: runtime_error

import resource
import signal

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
while True:
    pass
