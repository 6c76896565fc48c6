# quickstart, model, test, check, docs-check and fuzz each make .venv when it is missing or older than what it is made
# from; test-integrations makes .venv-integrations, which has spaCy and flair; test-peers and peers make .venv-peers,
# which has what people would train instead.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PARALLEL := -n auto --maxprocesses 4 --dist loadfile
INTEGRATIONS := .venv-integrations
PEERS := .venv-peers
PEER_NAMES ?= masked_lm character_lm many_langs
PEERS_OUT ?= runs/peers
# A path for the shell, which may have single spaces. That of a home directory is expanded here: not every shell does so in
# OUT=~/mine, and none in quotes.
path = "$(patsubst ~/%,$(HOME)/%,$(1))"

.PHONY: quickstart model tables test test-all test-integrations test-peers peers-environment peers check docs-check fuzz machine

quickstart: $(VENV)/installed
	$(RUN) -m quickstart

# make model TEXT='talk=talk.txt news=news.txt' OUT=models/mine CONFIG=… TIME=3h VECTORS=… LEAVE_OUT=… LICENCE=… NAME=…
# BUNDLE=1 MODEL_OPTIONS=…
model: $(VENV)/installed
	@[ -n "$(TEXT)" ] || { echo "error: say which text, e.g. make model TEXT=text.txt (docs/recipe.md)" >&2; exit 1; }
	$(RUN) -m pretrain.recipe $(TEXT) $(call path,$(or $(OUT),models/mine)) \
		$(if $(CONFIG),--config $(call path,$(CONFIG))) $(if $(TIME),--max-time $(TIME)) \
		$(if $(VECTORS),--vectors $(call path,$(VECTORS))) $(if $(BUNDLE),--bundle) \
		$(if $(LEAVE_OUT),--leave-out $(LEAVE_OUT)) $(if $(LICENCE),--licence "$(LICENCE)") \
		$(if $(NAME),--name "$(NAME)") $(MODEL_OPTIONS)

# make tables CORPUS=corpora/mine VECTORS=vectors.bin SUITE=suite.toml TIME=15m (or WORDS=5000000) QUICK=1 ROWS=…
tables: $(VENV)/installed
	@test -n "$(CORPUS)" -a -n "$(VECTORS)" -a -n "$(SUITE)" -a -n "$(TIME)$(WORDS)" || \
		{ echo 'error: say on what and how long: make tables CORPUS=… VECTORS=… SUITE=… TIME=15m (docs/paper_tables.md)' >&2; exit 1; }
	$(RUN) -m pretrain.recipe.tables $(call path,$(CORPUS)) $(call path,$(or $(OUT),runs/tables)) \
		--vectors $(call path,$(VECTORS)) --suite $(call path,$(SUITE)) \
		$(if $(TIME),--max-time $(TIME)) $(if $(WORDS),--words $(WORDS)) $(if $(QUICK),--quick) \
		$(if $(ROWS),--rows $(ROWS)) $(TABLES_OPTIONS)

test: $(VENV)/installed
	$(RUN) -m pytest -m "not slow" -rs $(PARALLEL)

test-all: $(VENV)/installed
	$(RUN) -m pytest $(PARALLEL)

test-integrations: $(INTEGRATIONS)/installed
	OMP_NUM_THREADS=1 $(INTEGRATIONS)/bin/python -m pytest -rs $(addprefix tests/elmoc/interop/,test_token_vectors.py test_spacy.py test_flair.py)

test-peers: $(PEERS)/installed
	OMP_NUM_THREADS=1 $(PEERS)/bin/python -m pytest -rs tests/downstream/peers

peers-environment: $(PEERS)/installed

# make peers TEXT="a.txt b.txt" TIME=100m SUITE=suite.toml [SUITE_OPTIONS=…] [PEER_NAMES=…] [PEER_OPTIONS=…] [PEERS_OUT=…]:
# what is done is not done again
peers: $(PEERS)/installed $(VENV)/installed
	@test -n "$(TEXT)" -a -n "$(TIME)" -a -n "$(SUITE)" || \
		{ echo 'error: say what to train on: make peers TEXT="FILE…" TIME=100m SUITE=SUITE.toml' >&2; exit 1; }
	test -e $(call path,$(PEERS_OUT)/sentences.txt) || \
		$(RUN) -m downstream suite $(call path,$(SUITE)) $(SUITE_OPTIONS) \
			--sentences $(call path,$(PEERS_OUT)/sentences.txt)
	for peer in $(PEER_NAMES); do \
		$(PEERS)/bin/python -m downstream.peers.$$peer train $(TEXT) $(call path,$(PEERS_OUT)/$$peer) \
			--max-time $(TIME) --resume $(PEER_OPTIONS) && \
		{ test -e $(call path,$(PEERS_OUT)/$$peer.h5) || \
			$(PEERS)/bin/python -m downstream.peers.$$peer dump $(call path,$(PEERS_OUT)/$$peer) \
				$(call path,$(PEERS_OUT)/sentences.txt) $(call path,$(PEERS_OUT)/$$peer.h5) --resume; } && \
		$(RUN) -m downstream suite $(call path,$(SUITE)) $(SUITE_OPTIONS) \
			--features $(call path,$(PEERS_OUT)/$$peer.h5) --out $(call path,$(PEERS_OUT)/results/$$peer) \
			--baseline $(call path,$(PEERS_OUT)/results/baseline) || exit 1; \
	done

check: $(VENV)/installed
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy

docs-check: $(VENV)/installed
	$(RUN) -m tests.docs

fuzz: $(VENV)/installed
	$(RUN) -m tests.fuzz --cases $(or $(CASES),2000) --seed $(or $(SEED),0) $(if $(READER),--reader "$(READER)") \
		--failures fuzz-failures.jsonl

$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	@$(MAKE) --no-print-directory machine
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

$(INTEGRATIONS)/installed: setup.cfg pyproject.toml constraints-integrations.txt
	@$(MAKE) --no-print-directory machine
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --quiet -c constraints-integrations.txt -e '.[spacy,flair]' pytest \
		pytest-timeout
	@touch $@

$(PEERS)/installed: setup.cfg pyproject.toml constraints-peers.txt
	@$(MAKE) --no-print-directory machine
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet -c constraints-peers.txt -e '.[peers]' pytest pytest-timeout
	@touch $@

machine:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "error: Python 3.11 or newer is needed: install it, or name it with make PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "error: Python's venv module is needed (on Debian and Ubuntu: the package python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import pathlib, sys, sysconfig; \
		sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())' || \
		{ echo "error: Python's headers are needed (on Debian and Ubuntu: the package python3-dev)" >&2; exit 1; }
	@printf 'int main() { return 0; }' | $${CXX:-c++} -x c++ - -o /dev/null 2>/dev/null || \
		{ echo "error: a C++ compiler is needed to install fastText (on Debian and Ubuntu: the package g++)" >&2; exit 1; }
