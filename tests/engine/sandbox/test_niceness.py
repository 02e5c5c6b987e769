"""Test that a sandbox inherits its owner's niceness where the kernel schedules by session."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

OWNER = """
import os
from pathlib import Path
from engine.sandbox.host.process import Zygote
os.nice({added})
zygote = Zygote(0)
print(Path(f"/proc/{{zygote.pid}}/autogroup").read_text().split()[-1])
zygote.close()
"""


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="a kernel without autogroup")
@pytest.mark.parametrize("added", [0, 7])
def test_the_session_of_a_sandbox_is_as_nice_as_its_owner(added):
    niceness = min(os.nice(0) + added, 19)  # the suite itself may be nice
    program = OWNER.format(added=added)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == str(niceness), done.stderr
