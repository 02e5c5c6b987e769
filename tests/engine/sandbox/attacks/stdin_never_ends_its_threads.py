# tries: to keep the interpreter from ending, after a wrong answer
# path: stdin
# observed: time_limit, runtime_error
# waits: yes

import threading
import time

print("nothing")
threading.Thread(target=time.sleep, args=(10**6,)).start()
