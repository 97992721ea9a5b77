# Every target that a person calls carries a `##` comment; `make help` lists them.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-slow fuzz lint types docs bench lock clean

PYTHON ?= python3
BIN := .venv/bin
LOCK := requirements/dev.txt

# $(call environment,FOLDER): make a virtual environment there, or say why not.
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "fedkge needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
		echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
endef

# $(call install,FOLDER,EXTRA): install fedkge there in place; one line that counts packages, the whole story in pip.log.
define install
	@set -o pipefail; echo "Installing fedkge[$(2)] into $(1) ..." >&2; \
	$(1)/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off --log $(1)/pip.log \
		-c $(LOCK) -e '.[$(2)]' 2>$(1)/pip.err \
	| awk -v live="$$(test -t 2 && echo 1)" '/^Collecting /{ n++; if (live) printf "\r\033[K  %d packages, now %s", n, $$2 > "/dev/stderr" } \
		END { if (live) printf "\r\033[K" > "/dev/stderr" }' \
	|| { cat $(1)/pip.err >&2; echo "The installation failed; $(1)/pip.log has the details." >&2; exit 1; }
endef

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{ printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo ## Install into .venv, then train, attack, defend, attack again and audit on the demo graph
	@$(BIN)/fedkge demo

test: lint types ## Lint, check the types and run the tests
	$(BIN)/python -m pytest

test-slow: .venv/.dev ## Run the statistical and long tests
	$(BIN)/python -m pytest -m slow || test $$? -eq 5

fuzz: .venv/.fuzz ## Fuzz the wire and every reader with atheris, SECONDS (60) for each of TARGETS (all)
	$(BIN)/python -m fuzz --seconds $(or $(SECONDS),60) $(TARGETS)

lint: .venv/.dev ## Check style and formatting with ruff
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/.dev ## Check the types with mypy
	$(BIN)/mypy

docs: .venv/.dev ## Build the documentation into site/, warnings are errors
	$(BIN)/mkdocs build --strict --quiet

bench: .venv-bench/.bench ## Measure speed against PyKEEN in an environment of its own (.venv-bench, brings PyTorch)
	.venv-bench/bin/python -m benchmarks

lock: ## Write requirements/dev.txt again with the newest versions that fit
	$(call environment,.venv-lock)
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager '.[dev]'
	.venv-lock/bin/python -m pip freeze --exclude fedkge > $(LOCK)
	rm -rf .venv-lock

clean: ## Remove the environments and everything that was built
	rm -rf .venv .venv-bench .venv-lock .fuzz build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find $(wildcard src tests benchmarks fuzz) -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.demo: pyproject.toml $(LOCK)
	$(call environment,.venv)
	$(call install,.venv,demo)
	@touch $@

# The development extra holds the demo extra.
.venv/.dev: pyproject.toml $(LOCK)
	$(call environment,.venv)
	$(call install,.venv,dev)
	@touch .venv/.demo $@

.venv/.fuzz: .venv/.dev
	$(call install,.venv,fuzz)
	@touch $@

.venv-bench/.bench: pyproject.toml $(LOCK)
	$(call environment,.venv-bench)
	$(call install,.venv-bench,bench)
	@touch $@
