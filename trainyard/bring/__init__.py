# SPDX-License-Identifier: Apache-2.0
"""Makes stack files from what people bring: training scripts, resources that exist, and what other systems run, such as
a batch script of Slurm or a cluster job of ADS. Readers are pure: text in, a job and notes out."""
