# SPDX-License-Identifier: Apache-2.0
"""`python -I -S run.py PROGRAM ARGUMENTS…` runs one of Slurm's programs. Isolated Python does not find the launcher
itself."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(f"{__file__}/../../../.."))
    from launcher.speaks.slurm.programs import run_slurm_program

    sys.exit(run_slurm_program(sys.argv[1:]))
