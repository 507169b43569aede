# SPDX-License-Identifier: Apache-2.0
# The commands of every day. `make up` and `make test` work on a fresh machine; the rest is for those who stay.
SHELL := /bin/bash
PYTHON ?= python3
PY := .venv/bin/python
STACK ?= local
PROCESSORS = $(shell $(PYTHON) -c 'import os; print(os.cpu_count() or 1)')
# How many processes run tests of the front doors: two more than processors, because much of such a test is waiting.
JOBS ?= $(shell expr $(PROCESSORS) + 2)
# Tests are rewritten before they run: kept, this is done once, not by each process of each run.
unexport PYTHONDONTWRITEBYTECODE
ROOMS := __main__.py catalog components launcher localcloud policies provider schemas trainyard

.PHONY: help setup up preview down test system-packages environments torture check format types contracts quick-tests bench dist lock clean
help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: .venv/ready ## a virtual environment with the command .venv/bin/trainyard, and a Pulumi engine
	@$(PY) -m trainyard.engine path >/dev/null
# Every command and plugin imports these: compiled once, also where Python is told to leave no bytecode, they start sooner.
	@$(PY) -I -m compileall -q $(ROOMS) || true

new_enough = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "trainyard needs Python 3.11 or newer: make PYTHON=python3.12 setup")'
# Somebody who names a Python gets that one: an environment of another version is made anew, not used in its place.
ifneq ($(origin PYTHON),file)
version_of = $(shell $(1) -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null)
ifneq ($(call version_of,$(PY)),$(call version_of,$(PYTHON)))
.venv/ready: other-python
.PHONY: other-python
other-python:
	@$(new_enough)
	@rm -rf .venv
endif
endif

# The clouds' packages have 25,000 modules. Compiling those that nothing here imports would take longer than installing.
used_of_clouds = _vendor|auth|retry|artifacts|core|data_?science|dns|identity/|logging/|object_?storage|vault|cloudwatch|ec2|ecr|iam|s3/|secretsmanager|vpc
rarely_imported = /(oci|pulumi_oci|pulumi_aws)/(?!$(used_of_clouds))[^/]+/

# The stamp comes last, so an installation that was cut off is done again.
.venv/ready: requirements-dev.txt pyproject.toml catalog/version.py
	@$(new_enough)
	@[ -x $(PY) ] || { echo "trainyard: making a virtual environment in .venv"; $(PYTHON) -I -m venv .venv; }
	@$(PYTHON) -P trainyard/engine/progress.py "installing Python packages into .venv: about a minute the first time" \
	  $(PY) -I -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-dev.txt
	@$(PYTHON) -P trainyard/engine/progress.py "compiling them" $(PY) -I -m compileall -qq -j 0 -x '$(rarely_imported)' .venv/lib || true
	@$(PY) -I -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . >.venv/install.log 2>&1 || { cat .venv/install.log; exit 1; }
	@touch $@

up: setup ## the stack STACK (default: local) on the local cloud, without an account
	@.venv/bin/trainyard up $(STACK) --local --isolation where-possible

preview: setup ## what `make up` would change
	@.venv/bin/trainyard preview $(STACK) --local --isolation where-possible

down: setup ## takes the stack down again and stops the local cloud
	@.venv/bin/trainyard down $(STACK) --local $$([ -t 0 ] || echo --yes)

# A release leaves tests and benchmarks in the repository.
in_repository = [ -d tests ] || { echo "trainyard: this is a release; tests and benchmarks are in the repository" >&2; exit 1; }

# Linters use one processor each, and so does most of what makes an engine or an environment: side by side they take less
# time. A make that was started with -j shares its jobs, and takes no number of its own.
AT_ONCE = $(if $(filter --jobserver%,$(MAKEFLAGS)),,-j 6)
check: .venv/ready ## format, lint, spelling, types, import contracts, unit and contract tests: under 90 seconds
	@$(in_repository)
	@$(MAKE) --no-print-directory $(AT_ONCE) format types contracts quick-tests

format: .venv/ready
	@.venv/bin/ruff format --check --quiet . && .venv/bin/ruff check --quiet .
	@.venv/bin/codespell bench catalog components docs launcher localcloud policies provider schemas stacks tests tools trainyard *.md *.py Makefile

types: .venv/ready
	@.venv/bin/mypy --no-error-summary

# The launcher runs on machines and in images with older Pythons, which no tool here would run.
contracts: .venv/ready
	@old=$$(.venv/bin/vermin --no-tips --violations --target=3.7- --exclude-regex launcher/images launcher) || { echo "$$old"; exit 1; }
	@contracts=$$(.venv/bin/lint-imports --no-logo 2>&1) || { echo "$$contracts"; exit 1; }

# Workers of pytest-xdist collect all tests each, and report every one of them. Where there are few processors, a program
# for each of three parts takes a fifth less of them.
quick-tests: $(if $(filter 1 2 3,$(PROCESSORS)),quick-nodes quick-others quick-contracts,quick-together)
quick-together: .venv/ready
	@$(PY) -m pytest -q -n $(PROCESSORS) --dist worksteal tests/unit tests/contract
OF_NODES = tests/unit/launcher tests/unit/localcloud
quick-nodes: .venv/ready
	@$(PY) -m pytest -q -p no:xdist $(OF_NODES)
quick-others: .venv/ready
	@$(PY) -m pytest -q -p no:xdist tests/unit $(addprefix --ignore ,$(OF_NODES))
quick-contracts: .venv/ready
	@$(PY) -m pytest -q -p no:xdist tests/contract

# First what the tests use of the system: a test that finds a program missing is skipped.
test: .venv/ready system-packages ## every test, in small seeded samples
	@$(MAKE) --no-print-directory $(AT_ONCE) setup environments format types contracts quick-tests
	@$(PY) -m pytest -q -n $(JOBS) --dist worksteal tests --ignore tests/unit --ignore tests/contract

environments: .venv/ready
	@.venv/bin/trainyard environments make $$([ "$$(id -u)" != 0 ] || echo --apt) || echo "trainyard: tests of what could not be made are skipped, with the reason"

system-packages: .venv/ready
	@$(in_repository)
	@$(PY) -m tests.system_packages

torture: setup ## the full counts; writes docs/reliability.md
	@$(in_repository)
	@TRAINYARD_TORTURE=1 $(PY) -m tests.torture

bench: setup ## ratios against a floor or a peer; docs/performance.md says what they mean
	@$(in_repository)
	@$(PY) -m bench

dist: ## a release in dist/: what a team unpacks beside its repository, its changes, and checksums
	@$(in_repository)
	@$(PYTHON) -m tools.release

lock: ## new requirement locks, from pyproject.toml and the lists of the local environments
	@$(PYTHON) -I -m venv .venv-lock && .venv-lock/bin/pip install --quiet --disable-pip-version-check pip-tools uv
	@export CUSTOM_COMPILE_COMMAND="make lock"; compile=".venv-lock/bin/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-find-links"; \
	  $$compile --extra aws --extra local --extra dev -o requirements-dev.txt pyproject.toml && $$compile -c requirements-dev.txt -o requirements.txt pyproject.toml && \
	  $$compile --extra aws -c requirements-dev.txt -o requirements-aws.txt pyproject.toml
	@for list in localcloud/environments/requirements/*.in; do lock=$${list%.in}.txt; grep -q 'without what' $$list && alone=--no-deps || alone=; \
	  { echo "# SPDX-License-Identifier: Apache-2.0"; echo "# Made from $$(basename $$list) by \`make lock\`."; .venv-lock/bin/uv pip compile --quiet --no-header --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links $$alone $$list; } >$$lock.new && mv $$lock.new $$lock || exit 1; done
	@rm -rf .venv-lock

clean: ## everything set-up and the local cloud made in this checkout
	@[ ! -x .venv/bin/trainyard ] || .venv/bin/trainyard cloud stop >/dev/null 2>&1 || true
	@rm -rf .venv .trainyard .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	@find $(ROOMS) -name __pycache__ -prune -exec rm -rf {} +
