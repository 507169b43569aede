# SPDX-License-Identifier: Apache-2.0
"""What the calls that only the provider makes lack in moto."""

from __future__ import annotations

from typing import Any


def install() -> None:
    """Once in a process."""
    from moto.s3control.models import S3ControlBackend

    for name in ("list_tags_for_resource", "tag_resource", "untag_resource"):
        setattr(S3ControlBackend, name, _of_existing_bucket(getattr(S3ControlBackend, name)))


def _of_existing_bucket(original: Any) -> Any:
    """moto has tags also for buckets that are not there."""

    def tags_of(self: Any, resource_arn: str, *args: Any, **named: Any) -> Any:
        from moto.s3.models import s3_backends

        s3_backends[self.account_id][self.partition].get_bucket(resource_arn.rpartition(":")[2])
        return original(self, resource_arn, *args, **named)

    return tags_of
