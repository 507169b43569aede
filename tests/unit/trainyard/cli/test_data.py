# SPDX-License-Identifier: Apache-2.0
"""The texts of `trainyard data` that depend on the platform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.load import load_file
from trainyard.cli.data import StackBucket, input_hint

EXAMPLES = Path(__file__).parents[4] / "stacks"


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        ("oci-pytorch-ddp", "`inputs: [{ mount: /data/images, prefix: data/images/ }]`"),
        ("aws-dl1-resnet", "`${bucket}/data/images`"),
        ("openpai-ddp-gloo", "`${bucket}/data/images`"),
    ],
)
def test_the_hint_after_put_depends_on_the_platform(stack: str, words: str) -> None:
    """Only OCI mounts buckets: `inputs` is refused elsewhere."""
    loaded = load_file(EXAMPLES / f"Pulumi.{stack}.yaml").stack
    assert loaded is not None
    nowhere: Any = None
    assert words in input_hint(StackBucket(loaded, nowhere), "data/images")
