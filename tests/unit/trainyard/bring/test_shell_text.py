# SPDX-License-Identifier: Apache-2.0
"""Scripts whose braces were taken out print what they printed before: bash is asked."""

from __future__ import annotations

import re
import subprocess

import pytest

from trainyard.bring.shell_text import read_variable, replace_in_shell, replace_secrets, without_braces

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


# A secret in a command -> the variable that stands in its place. The text is printed as it was with that value.
_SECRETS = {
    "printf '[%s]' WANDB_API_KEY=abcdef123456abcdef1": ("WANDB_API_KEY", "abcdef123456abcdef1"),
    "printf '[%s]' --token hf_AbCdEfGhIjKlMnOpQr1234 && true": ("TOKEN", "hf_AbCdEfGhIjKlMnOpQr1234"),
    "printf '[%s]' --api-key='s3cr3tvalue9' --lr 0.1": ("API_KEY", "s3cr3tvalue9"),
    "printf '[%s]' https://bob:hunter22@git.example.com/x.git": (
        "SECRET",
        "https://bob:hunter22@git.example.com/x.git",
    ),
    "printf '[%s]' \"Bearer ghp_abcdefghijklmnopqrstuv1234\"": ("SECRET", "ghp_abcdefghijklmnopqrstuv1234"),
}


@pytest.mark.parametrize("script", _SECRETS)
def test_a_secret_of_a_command_becomes_a_variable(script: str) -> None:
    name, value = _SECRETS[script]
    made, names = replace_secrets(script)
    assert (names, value in made) == ([name], False)
    assert _printed(f"{name}='{value}'; {made}") == _printed(script)


def test_what_only_looks_like_a_secret_stays() -> None:
    script = 'python x.py --token "$TOK" --max_tokens 512 --tokenizer gpt --key <% $parameters.key %> PAD_TOKEN=0'
    assert replace_secrets(script) == (script, [])
