# The front door. Everything is built by Meson and Ninja under build/; these targets install what is
# missing, build, and run.
#   make run                         build and start weir with everything embedded in ./weir-data
#   make test [SAN=address|thread]   every suite; the last line counts
SHELL   := /bin/bash
SAN     ?=
BUILD   := build/$(if $(SAN),$(SAN),release)
san_address := -Db_sanitize=address,undefined -Db_lundef=false
san_thread  := -Db_sanitize=thread -Db_lundef=false

.PHONY: build run test setup-build setup-test

build: setup-build
	@[ -f $(BUILD)/build.ninja ] || meson setup $(BUILD) $(san_$(SAN)) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@ninja -C $(BUILD) --quiet

setup-build setup-test: setup-%:
	@mkdir -p build
	@tools/setup $*

test: setup-test build
	@tests/run.py $(BUILD) $(SUITE)
