# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.support.provider_source PATH`: the calls in the source of terraform-provider-aws that
no row of components/aws/types names. PATH: a checkout, or a bare repository, of it.

It follows names of functions through a package, so it also finds the calls of waiters and helpers. It may find too
many: then a row says under `unreached` why none of our inputs leads to such a call.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from components.aws.types import SERVED_TYPES
from components.aws.types.functions import FUNCTIONS
from components.aws.types.provider_calls import aws_function_calls, aws_type_calls

# The variable that names a checkout, for the test that reads it.
VARIABLE = "TRAINYARD_PROVIDER_SOURCE"
_FUNCTION = re.compile(r"^func (?:\([^)]*\) )?(\w+)\(.*?^}", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"\b\w*[cC]onn\.([A-Z]\w*?)(?:PagesWithContext|WithContext|Pages)?\(ctx|\.New(\w+?)Paginator\(")
_PHASE = re.compile(
    r"^func (?:\([^)]*\) )?((?:data|resource)\w*(?:Create|Put|Upload|Read|Update|Delete))\(", re.MULTILINE
)
_METHODS = frozenset({"create", "read", "update", "delete"})
_WORD = re.compile(r"\b\w+\b")


class ProviderSource:
    """The packages of one checkout."""

    def __init__(self, place: Path) -> None:
        self._git = ["git", f"--git-dir={place / '.git' if (place / '.git').exists() else place}"]

    def missing(self) -> Iterator[str]:
        """The calls that a row does not name, one line for each file."""
        for token, source, named in named_by_rows():
            if more := sorted(self.calls(source) - named):
                yield f"{token} ({source}): {' '.join(more)}"

    def calls(self, file: str) -> set[str]:
        package, text = file.split("/")[0], self._read(f"internal/service/{file}")
        return {call for name in _PHASE.findall(text) for call in self._reached(package, name, set())}

    def _reached(self, package: str, name: str, seen: set[str]) -> set[str]:
        functions = self._functions(package)
        if name in seen or name not in functions:
            return set()
        seen.add(name)
        body = functions[name].partition("{")[2]
        # These names are also methods of many types, so they are not followed: only functions of the package are.
        further = {word for word in _WORD.findall(body) if word in functions and word.lower() not in _METHODS}
        found = {one or other for one, other in _CALL.findall(body)}
        return found.union(*(self._reached(package, word, seen) for word in further))

    @cache  # noqa: B019 - there is one in a process
    def _functions(self, package: str) -> Mapping[str, str]:
        listed = self._ask("ls-tree", "--name-only", f"HEAD:internal/service/{package}").split()
        files = [name for name in listed if name.endswith(".go") and not name.endswith("_test.go")]
        texts = [self._read(f"internal/service/{package}/{name}") for name in files]
        return {match[1]: match[0] for text in texts for match in _FUNCTION.finditer(text)}

    @cache  # noqa: B019
    def _read(self, path: str) -> str:
        return self._ask("show", f"HEAD:{path}")

    def _ask(self, *words: str) -> str:
        return subprocess.run([*self._git, *words], capture_output=True, text=True, check=True, timeout=60).stdout


def named_by_rows() -> Iterator[tuple[str, str, frozenset[str]]]:
    """Each type and function, its file, and every call that its row names, including those under `unreached`."""
    for token, row in SERVED_TYPES.items():
        provider = row.provider
        further = " ".join((*provider.before.values(), *provider.unreached.values())).split()
        yield token, provider.source, aws_type_calls(token).every_call().union(further)
    for token, function in FUNCTIONS.items():
        further = " ".join((*function.before.values(), *function.unreached.values())).split()
        yield token, function.source, aws_function_calls(token).every_call().union(further)


if __name__ == "__main__":
    lines = list(ProviderSource(Path(sys.argv[1])).missing())
    print("\n".join(lines) or "nothing is missing")
    sys.exit(bool(lines))
