# SPDX-License-Identifier: Apache-2.0
"""A change of the key that encrypts a stack's secrets is a warning of its review, without the key's own text."""

from pathlib import Path

from schemas.judge import judge_file
from trainyard.review.reviewing import _StackSides, _warn_of_changed_keys

SHIPPED = Path(__file__).parents[4] / "stacks" / "Pulumi.local.yaml"


def test_a_changed_key_of_the_secrets_is_named_and_not_shown(tmp_path: Path) -> None:
    judged = []
    for name, top in (("old", "encryptionsalt: v1:ours\n"), ("new", "secretsprovider: awskms://alias/theirs\n")):
        file = tmp_path / f"Pulumi.{name}.yaml"
        file.write_text(top + SHIPPED.read_text())
        judged.append(judge_file(file))
    old, new = judged
    warnings = list(_warn_of_changed_keys(_StackSides("local", old, new)))
    assert [warning.split()[0] for warning in warnings] == ["secretsprovider", "encryptionsalt"]
    assert not any(word in warning for warning in warnings for word in ("ours", "theirs"))
    assert list(_warn_of_changed_keys(_StackSides("local", old, old))) == []
    assert list(_warn_of_changed_keys(_StackSides("local", None, new))) == [], "nothing of a new stack has changed"
