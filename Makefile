# Every target that a person calls carries a `##` comment; `make help` lists them.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-lowest fuzz lint types notebook docs bench bench-check lock clean

PYTHON ?= python3
BIN := .venv/bin
CORES := $(shell nproc 2>/dev/null || echo 2)
TORCH := torch==2.13.0
UPGRADE := --upgrade

# $(call environment,FOLDER): make a virtual environment there, or say why not.
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "fedkge needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
		echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
endef

# $(call install,FOLDER,LOCK): install what requirements/LOCK.txt lists, by its hashes, then fedkge in place. A line counts
# the packages; pip.log has the details.
define install
	@set -o pipefail; echo "Installing fedkge and requirements/$(2).txt into $(1) ..." >&2; \
	{ $(1)/bin/python -m pip install $(PIP) --log $(1)/pip.log --require-hashes --no-deps -r requirements/$(2).txt \
		&& $(1)/bin/python -m pip install $(PIP) --log $(1)/pip.log --no-deps --no-build-isolation -e . ; } 2>$(1)/pip.err \
	| awk -v live="$$(test -t 2 && echo 1)" '/^Collecting /{ n++; if (live) printf "\r\033[K  %d packages, now %s", n, $$2 > "/dev/stderr" } \
		END { if (live) printf "\r\033[K" > "/dev/stderr" }' \
	|| { cat $(1)/pip.err >&2; echo "The installation failed; $(1)/pip.log has the details." >&2; exit 1; }
endef
PIP := --disable-pip-version-check --no-input --progress-bar off

# $(call lock,LOCK,EXTRA,OPTIONS): write requirements/LOCK.txt, for every platform and every Python that fedkge runs on.
define lock
	.venv-lock/bin/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-package torch --extra $(2) $(3) \
		--output-file requirements/$(1).txt pyproject.toml requirements/build.in
endef

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{ printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo ## Install into .venv, then train, attack, defend, attack again and audit on the demo graph
	@$(BIN)/fedkge demo

test: lint types ## Lint, check the types and run the tests
	$(BIN)/python -m pytest -n $(CORES)

test-slow: .venv/.dev ## Run the statistical and long tests
	$(BIN)/python -m pytest -m slow || test $$? -eq 5

test-lowest: .venv-lowest/.lowest ## Run the tests with the lowest versions that pyproject.toml allows
	.venv-lowest/bin/python -m pytest -n $(CORES) -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning

fuzz: .venv/.fuzz ## Fuzz the wire and every reader with atheris, SECONDS (60) for each of TARGETS (all)
	$(BIN)/python -m fuzz --seconds $(or $(SECONDS),60) $(TARGETS)

lint: .venv/.dev ## Check style and formatting with ruff
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/.dev ## Check the types with mypy
	$(BIN)/mypy

notebook: .venv/.dev ## Run the tutorial's notebook and keep its outputs
	$(BIN)/python .ci/notebook.py docs/tutorial.ipynb

docs: .venv/.dev ## Build the documentation into site/, warnings are errors
	$(BIN)/mkdocs build --strict --quiet

bench: .venv-bench/.bench ## Measure speed against PyKEEN in an environment of its own (.venv-bench, brings PyTorch)
	.venv-bench/bin/python -m benchmarks

bench-check: .venv/.dev ## Resolve the benchmark environment without installing it: its lock, its hashes and PyTorch
	$(BIN)/python -m pip install $(PIP) --quiet --dry-run --ignore-installed --no-deps --require-hashes -r requirements/bench.txt
	@sed -n 's/^\([A-Za-z0-9_.-]*==[^ ]*\( ;[^\\]*\)\?\).*/\1/p' requirements/bench.txt > .venv/bench-versions.txt
	$(BIN)/python -m pip install $(PIP) --quiet --dry-run --ignore-installed -c .venv/bench-versions.txt $(TORCH) '.[bench]'

lock: ## Write requirements/*.txt again with the newest versions that fit (UPGRADE= keeps those that still do)
	$(call environment,.venv-lock)
	.venv-lock/bin/python -m pip install $(PIP) --quiet --upgrade uv
	$(call lock,dev,dev)
	$(call lock,demo,demo,--constraints requirements/dev.txt)
	$(call lock,bench,bench)
	$(call lock,lowest,dev,--resolution lowest-direct)
	echo 'atheris==3.0.0' | .venv-lock/bin/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --output-file requirements/fuzz.txt -
	rm -rf .venv-lock

clean: ## Remove the environments and everything that was built
	rm -rf .venv .venv-bench .venv-lock .venv-lowest .fuzz build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find $(wildcard src paper tests benchmarks fuzz) -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.demo: pyproject.toml requirements/demo.txt
	$(call environment,.venv)
	$(call install,.venv,demo)
	@touch $@

# The development lock holds the demo's.
.venv/.dev: pyproject.toml requirements/dev.txt
	$(call environment,.venv)
	$(call install,.venv,dev)
	@touch .venv/.demo $@

.venv-lowest/.lowest: pyproject.toml requirements/lowest.txt
	$(call environment,.venv-lowest)
	$(call install,.venv-lowest,lowest)
	@touch $@

.venv/.fuzz: .venv/.dev requirements/fuzz.txt
	$(call install,.venv,fuzz)
	@touch $@

# PyTorch has a CPU build here and a GPU build there, so its version is fixed and its bytes are not.
.venv-bench/.bench: pyproject.toml requirements/bench.txt
	$(call environment,.venv-bench)
	$(call install,.venv-bench,bench)
	.venv-bench/bin/python -m pip install $(PIP) --quiet $(TORCH)
	.venv-bench/bin/python -m pip check
	@touch $@
