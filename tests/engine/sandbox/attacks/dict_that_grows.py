# tries: to return a container that changes while it is read
# path: call
# observed: runtime_error, killed, time_limit, memory_limit, output_limit, wrong_answer

import threading


def solve(x):
    value = {0: 0}

    def grow():
        for i in range(10**6):
            value[i] = i
            del value[i]

    threading.Thread(target=grow, daemon=True).start()
    return value
