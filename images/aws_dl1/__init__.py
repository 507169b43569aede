# SPDX-License-Identifier: Apache-2.0
"""Images for AWS DL1: Gaudi's own with the team's packages, in ECR."""
