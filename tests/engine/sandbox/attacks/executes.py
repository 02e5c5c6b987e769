# tries: to start another program, with privileges if it has any
# path: call
# observed: wrong_answer

import os
import subprocess


def solve(x):
    for path in ("/bin/true", "/bin/sh", "/usr/bin/sudo", "/bin/su", "/usr/bin/passwd",
                 "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"):
        try:
            subprocess.run([path], timeout=1)
            return sorted(x)
        except (OSError, subprocess.SubprocessError):
            pass
        try:
            os.execv(path, [path])
        except OSError:
            pass
    return None
