# SPDX-License-Identifier: Apache-2.0
"""Corrects calls that only the real Pulumi provider makes."""

from __future__ import annotations

from typing import Any

from localcloud.aws.additions.outside import Operations


class TagsOfBuckets(Operations):
    """Operations of S3 Control. They refuse buckets that do not exist, which moto accepts."""

    def list_tags_for_resource(self) -> Any:
        return self._of_existing_bucket("list_tags_for_resource")

    def tag_resource(self) -> Any:
        return self._of_existing_bucket("tag_resource")

    def untag_resource(self) -> Any:
        return self._of_existing_bucket("untag_resource")

    def _of_existing_bucket(self, operation: str) -> Any:
        from moto.s3.models import s3_backends

        bucket = self._get_param("ResourceArn").rpartition(":")[2]
        s3_backends[self.current_account][self.partition].get_bucket(bucket)
        return self._by_moto(operation)
