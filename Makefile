.DEFAULT_GOAL := help
PYTHON ?= python3.11
VENV ?= .venv
AIRFLOW_VENV ?= .venv-airflow
BIN := $(VENV)/bin
OUT ?= out
DIST ?= dist
BENCH ?= M
FLEETS ?= 200
SEED ?= 1
SAMPLES := tests/data/captures

# A machine without a Java gets that of the [jre] extra.
JAVA := $(JAVA_HOME)$(shell command -v java 2> /dev/null)
JRE := $(if $(JAVA),,$(VENV)/jre-installed)

.PHONY: help install audit live test test-fast test-live test-airflow test-without-java lint fmt docs package truth bench clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

$(VENV)/jre-installed: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[jre]'
	touch $@

install: $(VENV)/installed $(JRE) ## Make the virtual environment with everything in it

audit: install ## Audit the sample dumps, print the findings, write the report and say where it lies
	$(BIN)/rebalance-audit run --dumps '$(SAMPLES)/*/dump.jsonl.gz' --output $(OUT) \
		--engine spark --settings conf/audit.toml --set persistence_seconds=60
	@set -e; show() { \
		printf '\n%s\n' $$1; \
		$(BIN)/rebalance-audit show $$1 --reports $(OUT)/reports --columns $$2; \
	}; \
	queue=consumer_group,topic,broker_name,queue_id,first_seen,last_seen,persistence,certainty; \
	show group_faults consumer_group,topic,fault,persistence,queues_affected,evidence,remedy; \
	show stacked_client_ids consumer_group,client_id,processes,verdict,persistence,remedy; \
	show orphaned_queues $$queue,probability,severity,backlog; \
	show duplicate_queues $$queue,probability,severity,claimants; \
	show stalled_queues consumer_group,topic,broker_name,queue_id,first_seen,last_seen,persistence,severity,backlog,owners
	@printf '\n'
	@$(BIN)/rebalance-audit report --reports $(OUT)/reports
	@printf '\nAll tables: $(OUT)/reports; print one with\n  $(BIN)/rebalance-audit show group_health --reports $(OUT)/reports\n'

test: install ## Run all tests
	$(BIN)/python -m pytest

test-fast: install ## Run the tests that start no Java and no other command: within a minute or two
	$(BIN)/python -m pytest -m 'not spark and not e2e'

test-live: install ## Run the collector against a real RocketMQ, where ROCKETMQ_HOME has one
	@if [ -n "$$ROCKETMQ_HOME" ]; then $(BIN)/python -m pytest tests/live; else \
		echo 'skipped: ROCKETMQ_HOME names no installation of RocketMQ (a folder with lib/ and conf/)'; fi

live: $(VENV)/installed ## Collect from your own cluster and audit it at once; NAMESRV=host:9876
	$(BIN)/rebalance-audit live $(addprefix --namesrv ,$(NAMESRV)) --output $(OUT)/live

$(AIRFLOW_VENV)/installed: tests/airflow/requirements.txt
	$(PYTHON) -m venv $(AIRFLOW_VENV)
	$(AIRFLOW_VENV)/bin/pip install --quiet --upgrade pip
	$(AIRFLOW_VENV)/bin/pip install --quiet --requirement tests/airflow/requirements.txt
	touch $@

test-airflow: install package $(AIRFLOW_VENV)/installed ## Run the DAG on the sample dumps, in an environment of its own
	PATH="$(abspath $(BIN)):$$PATH" $(AIRFLOW_VENV)/bin/python -m pytest --confcutdir tests/airflow tests/airflow

# All that a machine needs besides Python.
TOOLS := bash cat chmod dirname env find grep head make mkdir printf ps rm sh touch

test-without-java: install ## Audit the sample dumps with no Java on the PATH
	rm -rf build/tools && mkdir -p build/tools
	for tool in $(TOOLS); do ln -s "$$(bash -c "type -P $$tool")" build/tools/$$tool; done
	env -u JAVA_HOME PATH=$(abspath build/tools) $(MAKE) audit OUT=build/without-java
	test -s build/without-java/reports/_published/*.json

lint: install ## Check style and types, change nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fmt: install ## Format, and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install ## Write anew what is written from the code: the data dictionary, the pinned --help
	$(BIN)/python -m jobs.data_dictionary
	$(BIN)/python -m tests.contract.test_help

package: $(DIST)/rebalance-audit.zip ## Build the .zip that spark-submit --py-files gets

$(DIST)/rebalance-audit.zip: $(shell find jobs rebalance_core conf -type f -not -name '*.pyc')
	mkdir -p $(DIST)
	rm -rf $@ $(DIST)/package
	$(PYTHON) -c "import shutil; [shutil.copytree(name, '$(DIST)/package/' + name, ignore=shutil.ignore_patterns('__pycache__')) for name in ('jobs', 'rebalance_core', 'conf')]; shutil.make_archive('$(DIST)/rebalance-audit', 'zip', '$(DIST)/package')"
	rm -rf $(DIST)/package

truth: install ## Simulate fleets, audit them and print how much is true and how much is found; FLEETS, SEED
	$(BIN)/python -m tests.simulation.score --fleets $(FLEETS) --seed $(SEED) --out build/truth

$(VENV)/bench-installed: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[dev,bench]'
	touch $@

bench: $(VENV)/bench-installed ## Measure all there is to measure; BENCH=S, M or L is the largest fleet
	$(BIN)/python -m tests.bench.allocator
	$(BIN)/python -m tests.bench.evaluation
	$(BIN)/python -m tests.bench.run --largest $(BENCH)
	$(BIN)/python -m tests.bench.ingest --gigabyte
	$(BIN)/python -m tests.bench.small
	$(BIN)/python -m tests.bench.giant
	$(BIN)/python -m tests.bench.curves
	$(BIN)/python -m tests.bench.standalone --size $(BENCH)

clean: ## Remove what was made, but for the virtual environment
	rm -rf dist build $(OUT) *.egg-info
