# tries: to run for ever, deaf to every signal
# path: call
# observed: time_limit

import signal

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass


def solve(x):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
