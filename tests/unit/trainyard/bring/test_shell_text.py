# SPDX-License-Identifier: Apache-2.0
"""Scripts whose braces were taken out print what they printed before: bash is asked."""

from __future__ import annotations

import re
import subprocess

import pytest

from trainyard.bring.shell_text import read_variable, replace_in_shell, without_braces

_SCRIPTS = (
    'echo "size ${SIZE}x on ${SIZE}" a${SIZE}b ${SIZE}',
    "echo '${SIZE} {print}' \"{print}\" {print} \\{print}",
    "printf '%s\\n' 1 2 | awk '{print}' | sed \"s/1/${SIZE}/\"",
    'echo ${SIZE:-none} ${SIZE#s} ${#SIZE} "${SIZE}[0]" # it\'s {here} ${SIZE}',
    "bash -c 'SIZE=in; echo \"${SIZE}y\"'; echo \"it's ${SIZE}'s\"",
)


def _printed(script: str) -> str:
    done = subprocess.run(
        ["bash", "-c", script],
        env={"SIZE": "small", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("script", _SCRIPTS)
def test_a_script_without_braces_prints_the_same(script: str) -> None:
    plain = without_braces(script)
    assert not re.search(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\{[a-z_]+\}", plain)
    assert _printed(plain) == _printed(script)


@pytest.mark.parametrize("quoted", ["<% x %>", '"<% x %>"', "'<% x %>'", "a'b<% x %>c'd"])
def test_a_variable_is_one_word_in_any_quotes(quoted: str) -> None:
    script = f"SIZE='two words'; printf '[%s]' {quoted}"
    made = replace_in_shell(script, re.compile("<% x %>"), lambda match, quote: read_variable("SIZE", quote))
    assert _printed(made) == _printed(f"printf '[%s]' {quoted.replace('<% x %>', 'two words')}") or quoted == "<% x %>"
    assert _printed(made).count("[") == 1
