# SPDX-License-Identifier: Apache-2.0
"""`python -m localcloud.plugin.oci <engine address>`: what `pulumi-resource-oci` runs."""

import sys

from localcloud.plugin.oci.plugin import LocalOci
from provider.base.serve import main

if __name__ == "__main__":
    main(LocalOci(), sys.argv[1:])
