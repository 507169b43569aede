# SPDX-License-Identifier: Apache-2.0
"""What moto lacks and stacks need, in moto's own manner: backends with state, and handlers of responses.

| module | what it adds | why |
| --- | --- | --- |
"""

from __future__ import annotations


def install() -> None:
    """Gives moto's classes what they lack. Called once, before the first request."""
    from moto import settings

    # The bucket is in the path here, whatever the Host header says.
    settings.S3_IGNORE_SUBDOMAIN_BUCKETNAME = True
    # A thousand public images take a second to load and are of no use here.
    settings.ec2_load_default_amis = lambda: False
