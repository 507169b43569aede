# SPDX-License-Identifier: Apache-2.0
"""`python -m localcloud.oci.plugin <engine address>`: `pulumi-resource-oci` runs this."""

import sys

from localcloud.oci.plugin.plugin import LocalOci
from provider.base.serve import main

if __name__ == "__main__":
    main(LocalOci(), sys.argv[1:])
