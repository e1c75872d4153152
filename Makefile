# The front door. Meson and Ninja build everything under build/; these targets install the packages that
# are missing, build, and run.
#   make run                         build and start weir with everything embedded in ./weir-data
#   make check [ROOM=…] [BASE=main]  the inner loop: build, unit tests (of one room, or of the folders of src/ that differ
#                                    from BASE and of those that include them), lint of what differs from BASE
#   make test [SUITE=…] [SAN=…]      every suite, or one room's (SUITE=s3) or one kind's (SUITE=unit), plain or with
#                                    SAN=address or SAN=thread; the last line has the count
#   make bench [ROOM=http|db|…]      measures beside nginx, redis-server, RGW, … [ROUNDS=5] [SECONDS=2] [STRICT=1] [FULL=1]
#   make chaos [ROOM=…]              the kill and race tests at full length [RUNS=200] [SEED=n]
#   make lake-long                   the lake's tests at full size: 10,000 seeds of trees, 10 M objects, 1 M commits
#   make shard-sim                   sharding over virtual time: 10,000 seeds, and each rule left out [SEED=n]
#   make lakefs-sdk CHECKOUT=dir     the Python package of a checkout of treeverse/lakeFS against weir [ARGS=--plain]
#   make s3-tests CHECKOUT=dir       a checkout of ceph/s3-tests against weir [SELECT=core|all|headers] [ARGS=…]
#   make fuzz [TARGET=…]             every fuzz target for a while [SECONDS=60]
#   make lint [CHECK=…]              layering, headers, format, banned calls, sizes, …, clang-tidy, cppcheck
#   make install                     binary, man page, completion, unit, sample file [PREFIX=/usr/local] [DESTDIR=]
#   make help                        this list
SHELL   := /bin/bash
SAN     ?=
export ROUNDS STRICT FULL RUNS SEED
export UBSAN_OPTIONS ?= halt_on_error=1:print_stacktrace=1
PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   := build/$(if $(SAN),$(SAN),release)
# Ninja says a line even when there is nothing to do; warnings and errors pass.
ninja   := set -o pipefail; ninja
quietly := | sed '/^ninja: \(no work to do\|Entering directory\)/d'
san_address := -Db_sanitize=address,undefined -Db_lundef=false
san_thread  := -Db_sanitize=thread -Db_lundef=false

.PHONY: build weir run install install-files help check test bench chaos fuzz lint s3-tests lake-long shard-sim lakefs-sdk setup-build setup-test \
        setup-bench setup-fuzz setup-lint setup-s3tests setup-lakefs

build: $(BUILD)/build.ninja
	@$(ninja) -C $(BUILD) --quiet $(quietly)

# The program alone, without the tests.
weir: $(BUILD)/build.ninja
	@$(ninja) -C $(BUILD) --quiet weir $(quietly)

$(BUILD)/build.ninja: | setup-build
	@meson setup $(BUILD) $(san_$(SAN)) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

run: weir
	@exec $(BUILD)/weir serve --data ./weir-data

setup-build setup-bench setup-fuzz setup-lint setup-s3tests setup-lakefs: setup-%:
	@mkdir -p build
	@tools/setup $*

# After setup-build, whose Meson brings Python.
setup-test: setup-build
	@tools/setup $$(tests/run.py --needs $(SUITE))

test: setup-test build
	@tests/run.py $(BUILD) $(SUITE)

check: SUITE := unit$(addprefix -,$(ROOM))
check: BASE := $(or $(BASE),main)
check: setup-test setup-lint build
	@tests/run.py $(if $(ROOM),$(BUILD) $(SUITE),--changed $(BASE) $(BUILD))
	@tools/lint --changed $(BASE)

bench: setup-bench build
	@env SECONDS=$(SECONDS) tests/bench/run.py $(BUILD) $(ROOM)

chaos: setup-test build
	@$(MAKE) --no-print-directory build SAN=thread
	@$(MAKE) --no-print-directory build SAN=address
	@tests/chaos/run.py $(BUILD) build/thread build/address $(ROOM)

fuzz: setup-build setup-fuzz
	@[ -f build/fuzz/build.ninja ] || CC=clang-14 meson setup build/fuzz -Dfuzz=true $(san_address) >build/fuzz.log 2>&1 || { cat build/fuzz.log; exit 1; }
	@$(ninja) -C build/fuzz --quiet $(quietly)
	@env SECONDS=$(SECONDS) tests/fuzz/run.py build/fuzz $(TARGET)

s3-tests: setup-s3tests weir
	@[ -n "$(CHECKOUT)" ] || { echo "CHECKOUT= names a checkout of ceph/s3-tests"; exit 2; }
	@tools/s3-tests --checkout $(CHECKOUT) --build $(BUILD) --select $(or $(SELECT),core) $(ARGS)

lake-long: setup-test build
	@TREE_SEEDS=10000 $(BUILD)/tests/unit_tests -t lake_tree lake_diff lake_merge
	@TREE_OBJECTS=10000000 $(BUILD)/tests/unit_tests -t -v lake_tree_large
	@LAKE_MANY_COMMITS=1000000 $(BUILD)/tests/unit_tests -t lake_many_embedded

shard-sim: build
	@$(BUILD)/tests/crash/shard_sim --runs 10000 --rules 2000 --seed $(or $(SEED),1)

lakefs-sdk: setup-lakefs weir
	@[ -n "$(CHECKOUT)" ] || { echo "CHECKOUT= names a checkout of treeverse/lakeFS"; exit 2; }
	@tools/lakefs-sdk --checkout $(CHECKOUT) --build $(BUILD) $(ARGS)

lint: setup-build setup-lint
	@tools/lint $(CHECK)

install: weir install-files

install-files:
	@install -D -m 755 $(BUILD)/weir $(DESTDIR)$(PREFIX)/bin/weir
	@$(BUILD)/weir help --man >$(BUILD)/weir.1
	@install -D -m 644 $(BUILD)/weir.1 $(DESTDIR)$(PREFIX)/share/man/man1/weir.1
	@$(BUILD)/weir help --completion >$(BUILD)/weir.bash
	@install -D -m 644 $(BUILD)/weir.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/weir
	@sed 's|@PREFIX@|$(PREFIX)|' dist/weir.service.in >$(BUILD)/weir.service
	@install -D -m 644 $(BUILD)/weir.service $(DESTDIR)$(PREFIX)/lib/systemd/system/weir.service
	@$(BUILD)/weir help --sample >$(BUILD)/weir.yaml
	@[ -e $(DESTDIR)/etc/weir/weir.yaml ] || install -D -m 644 $(BUILD)/weir.yaml $(DESTDIR)/etc/weir/weir.yaml
	@echo "installed $(DESTDIR)$(PREFIX)/bin/weir"

help:
	@sed -n 's/^#   //p' Makefile
