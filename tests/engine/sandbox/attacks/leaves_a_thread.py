# tries: to leave a busy thread behind
# path: call
# observed: runtime_error, wrong_answer, time_limit

import threading


def spin():
    while True:
        pass


threading.Thread(target=spin).start()


def solve(x):
    return None
