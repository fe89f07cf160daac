.DEFAULT_GOAL := help
.PHONY: help setup report chapter status reproduce texts site test lint format bench lab lock clean

PYTHON  ?= python3
PROFILE ?= laptop
SET     ?=
BIN     := .venv/bin
MODEL   ?= packaged
K       ?= auto
export PROFILE SET N INPUT MODEL K LABEL TEXT OUT

help:  ## Show this help
	@echo "Sentigeo: does a six-layer BERT-type sentence encoder lay out sentiment as geometry?"
	@echo
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'
	@echo
	@echo "  PROFILE=quick|laptop|paper|FILE.yaml   which run (default: laptop)"
	@echo "  INPUT=FILE [TEXT= LABEL= MODEL= K= OUT=]  your texts, their field, labels, encoder, clusters, folder"
	@echo "  N=05                                    which chapter"
	@echo "  FRESH=1                                 execute unchanged chapters too"
	@echo "  KEEP=1                                  keep the cache of 'make reproduce' in build/reproduce"
	@echo "  SET=\"key=value key=value\"              profile keys to change for one run"

.venv/ready: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Sentigeo needs Python 3.11 or newer; try: make PYTHON=python3.11 ..."; exit 1; }
	@echo "Setting up .venv from requirements.lock (a few minutes, once) ..."
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: .venv/ready  ## Create .venv from the pinned lock (the other targets do this by themselves)

report: .venv/ready  ## Run every notebook and rebuild figures, executed notebooks and the site
	@$(BIN)/sentigeo report --profile "$$PROFILE" --set "$$SET" $(if $(FRESH),--fresh)

chapter: .venv/ready  ## Execute one chapter (N=05), after what it needs
	@test -n "$$N" || { echo "Name a chapter: make chapter N=05"; exit 1; }
	@$(BIN)/sentigeo chapter --profile "$$PROFILE" --set "$$SET" $(if $(FRESH),--fresh) -- "$$N"

status: .venv/ready  ## Say which chapters are up to date and why others are not; runs nothing
	@$(BIN)/sentigeo status --profile "$$PROFILE" --set "$$SET"

reproduce: .venv/ready  ## Run the report again from an empty cache and compare with the last one
	@$(BIN)/sentigeo reproduce --profile "$$PROFILE" --set "$$SET" $(if $(KEEP),--keep)

texts: .venv/ready  ## Cluster and map your own texts (INPUT=FILE)
	@test -n "$$INPUT" || { echo "Name your texts: make texts INPUT=response.json"; exit 1; }
	@$(BIN)/sentigeo texts --model "$$MODEL" --k "$$K" --label "$$LABEL" --text "$$TEXT" --out "$$OUT" -- "$$INPUT"

site: .venv/ready  ## Rebuild the HTML site from the last report
	@$(BIN)/sentigeo site --profile "$$PROFILE" --set "$$SET"

test: .venv/ready  ## Run the tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/ready  ## Check style and types of code and notebooks
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: .venv/ready  ## Format code and notebooks
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

bench: .venv/ready  ## Measure speed, side by side, against what a user would pick instead
	@$(BIN)/sentigeo bench --profile "$$PROFILE" --set "$$SET"

lab: .venv/ready  ## Open the notebooks in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir=.

lock: .venv/ready  ## Pin the newest allowed versions in requirements.lock
	@$(BIN)/pip-compile --quiet --upgrade --extra dev --strip-extras --allow-unsafe --no-header \
		--no-annotate --no-emit-find-links --no-emit-index-url --output-file requirements.lock pyproject.toml
	@sed -i.bak -E 's/^(torch==[0-9.]+)\+cpu/\1/' requirements.lock && rm requirements.lock.bak

clean:  ## Remove caches and builds (never the committed report)
	@rm -rf build data/cache reports/site .pytest_cache .mypy_cache .ruff_cache
