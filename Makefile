# Podyard. `make` alone lists the targets. Every target sets up what it needs in .venv; PYTHON names the interpreter (3.11 or later).

SHELL := /bin/bash -eu -o pipefail
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.made-from
SOURCES := proto libs services bench tools tests examples
PYTEST := $(BIN)/pytest
# What runs on all cores at once; what starts servers and services as processes, and mostly waits for them; and what measures CPU
# time or takes all cores itself, and therefore runs alone.
EVICTIONS := tests/simulation/test_evictions.py
SECURITY := tests/contract/security
TOGETHER := tests/unit tests/counts tests/contract tests/conformance examples $(EVICTIONS) --ignore=$(SECURITY)
CONTENTION := tests/faults/test_service_contention.py
STACKS := tests/e2e tests/faults $(SECURITY) --ignore=$(CONTENTION)
KEYS := $(SECURITY)/test_authority.py $(SECURITY)/test_rotation.py
ALONE := tests/simulation $(CONTENTION) --ignore=$(EVICTIONS)
# Fault tests that want the machine alone.
LONELY := $(CONTENTION) tests/faults/test_nats_lost_stores.py
# One worker more than cores: many tests wait for a lease or a process. Whole stacks keep two workers half busy.
WORKERS := $(shell expr $$(nproc) + 1)
ARGS ?=
# Hundreds of processes start in the tests: where the environment forbids bytecode, each would compile everything anew.
export PYTHONDONTWRITEBYTECODE :=
# Where `make release` puts wheel and sdist.
DIST := dist

.PHONY: help setup demo up test test-all test-unit test-contract test-e2e test-counts test-conformance test-explore test-simulation test-faults test-jaeger test-prometheus test-kube test-clients test-compose test-release test-kubernetes test-upgrade test-unit-3.13 release verify verify-format verify-lint verify-types verify-layers \
	verify-schema format schema reference kube-answers pictures kinds flags lock bench bench-compare clean

help: ## list the targets
	@grep -hE '^[a-z][a-z0-9.-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9.-]+):.*## /\1\t/' | expand -t 18

setup: $(STAMP) ## make .venv with everything, from the lock files

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Podyard needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Say which: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## the whole stack on an embedded NATS server, a story in under a minute, ending with an explained decision
	@$(BIN)/podyard demo $(ARGS)

up: setup ## the whole stack on an embedded NATS server, until Ctrl-C
	@$(BIN)/podyard up $(ARGS)

test: setup ## all tests that need neither root nor Docker: those of one process on all cores, then whole stacks, then those that want the machine alone
	$(PYTEST) -n $(WORKERS) --dist worksteal $(TOGETHER) $(ARGS)
	$(PYTEST) -n $(WORKERS) --dist loadfile --durations=10 $(STACKS) $(ARGS)
	$(PYTEST) --durations=25 $(ALONE) $(ARGS)

test-all: ## everything there is, before a release: an hour and a half
	$(MAKE) test
	$(MAKE) test-contract ARGS="--bus nats"
	$(MAKE) test-conformance
	$(MAKE) test-simulation
	$(MAKE) test-faults
	$(MAKE) test-jaeger
	$(MAKE) test-prometheus
	$(MAKE) test-compose
	$(MAKE) test-unit-3.13
	$(MAKE) test-release

test-unit: setup ## pure code: no network, no clock
	$(PYTEST) -n $(WORKERS) --dist worksteal tests/unit $(ARGS)

# test-unit with an environment of its own. Each candidate is asked: pyenv puts a python3.13 on PATH that only says that no 3.13 is chosen.
test-unit-3.13: ## the unit tests on Python 3.13, in .venv-3.13; PYTHON_3_13 names the interpreter
	@for python in $(or $(PYTHON_3_13),python3.13 $(PYTHON) "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.13.*/bin/python); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null; then \
			exec $(MAKE) --no-print-directory test-unit VENV=$(VENV)-3.13 PYTHON="$$python"; \
		fi; \
	done; \
	echo "error: no Python 3.13: $(if $(PYTHON_3_13),$(PYTHON_3_13) is none,neither python3.13 nor $(PYTHON) on PATH is one and pyenv has none)." \
		"Install one, or say where it is: make $@ PYTHON_3_13=/path/to/python3.13" >&2; exit 2

test-contract: setup ## messages, bus and services on the bus in memory; ARGS="--bus nats": on the real NATS server
	$(PYTEST) -n $(WORKERS) --dist worksteal tests/contract $(ARGS)

test-e2e: setup ## the whole stack as processes
	$(PYTEST) tests/e2e $(ARGS)

test-counts: setup ## messages, decodings, effects, rows and Python calls are as many as recorded; ARGS=--record records them
	$(BIN)/python -m tests.counts $(ARGS)

test-simulation: setup ## 200 seeds of all services in virtual time under faults, a crash before every effect, each mechanism switched off; ARGS="--seed N" runs one again
	$(BIN)/python -m tests.simulation $(ARGS)
	@[ -n "$(ARGS)" ] || $(PYTEST) tests/simulation -m whole_simulation

test-faults: setup ## every fault test: real servers, services as processes, a proxy that does harm before each, the simulation's checker
	$(PYTEST) $(if $(ARGS),,-n 2 --dist loadfile --durations=25 $(LONELY:%=--ignore=%)) tests/faults $(KEYS) -m "whole_faults or not whole_faults" $(ARGS)
	@[ -n "$(ARGS)" ] || $(PYTEST) $(LONELY) -m "whole_faults or not whole_faults"

test-explore: setup ## property tests with new plays for an hour; ARGS="--minutes 10 TEST", ARGS="--again FILE" plays one again
	$(BIN)/python -m tests.explore $(ARGS)

test-conformance: setup ## decisions compared with the reference's, case by case
	@failed=0; for file in tests/conformance/data/*/*.gz; do \
		suite=$$(basename $$(dirname $$file)); echo "$$suite: $$(basename $$file)"; \
		$(BIN)/python -m tests.conformance $$suite $$file $(ARGS) || failed=1; \
	done; exit $$failed

test-jaeger: setup ## decisions read in a real Jaeger: JAEGER_BIN, or built once with Go
	@$(BIN)/python -m tests.jaeger.binary
	$(PYTEST) tests/jaeger $(ARGS)

test-prometheus: setup ## dashboards and alerts in a real Prometheus that scrapes a lab: PROMETHEUS_DIR, or out of Debian's package
	@$(BIN)/python -m tests.prometheus.binary
	$(PYTEST) tests/prometheus --timeout 300 $(ARGS)

test-kube: setup ## kubectl's answers from a lab, compared with those of Kubernetes' own API server, which are kept, kube-scheduler on its nodes, and kube-controller-manager in the place of workloads: KUBERNETES_BIN_DIR, or all built once with Go
	@$(BIN)/python -m podyard.bench.programs.kubernetes kubectl kube-scheduler kube-controller-manager
	$(PYTEST) tests/kube --ignore=tests/kube/clients $(ARGS)

test-clients: setup ## helm, k9s and Python client libraries against a lab: HELM_BIN and K9S_BIN, or each built once with Go; tmux, and a package index once
	@$(BIN)/python -m tests.kube.clients.libraries
	@$(BIN)/python -m tests.kube.clients.binaries
	$(PYTEST) tests/kube/clients --timeout 300 $(ARGS)

test-compose: setup ## docker compose for real; installs and starts an engine where there is none (Debian, root)
	@$(BIN)/python -m tests.jaeger.binary
	@$(BIN)/python -m tests.prometheus.binary
	$(PYTEST) tests/compose --timeout 900 $(ARGS)

test-release: setup ## wheel and sdist, each installed into a bare virtual environment where the demo tells its story
	$(PYTEST) tests/release --timeout 600 $(ARGS)

verify: verify-format verify-lint verify-types verify-layers verify-schema ## all checks that run no code of ours

verify-format: setup ## formatting
	$(BIN)/ruff format --check $(SOURCES)

verify-lint: setup ## lint rules and spelling
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/codespell $(SOURCES) docs examples *.md Makefile

verify-types: setup ## pyright, strict
	$(BIN)/pyright

verify-layers: setup ## who may import whom
	$(BIN)/lint-imports

verify-schema: setup ## generated schemas are those of the messages
	$(BIN)/python -m podyard.proto.schema proto/schema --check

format: setup ## format the sources and mend what lint can mend
	$(BIN)/ruff check --fix --quiet $(SOURCES) || true
	$(BIN)/ruff format $(SOURCES)

schema: setup ## write the generated schemas
	$(BIN)/python -m podyard.proto.schema proto/schema

# from the Go module k8s.io/kubernetes, whose zip Go fetches and checks: 20 MB, once
flags: setup ## the tables of docs/flags.md, anew from the table of flags
	$(BIN)/python -m tools.flags

reference: setup ## the pages of docs/reference, anew from the code
	$(BIN)/python -m tools.reference

pictures: setup ## the pictures of README, taken of a lab and a real Jaeger: JAEGER_BIN, or built once with Go
	@$(BIN)/python -m tests.jaeger.binary
	$(BIN)/python -m tests.jaeger.pictures

kinds: setup ## write the tables of Kubernetes' types (fields, keys of lists, patches, kinds, numbers) from its release: needs Go; ARGS=--check compares
	$(BIN)/python -m tools.kinds libs/podyard/objects $(ARGS)

kube-answers: setup ## what Kubernetes' own control plane answers kubectl and says of itself, asked anew: etcd, API server, controllers and scheduler, KUBERNETES_BIN_DIR, or built once with Go
	@$(BIN)/python -m podyard.bench.programs.kubernetes kubectl etcd kube-apiserver kube-controller-manager kube-scheduler
	$(BIN)/python -m tests.kube.reference.facts
	$(BIN)/python -m tests.kube.side_by_side --record $(ARGS)

lock: setup ## resolve the dependencies anew: versions and hashes, no addresses
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade pyproject.toml -o requirements/runtime.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade --group dev pyproject.toml -c requirements/runtime.txt -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade --group build -c requirements/dev.txt -o requirements/build.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade --group compose -o requirements/compose.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade --group clients -o requirements/clients.txt

# Not part of test-all, which knows of no older release.
test-upgrade: setup ## one service after the other is replaced under load: OLDER=/path/to/python is that of an environment with an older release; and one NATS server after the other: OLDER_NATS=/path/to/nats-server
	PODYARD_OLDER_PYTHON="$(OLDER)" PODYARD_OLDER_NATS="$(OLDER_NATS)" $(PYTEST) $(or $(if $(OLDER),tests/upgrade/test_services.py) $(if $(OLDER_NATS),tests/upgrade/test_servers.py),tests/upgrade) $(ARGS)

# Not part of test-all: it needs an API server that kubectl reaches and may make a namespace on.
test-kubernetes: ## server-side dry run of the Kubernetes manifests: needs kubectl and an API server, of v1.36 as the manifests are written for; makes the namespace podyard for as long as it takes
	@deploy/kubernetes/dry-run.sh

# uv makes the wheel out of the sdist, so that whoever has only the sdist can make it too. --offline: with what is locked, or not at all.
release: setup ## wheel and sdist in dist/
	rm -f $(DIST)/podyard-*
	$(BIN)/uv build --quiet --offline --no-build-isolation --python $(BIN)/python --out-dir $(DIST) .
	@ls $(DIST)/podyard-*

bench: setup ## throughput (pods per second, CPU per process, messages per pod), costs of a scheduling cycle and of events; adds a line to docs/performance.json
	@$(BIN)/python -m tests.counts --json | $(BIN)/podyard bench all --counts - $(ARGS)

# Three pairs of all rows take about two hours, and want the machine alone; what was interrupted goes on where it was.
bench-compare: setup ## kube-scheduler's own benchmark with kube-scheduler and with Podyard in turn: builds it and etcd once with Go; ARGS="--rows basic --pairs 1"
	$(BIN)/podyard bench compare --write docs/scheduler-perf-results.md $(ARGS)

clean: ## remove the virtual environments, dist/ and caches
	rm -rf $(VENV) $(VENV)-3.13 $(DIST) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
