# SPDX-License-Identifier: Apache-2.0
"""`python -m localcloud.aws.plugin <engine address>`: `pulumi-resource-aws` runs this."""

import sys

from localcloud.aws.plugin.plugin import LocalAws
from provider.base.serve import main

if __name__ == "__main__":
    main(LocalAws(), sys.argv[1:])
