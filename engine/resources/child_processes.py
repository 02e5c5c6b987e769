"""Exit statuses of child processes, in whatever way this process was started."""

from __future__ import annotations

import signal
import threading


def restore_sigchld() -> None:
    """Undoes an inherited SIG_IGN of SIGCHLD (`trap '' CHLD`, some service managers), with which
    the kernel discards the exit statuses of children, and all of them would be 0. Every entry point
    calls it; outside the main thread, where Python sets no handlers, it does nothing."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
