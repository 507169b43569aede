# SPDX-License-Identifier: Apache-2.0
"""The embedded cloud: the APIs of all platforms on loopback, their state on disk, runs as real processes.

`serve.py` puts it together: a server (`server`) that knows no platform, the platforms (`oci`, `aws`, `openpai`), hosts
that carry out what platforms give them (`hosts`), and the console. `control.py` starts it, `admin.py` asks it what no
platform's API answers, `plugins` are the Pulumi providers beside it, `environments` what stands in for images.
"""
