# The front door. Everything is built by Meson and Ninja under build/; these targets install what is
# missing, build, and run.
#   make run                         build and start weir with everything embedded in ./weir-data
#   make test [SAN=address|thread]   every suite; the last line counts
#   make bench [ROOM=http|db|…]      measures beside nginx and redis-server [ROUNDS=5] [SECONDS=2] [STRICT=1]
#   make chaos [ROOM=…]              the kill and race tests at full length [RUNS=200] [SEED=n]
#   make fuzz [TARGET=…]             every fuzz target for a while [SECONDS=60]
#   make lint [CHECK=…]              layering, headers, format, banned calls, sizes, clang-tidy, cppcheck
SHELL   := /bin/bash
SAN     ?=
export ROUNDS STRICT RUNS SEED
BUILD   := build/$(if $(SAN),$(SAN),release)
san_address := -Db_sanitize=address,undefined -Db_lundef=false
san_thread  := -Db_sanitize=thread -Db_lundef=false

.PHONY: build run test bench chaos fuzz lint setup-build setup-test setup-bench setup-fuzz setup-lint

build: setup-build
	@[ -f $(BUILD)/build.ninja ] || meson setup $(BUILD) $(san_$(SAN)) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@ninja -C $(BUILD) --quiet

setup-build setup-test setup-bench setup-fuzz setup-lint: setup-%:
	@mkdir -p build
	@tools/setup $*

test: setup-test build
	@tests/run.py $(BUILD) $(SUITE)

bench: setup-bench build
	@env SECONDS=$(SECONDS) tests/bench/run.py $(BUILD) $(ROOM)

chaos: setup-test build
	@$(MAKE) --no-print-directory build SAN=thread
	@tests/chaos/run.py $(BUILD) build/thread $(ROOM)

fuzz: setup-build setup-fuzz
	@[ -f build/fuzz/build.ninja ] || CC=clang-14 meson setup build/fuzz -Dfuzz=true $(san_address) >build/fuzz.log 2>&1 || { cat build/fuzz.log; exit 1; }
	@ninja -C build/fuzz --quiet
	@env SECONDS=$(SECONDS) tests/fuzz/run.py build/fuzz $(TARGET)

lint: setup-build setup-lint
	@tools/lint $(CHECK)
