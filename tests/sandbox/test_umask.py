"""Programs run as an account of their own; they see their libraries whatever the umask."""

import os

from engine.config import SandboxConfig
from engine.sandbox.checking import self_check
from engine.sandbox.sandbox import Sandbox


def test_a_sandbox_passes_its_self_check_where_new_files_are_the_owners_alone():
    before = os.umask(0o077)  # as webapp.private_files has it for every process of the site
    try:
        with Sandbox(SandboxConfig(workers=1, cpu_seconds=10, wall_seconds=20)) as sandbox:
            self_check(sandbox)
    finally:
        os.umask(before)
