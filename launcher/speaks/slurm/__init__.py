# SPDX-License-Identifier: Apache-2.0
"""Slurm 22.05, as a batch script sees it. The script runs on every node, and sees there what Slurm shows it on the
first one. `srun` starts the tasks of its own node only, so that together the nodes start all of them. Addresses stand
for the names of nodes."""
