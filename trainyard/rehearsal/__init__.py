# SPDX-License-Identifier: Apache-2.0
"""Rehearses a stack: `rehearse.py` brings it up and starts its runs, `judgement.py` judges the collected evidence."""
