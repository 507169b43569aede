# SPDX-License-Identifier: Apache-2.0
"""`python -m localcloud.plugin.aws <engine address>`: what `pulumi-resource-aws` runs."""

import sys

from localcloud.plugin.aws.plugin import LocalAws
from provider.base.serve import main

if __name__ == "__main__":
    main(LocalAws(), sys.argv[1:])
