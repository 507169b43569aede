# SPDX-License-Identifier: Apache-2.0
"""Makes the locks of the images from their .in files: `python launcher/images/lock.py [FILE.in]...`.

pip itself decides and reports, without downloading: a lock holds one wheel of each package, with its hash.
"""

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The images' Python and machine. On another machine pip would choose other wheels.
PYTHON, MACHINE = (3, 11), "x86_64"
HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# Made by launcher/images/lock.py from {source}, for Python 3.11 on x86-64: change that file, then run it again.
"""
# Everything below a line that begins with this is locked alone.
ALONE = "# Without what they depend on"
REPORT = ("--dry-run", "--ignore-installed", "--only-binary=:all:", "--use-feature=fast-deps", "--quiet")


def lock_of_source(source: Path) -> str:
    """The lock of one .in file."""
    whole, _, alone = source.read_text("utf-8").partition(ALONE)
    reported = _reported_packages(whole) + (_reported_packages(alone.partition("\n")[2], "--no-deps") if alone else [])
    return HEADER.format(source=source.name) + "\n".join(sorted(map(_pinned_line, reported))) + "\n"


def _reported_packages(requirements: str, *options: str) -> list[dict]:  # type: ignore[type-arg]  # pip's own report
    with tempfile.TemporaryDirectory() as folder:
        report, listed = Path(folder, "report.json"), Path(folder, "requirements.in")
        listed.write_text(requirements, "utf-8")
        words = [sys.executable, "-I", "-m", "pip", "install", *REPORT, *options, "--report", str(report)]
        subprocess.run([*words, "--requirement", str(listed)], check=True)
        return list(json.loads(report.read_text("utf-8"))["install"])


def _pinned_line(one: dict) -> str:  # type: ignore[type-arg]  # pip's own report
    name, version = one["metadata"]["name"].lower().replace("_", "-"), one["metadata"]["version"]
    return f"{name}=={version} \\\n    --hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}"


def main(names: list[str]) -> None:
    if (sys.version_info[:2], platform.machine(), sys.platform) != (PYTHON, MACHINE, "linux"):
        sys.exit("lock.py asks pip what fits Python 3.11 on Linux, x86-64: run it there")
    for source in [Path(name).resolve() for name in names] or sorted(HERE.glob("*/*.in")):
        print(f"locking {source.relative_to(HERE)}", flush=True)
        source.with_suffix(".txt").write_text(lock_of_source(source), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
