# SPDX-License-Identifier: Apache-2.0
"""What of a rehearsal is AWS's: people and roles, tickets on machines that stay, policies and security groups."""
