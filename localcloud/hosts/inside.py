# SPDX-License-Identifier: Apache-2.0
"""The paths that the processes of a node see: the same on every machine, and OCI's own where OCI has one."""

from __future__ import annotations

USER = "datascience"
NUMBER = 1000
HOME = f"/home/{USER}"
TEMPORARY = "/tmp"
# The files a run gets: its token, and the list of the nodes of its cluster.
GIVEN = "/run/trainyard"
# The launcher lies here, and nothing else of the checkout.
PROJECT = "/opt/trainyard"
# Files of `/etc`. Names are looked up in files and by DNS only: the machine's other ways would lead out of a node.
FILES = {
    "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\n{USER}:x:{NUMBER}:{NUMBER}:{USER}:{HOME}:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": f"root:x:0:\n{USER}:x:{NUMBER}:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    # The address of OCI's resolver. Here it fails at once. The machine's own resolver could hang behind a silent rule.
    "resolv.conf": "nameserver 169.254.169.254\noptions timeout:1 attempts:1\n",
}
