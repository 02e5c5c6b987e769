# tries: to read files of the host and of other programs
# path: call
# observed: wrong_answer

def solve(x):
    for path in (
        "/etc/passwd", "/etc/shadow", "/etc/hosts", "/etc/hostname", "@SECRET@", "/root/.bashrc",
        "/var/log/dpkg.log", "/sys/kernel/uevent_seqnum", "/dev/mem", "/dev/kmsg", "/dev/zero",
    ):
        try:
            open(path, "rb").read(1)
            return sorted(x)
        except OSError:
            pass
    return None
