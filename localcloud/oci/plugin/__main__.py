# SPDX-License-Identifier: Apache-2.0
"""`python -m localcloud.oci.plugin <engine address>`: what `pulumi-resource-oci` runs."""

import sys

from localcloud.oci.plugin.plugin import LocalOci
from provider.base.serve import main

if __name__ == "__main__":
    main(LocalOci(), sys.argv[1:])
