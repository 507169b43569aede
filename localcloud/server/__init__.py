# SPDX-License-Identifier: Apache-2.0
"""OCI over HTTP: tables of operations, the handlers behind them, and what they share."""
