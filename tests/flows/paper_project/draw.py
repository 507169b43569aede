"""What each rank of the fourth platform's run does."""

import os
import sys

print(f"rank {os.environ['RANK']} draws with {' '.join(sys.argv[1:]) or 'a pencil'}")
