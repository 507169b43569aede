# SPDX-License-Identifier: Apache-2.0
"""AWS in the console: clusters of DL1 and their runs. All but platform.py runs where moto's state is read."""
