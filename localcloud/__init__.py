# SPDX-License-Identifier: Apache-2.0
"""The embedded cloud: the APIs of all platforms on loopback, their state on disk, runs as real processes.

`serve.py` puts it together: a server (`server`) that knows no platform, the platforms (`oci`, `aws`, `openpai`), hosts
that carry out runs of all platforms (`hosts`), and the console. `control.py` starts it, `admin.py` calls operations
that no platform's API has, `plugins` has the Pulumi providers for it, and `environments` the replacements for images.
"""
