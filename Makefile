# The stage graph. Each stage is one executable that reads and writes files, continues where it was stopped, and says so
# when there is nothing to do.
#
#   make corpus pretrain refine eval PROFILE=cpu
#   make eval PROFILE=cpu GAMES=200
#   make corpus SET="corpus.limit.nodes=3000 seed=7"

PROFILE ?= quick
TARGET  ?= $(or $(CARGO_TARGET_DIR),target)
BIN     := $(TARGET)/release
CONFIG  := configs/$(PROFILE).toml
# Cargo features: FEATURES=cuda or FEATURES=metal.
FEATURES ?=
CARGO_FLAGS := --release $(if $(FEATURES),--features $(FEATURES))
# The key that GAMES sets.
GAMES_KEY = $@.games
ARGS     = --config $(CONFIG) $(if $(GAMES),--set $(GAMES_KEY)=$(GAMES)) $(foreach s,$(SET),--set $(s))
PATH    := $(PATH):$(HOME)/.cargo/bin

.PHONY: results-named publish-named help setup build demo test corpus pretrain selfplay relabel train gate refine eval policy stats report results publish match features play bench clean
.NOTPARALLEL:

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## install what is missing (engine, Python packages in .venv) and check that it works
	@sh scripts/setup.sh

build: ## compile the executables
	@test -e $(BIN)/corpus || echo "make: the first build compiles Polars and candle: about 25 minutes on two fast cores, 50 on slow ones" >&2
	@cargo build $(CARGO_FLAGS) -p tabiya -p engine --bins

demo: ## the whole chain on configs/quick.toml, from a fresh clone
	@PYTHON=optional sh scripts/setup.sh
	@$(MAKE) --no-print-directory PROFILE=quick corpus pretrain refine eval report

test: setup ## every test
	@cargo test $(CARGO_FLAGS) --workspace --no-fail-fast

corpus: build ## games of the engine            -> data/PROFILE/corpus
	@$(BIN)/corpus $(ARGS)

pretrain: build ## a network from the corpus       -> data/PROFILE/pretrain
	@$(BIN)/pretrain $(ARGS)

selfplay: build ## games of the next iteration     -> data/PROFILE/refine/iter_NNNN/selfplay
	@$(BIN)/selfplay $(ARGS)

relabel: build ## the teacher's answers to them   -> data/PROFILE/refine/iter_NNNN/relabel
	@$(BIN)/relabel $(ARGS)

train: build ## its candidate                   -> data/PROFILE/refine/iter_NNNN/train
	@$(BIN)/train $(ARGS)

gate: build ## candidate against best          -> data/PROFILE/refine/iter_NNNN/gate
	@$(BIN)/gate $(ARGS)

refine: build ## selfplay, relabel (if enabled), train, gate to the last iteration
	@$(BIN)/refine $(ARGS)

# REQUIRE=0.55 fails if the score is below. make itself exits with 2 whatever failed, and prints the job's own status
# ("Error 1" for a score that was missed); $(BIN)/eval --config ... --require-score 0.55 exits with it.
eval: build ## the best network against the engine -> data/PROFILE/eval
	@$(BIN)/eval $(ARGS) $(if $(REQUIRE),--require-score $(REQUIRE))

# STEP=games, labels, train or export does one step alone.
policy: GAMES_KEY = policy.games.games
policy: build ## a policy network for tabiya-ab -> data/PROFILE/policy
	@$(BIN)/policy $(STEP) $(ARGS)

stats: build ## tables about the corpus
	@$(BIN)/stats data/$(PROFILE)/corpus

report: build ## corpus, losses and match of a profile on one page
	@$(BIN)/report $(ARGS)

# What replaces a page or a network that others rely on has no default: PROFILE=, or another place to write to.
unnamed = $(if $(filter file,$(origin PROFILE)),$(if $(1),,echo "make $(2): name the run with PROFILE=..., or write elsewhere with $(3)" >&2; exit 2))
results-named:
	@$(call unnamed,$(OUT),results replaces docs/results.md,OUT=FILE)
publish-named:
	@$(call unnamed,$(TO),publish replaces data/reference,TO=FOLDER)

# ALSO="night gpu" puts what other profiles have reached on the same page. OUT=docs/mine.md writes another one.
results: results-named build ## experiments, then a page with plots -> docs/results.md
	@$(BIN)/results $(ARGS) $(foreach p,$(ALSO),--also $(p)) $(if $(OUT),--out $(OUT))

# TO=folder publishes elsewhere.
publish: publish-named build ## the best network, as what `make play` plays -> data/reference
	@$(BIN)/publish $(ARGS) $(if $(TO),--to $(TO))

# MATCH=configs/mine.toml plays another match than configs/match.toml, TABLE=configs/mine.toml another table.
match: CONFIG = $(or $(MATCH),configs/match.toml)
match: build ## two players of any kind         -> data/match/NAME
	@$(BIN)/match $(ARGS)

features: CONFIG = $(or $(TABLE),configs/features.toml)
features: build ## what each engine feature is worth -> docs/features.md
	@$(BIN)/features $(ARGS)

# NETWORK=data/cpu/pretrain plays another checkpoint folder than data/reference.
play: build ## the network as a UCI engine, for a chess program or by hand
	@$(BIN)/tabiya $(if $(NETWORK),--network $(NETWORK))

# ONLY=network,search runs some sections, RESUME=1 goes on where a run was stopped, QUICK=1 only tries everything out.
bench: build ## speed beside PyTorch, onnxruntime and python-chess -> docs/benchmarks.md
	@sh scripts/bench.sh $(BIN) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(RESUME),--resume) $(if $(QUICK),--quick)

clean: ## remove what was built; data stays
	@cargo clean && rm -rf .venv
