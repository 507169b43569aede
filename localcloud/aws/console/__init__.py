# SPDX-License-Identifier: Apache-2.0
"""AWS in the console: clusters of DL1 and their runs. All modules but platform.py run on the simulation's thread."""
