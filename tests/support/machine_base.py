# SPDX-License-Identifier: Apache-2.0
"""A base image made of this machine's Python, C compiler and shell, for machines that cannot reach a registry."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PROGRAMS = ("sh", "cat", "chown", "cut", "getent", "grep", "groupadd", "head", "id", "mkdir", "rm", "sed", "useradd")
# The programs of a C compiler, by the names under which it finds them.
COMPILER_PROGRAMS = ("cc1", "collect2", "lto-wrapper", "as", "ld")
COMPILER_FILES = (
    "liblto_plugin.so", "crti.o", "crtn.o", "crtbeginS.o", "crtendS.o", "libgcc.a", "libgcc_s.so", "libgcc_s.so.1",
    "libc.so", "libc.so.6", "libc_nonshared.a", "libdl.a",
)  # fmt: skip
VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "test", "tests", "site-packages", "idlelib", "tkinter", "turtledemo", "lib2to3", "config-*", "*.a"
)


class MachineBase:
    """The root file system of a base image, filled with files of this machine."""

    def __init__(self, root: Path, source: Path) -> None:
        """`source`: a C file that the base image has to be able to compile."""
        self.root = root
        for folder in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "usr/local/bin", "etc", "home", "tmp"):
            (root / folder).mkdir(parents=True)
        for folder in ("bin", "lib", "lib64", "sbin"):
            (root / folder).symlink_to(f"usr/{folder}")
        (root / "tmp").chmod(0o1777)
        (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (root / "etc" / "group").write_text("root:x:0:\n")
        (root / "etc" / "shadow").write_text("root:*:19000:0:99999:7:::\n")
        for name in PROGRAMS:
            self._put(Path(shutil.which(name) or name))
        self._put_python()
        self._put_compiler(source)

    def _put(self, file: Path) -> None:
        """Copies a file, and the libraries that it is linked with, to the same paths."""
        for one in (file, *_libraries(file)):
            place = self._inside(one.parent.resolve() / one.name)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(one.resolve(), place)

    def _inside(self, path: Path) -> Path:
        return self.root / path.relative_to("/")

    def _put_python(self) -> None:
        base, local = Path(sys.base_prefix), self.root / "usr" / "local"
        for library in _libraries(base / "bin" / VERSION):
            self._put(library)
        shutil.copy2((base / "bin" / VERSION).resolve(), local / "bin" / VERSION)
        (local / "bin" / "python3").symlink_to(VERSION)
        standard = local / "lib" / VERSION
        shutil.copytree(base / "lib" / VERSION, standard, ignore=_LEFT_OUT)
        (standard / "site-packages").mkdir()
        # Debian's ensurepip takes pip from the folder of another Debian package.
        if wheels := sysconfig.get_config_var("WHEEL_PKG_DIR"):
            shutil.copytree(wheels, self._inside(Path(wheels)), dirs_exist_ok=True)
        for module in standard.glob("lib-dynload/*.so"):
            for library in _libraries(module):
                self._put(library)

    def _put_compiler(self, source: Path) -> None:
        gcc = shutil.which("gcc") or "gcc"
        self._put(Path(gcc).resolve())
        self._link("gcc", Path(gcc))
        for name in COMPILER_PROGRAMS:
            found = Path(shutil.which(_said(gcc, f"-print-prog-name={name}")) or name)
            self._put(found.resolve())
            if found.name in ("as", "ld"):
                self._link(found.name, found)
        for name in COMPILER_FILES:
            file = Path(_said(gcc, f"-print-file-name={name}"))
            if file.is_absolute():
                self._put(Path(file.parent.resolve(), file.name))
        for header in re.findall(r"/usr/\S+\.h", _said(gcc, "-O2", "-M", str(source))):
            self._put(Path(header))

    def _link(self, name: str, program: Path) -> None:
        link = self.root / "usr" / "bin" / name
        if not link.exists():
            link.symlink_to(program.resolve())


def _said(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def _libraries(file: Path) -> list[Path]:
    told = subprocess.run(["ldd", str(file)], capture_output=True, text=True).stdout
    return [Path(name) for name in re.findall(r"(/\S+) \(0x", told)]
