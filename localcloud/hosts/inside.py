# SPDX-License-Identifier: Apache-2.0
"""Where things lie for the processes of a node: the same on every machine, and as on OCI where OCI has a place."""

from __future__ import annotations

USER = "datascience"
NUMBER = 1000
HOME = f"/home/{USER}"
TEMPORARY = "/tmp"
# What a run is given: its token, and who is there of its cluster.
GIVEN = "/run/trainyard"
# The launcher lies here, and nothing else of the checkout.
PROJECT = "/opt/trainyard"
# Whole files of `/etc`. Names are looked up in files and by DNS: the machine's own ways lead out of a node.
FILES = {
    "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\n{USER}:x:{NUMBER}:{NUMBER}:{USER}:{HOME}:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": f"root:x:0:\n{USER}:x:{NUMBER}:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    # Where OCI's resolver is. Nothing answers here, and at once: the machine's own may be behind a rule that is silent.
    "resolv.conf": "nameserver 169.254.169.254\noptions timeout:1 attempts:1\n",
}
