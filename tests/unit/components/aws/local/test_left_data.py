# SPDX-License-Identifier: Apache-2.0
"""What a cloud still holds is listed even if one bucket cannot be read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.aws.local import removal
from components.aws.local.stacks import LOCAL
from components.platform.calls import ProviderError


def test_a_bucket_that_cannot_be_read_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("broken", "full")

    def objects(session: Any, bucket: str, tell: Any) -> str:
        if bucket == "broken":
            raise ProviderError("Look into the bucket broken: 500", "")
        return "2 objects"

    client = SimpleNamespace(list_buckets=lambda: {"Buckets": [{"Name": name} for name in names]})
    monkeypatch.setattr(removal, "local_aws_session", lambda *_: SimpleNamespace(client=lambda _: client))
    monkeypatch.setattr(removal, "local_aws_regions", lambda: ("us-east-1",))
    monkeypatch.setattr(removal, "ask_aws", lambda tell, what, operation: operation())
    monkeypatch.setattr(removal, "list_pages", lambda *_, **__: iter(()))
    monkeypatch.setattr(removal, "_count_objects", objects)
    monkeypatch.setattr(removal, "is_aws_kept", lambda folder: True)
    broken, full = LOCAL.list_data(SimpleNamespace(home=Path()), print)
    assert "broken with its content, which cannot be read" in broken
    assert full.endswith("full with its 2 objects")
