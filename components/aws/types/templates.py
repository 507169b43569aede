# SPDX-License-Identifier: Apache-2.0
"""Templates in rows: components/aws/types/aws_resource_type.py describes them."""

import re
from collections.abc import Mapping
from typing import Any

# A name in a template.
_NAME = re.compile(r"\{(\w+)\}")


def names_in(template: str) -> list[str]:
    return _NAME.findall(template)


def fill_template(template: Any, context: Mapping[str, Any]) -> Any:
    """Fills in a template. None if a name in it has no value."""
    if isinstance(template, Mapping):
        filled = {key: fill_template(item, context) for key, item in template.items()}
        return {key: item for key, item in filled.items() if item is not None}
    if isinstance(template, list):
        return [fill_template(item, context) for item in template]
    if not isinstance(template, str):
        return template
    names = _NAME.findall(template)
    if any(context.get(name) is None for name in names):
        return None
    if template == f"{{{names[0]}}}" if names else False:
        return context[names[0]]
    return _NAME.sub(lambda match: str(context[match[1]]), template)


def parts_of(template: str, text: str) -> dict[str, Any]:
    """The reverse of `fill`: the values of a template's names in `text`."""
    pattern = "".join(
        f"(?P<{part}>.+{'?' if index < template.count('{') * 2 - 1 else ''})" if index % 2 else re.escape(part)
        for index, part in enumerate(_NAME.split(template))
    )
    match = re.fullmatch(pattern, text)
    return match.groupdict() if match else {}
