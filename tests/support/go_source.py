# SPDX-License-Identifier: Apache-2.0
"""Reads the source of Oracle's provider as text: the calls that create, read, update and delete of each resource make,
and its schema."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# A checkout or a bare repository of github.com/oracle/terraform-provider-oci.
VARIABLE = "TRAINYARD_OCI_PROVIDER"
_FUNCTION = re.compile(r"^func (?:\(\w+ \*?(?P<of>\w+)\) )?(?P<name>\w+)\(.*?^}", re.MULTILINE | re.DOTALL)
_API_CALL = re.compile(r"\b\w*[cC]lient\.([A-Z]\w+)\(\s*(?:context|ctx)\b")
_OWN_CALL = re.compile(r"\b(?:s|sync)\.([A-Za-z]\w*)\(")
_PLAIN_CALL = re.compile(r"(?<![.\w])([a-z]\w+)\(")
_STATE = re.compile(r"LifecycleState([A-Z]\w+)\)")
_FIELD = re.compile(r'^(\t+)"(\w+)": \{$')
# Helpers of crud_helpers.go, and the calls that they make.
_HELPERS: Mapping[str, tuple[str, ...]] = {
    "WaitForWorkRequestWithErrorHandling": ("GetWorkRequest",),
    "ReadResource": ("Get()",),
    "DeleteAllObjectVersions": ("ListObjectVersions", "DeleteObject"),
}


def text_of(path: str) -> str:
    """A file of the provider's source."""
    assert os.environ.get(VARIABLE), f"{VARIABLE} names no copy of the provider's source"
    place = Path(os.environ[VARIABLE])
    if (place / path).is_file():
        return (place / path).read_text()
    shown = subprocess.run(["git", "-C", str(place), "show", f"HEAD:{path}"], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def names_in(folder: str) -> list[str]:
    """The Go files of a folder, without its folders and tests."""
    place = Path(os.environ[VARIABLE])
    if (place / folder).is_dir():
        names = [f"{folder}/{file.name}" for file in (place / folder).iterdir()]
    else:
        command = ["git", "-C", str(place), "ls-tree", "--name-only", "HEAD", f"{folder}/"]
        names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if name.endswith(".go") and not name.endswith("_test.go")]


def _plain(name: str) -> str:
    """In newer types, the names of methods end with `WithContext`."""
    return name.removesuffix("WithContext")


@dataclass(frozen=True)
class GoFile:
    """One file with one resource type or one data source."""

    text: str

    @cached_property
    def functions(self) -> Mapping[str, str]:
        """The text of each function and method, by its name."""
        return {_plain(found["name"]): found[0] for found in _FUNCTION.finditer(self.text)}

    @property
    def calls(self) -> frozenset[str]:
        """Every call of the API in the file."""
        return frozenset(_API_CALL.findall(self.text)) | self._helped(self.text)

    def reached(self, name: str) -> frozenset[str]:
        """All calls that a function can make, directly or through other functions."""
        return frozenset().union(*(self._direct(self.functions[one]) for one in self._closure(name)))

    def step(self, verb: str) -> frozenset[str]:
        """The calls of a step such as `create`: those of its function and its method, and the reads that wait for the
        result."""
        entry = next(name for name in self.functions if re.fullmatch(f"{verb}[A-Z]\\w+", name))
        method = "Get" if verb == "read" else verb.capitalize()
        waits = {"create": "CreatedTarget", "update": "UpdatedTarget", "delete": "DeletedTarget"}.get(verb)
        waited = self.reached("Get") if waits in self.functions else frozenset()
        return self.reached(entry) | self.reached(method) | waited

    def states(self, method: str) -> frozenset[str]:
        """The states that a method such as `CreatedTarget` names, in the API's spelling."""
        names = _STATE.findall(self.functions.get(method, ""))
        return frozenset(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() for name in names)

    def fields_with(self, attribute: str) -> frozenset[str]:
        """Paths of the schema's fields that have this attribute, such as `cidr_block` or `source_details.kind`."""
        return frozenset(path for path, line in self._lines() if re.match(rf"\t+{attribute}: +true,", line))

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Each line of the schema, with the path of its field. The indentation by gofmt shows where a block ends."""
        stack: list[tuple[int, str]] = []
        for line in self.text[: self.text.index("\n}\n")].splitlines():
            depth = len(line) - len(line.lstrip("\t"))
            while stack and line.strip() and depth <= stack[-1][0]:
                stack.pop()
            if opened := _FIELD.match(line):
                stack.append((depth, opened[2]))
            elif stack:
                yield ".".join(name for _, name in stack), line

    def _direct(self, body: str) -> frozenset[str]:
        return frozenset(_API_CALL.findall(body)) | self._helped(body)

    def _helped(self, body: str) -> frozenset[str]:
        made = {call for helper, calls in _HELPERS.items() if f"{helper}(" in body for call in calls}
        return frozenset(call for call in made if not call.endswith("()"))

    def _closure(self, name: str) -> frozenset[str]:
        seen, left = set(), [name]
        while left:
            one = _plain(left.pop())
            if one in seen or one not in self.functions:
                continue
            seen.add(one)
            body = self.functions[one]
            left += [*_OWN_CALL.findall(body), *_PLAIN_CALL.findall(body)]
            left += ["Get"] if "ReadResource(" in body else []
        return frozenset(seen)
