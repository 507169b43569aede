# SPDX-License-Identifier: Apache-2.0
"""Images for OpenPAI: they are in whatever registry the cluster can pull from."""
