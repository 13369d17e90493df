# nginx-ads. `make help` lists the targets.

NGINX_SRC ?=
PORT      ?= 8080
BUILD     := build
CLANG     := clang-14
CLANGXX   := clang++-14
VARIANT   ?= plain
CXX       := $(if $(filter fuzz,$(VARIANT)),$(CLANGXX),g++)

# ---- flags -------------------------------------------------------------------
# Variants of the library, the tests and the command: plain, asan, tsan, fuzz.
flags_plain := -O2
sanitizers  := -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# gcc takes std::regex for uninitialized when it is instrumented.
flags_asan  := $(sanitizers) -Wno-maybe-uninitialized
flags_tsan  := -O1 -fsanitize=thread
flags_fuzz  := $(sanitizers) -fsanitize=fuzzer-no-link
CXXFLAGS    := -std=c++20 -g -Wall -Wextra -Werror -Wno-missing-field-initializers -Isrc -Iadmin -MMD -MP
LIBPQ       := $(shell pkg-config --cflags libpq 2>/dev/null)
CXXFLAGS    += $(flags_$(VARIANT)) $(LIBPQ)
LIBS        := -lpq -lsimdjson -ljansson -lpcre2-8 -lssl -lcrypto -ldeflate -ldate-tz -l:libhiredis.a -lpthread
OBJ         := $(BUILD)/$(VARIANT)
Q           := $(if $(V),,@)
jobs        := $(shell nproc)

lib_sources   := $(wildcard src/core/*/*.cpp src/ledger/*.cpp src/ledger/*/*.cpp src/io/*.cpp src/io/*/*.cpp src/keeper/*.cpp)
lib_objects   := $(lib_sources:%.cpp=$(OBJ)/%.o)
# What only the command needs, such as the HTML parser, is not linked into workers.
admin_sources := $(wildcard admin/lib/*/*.cpp admin/creative/*.cpp admin/api/*.cpp)
admin_objects := $(admin_sources:%.cpp=$(OBJ)/%.o)
cli_sources   := $(wildcard admin/cli/*/*.cpp)
cli_objects   := $(cli_sources:%.cpp=$(OBJ)/%.o)
sql_files     := $(sort $(wildcard admin/sql/tables/*.sql)) $(sort $(wildcard admin/sql/functions/*.sql)) admin/sql/rights.sql
# ThreadSanitizer is for shared memory and for the threads beside the event loop. The simulation of
# a fleet jumps between stacks of its own and leaves those of killed processes as they are, which
# AddressSanitizer does not follow.
unit_sources  := $(wildcard $(if $(filter tsan,$(VARIANT)),t/unit/ledger/*.cpp t/unit/io/*.cpp t/unit/keeper/*.cpp,t/unit/*/*.cpp))
unit_sources  := $(filter-out $(if $(filter asan,$(VARIANT)),t/unit/fleet/%),$(unit_sources))
unit_objects  := $(unit_sources:%.cpp=$(OBJ)/%.o)
fuzz_names    := $(patsubst t/fuzz/%.cpp,%,$(wildcard t/fuzz/*.cpp))

# ---- targets for people ----------------------------------------------------------
.PHONY: all help setup run run-full run-fleet test test-long unit lint format bench fuzz asan-test asan-api-test valgrind-test \
        tsan-test hup-test clang-test real-tests nginx-versions install clean nginx-tests module test-module cli tag console FORCE

all: module cli tag console ## build the module, the command, the tag and the console into build/

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  NGINX_SRC=PATH   build against an nginx source tree instead of Debian's nginx-dev"
	@echo "  PORT=N           the port of make run (8080)"
	@echo "  V=1              print each command that compiles"

setup: ## install what is missing (apt)
	@scripts/setup build test

run: ## set up, build and serve the demo on http://localhost:8080
	@+PORT=$(PORT) MAKE=$(MAKE) scripts/run

run-full: ## the same on a private PostgreSQL
	@+PORT=$(PORT) MAKE=$(MAKE) scripts/run --full

run-fleet: ## three nodes behind a balancer, with a private PostgreSQL and a Redis Cluster
	@+PORT=$(PORT) MAKE=$(MAKE) scripts/run-fleet

test: ## set up, build and run every test in its short form
	@scripts/setup build test
	@scripts/setup browser web || echo "make test: no browser or no node, so their tests are skipped"
	@scripts/node-packages t/browser || echo "make test: so the tests in t/browser are skipped"
	@rm -f $(skips)
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory all test-module
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory nginx-tests
	@$(MAKE) --no-print-directory real-tests
	@scripts/skipped $(skips) $(BUILD)/plain/unit.xml

# Every target runs here once, so that none can break unseen. Valgrind is given the files in
# which one process does all, and each fuzz target a short time.
test-long: test ## every test in its long form, and every other target
	@$(MAKE) --no-print-directory asan-test
	@$(MAKE) --no-print-directory tsan-test
	@$(MAKE) --no-print-directory clang-test
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=20
	@$(MAKE) --no-print-directory hup-test
	@$(MAKE) --no-print-directory valgrind-test TEST_FILES="$(smoke_files)"
	@$(MAKE) --no-print-directory nginx-versions
	@scripts/setup bench
	@$(MAKE) --no-print-directory -j$(jobs) $(bench_tools)
	@scripts/bench --callgrind
	@ADS_TEST_LONG=1 $(MAKE) --no-print-directory unit nginx-tests
	@scripts/skipped $(skips) $(BUILD)/plain/unit.xml

# ---- building --------------------------------------------------------------------
module:
	@NGINX_SRC=$(NGINX_SRC) scripts/build-module $(BUILD)/module
	@cp -p $(BUILD)/module/ngx_http_ads_module.so $(BUILD)/ngx_http_ads_module.so.new
	@mv $(BUILD)/ngx_http_ads_module.so.new $(BUILD)/ngx_http_ads_module.so

test-module:
	@NGINX_SRC=$(NGINX_SRC) ADS_TEST_CLOCK=1 scripts/build-module $(BUILD)/test

cli:
	@scripts/progress "compiling the command" --no-print-directory V=1 -j$(jobs) $(BUILD)/nginx-ads

# Without node there is no tag; make run does not wait for it.
tag: ## build the tag for pages into build/tag, if node and npm are there
	@if scripts/node-packages admin/tag; then $(MAKE) --no-print-directory $(BUILD)/tag/tag.js; \
	 else echo "make tag: not built"; fi

$(BUILD)/tag/tag.js: $(wildcard admin/tag/src/*.ts admin/tag/*.json) admin/tag/build.mjs
	@node admin/tag/build.mjs $(BUILD)/tag

# The same of the console.
console: ## build the page of the console into build/console, if node and npm are there
	@if scripts/node-packages admin/console; then $(MAKE) --no-print-directory $(BUILD)/console/index.html; \
	 else echo "make console: not built"; fi

$(BUILD)/console/index.html: $(wildcard admin/console/src/* admin/console/src/*/* admin/console/*.json) admin/console/build.mjs
	@node admin/console/build.mjs $(BUILD)/console

$(BUILD)/nginx-ads: $(BUILD)/plain/nginx-ads
	@cp -p $< $@
	@$@ validate --schema > $(BUILD)/catalog.schema.json

$(OBJ)/%.o: %.cpp
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXXFLAGS) -c $< -o $@

# What the command alone has need not be fast, but for decide and simulate: it compiles in two
# thirds of the time.
$(filter-out $(OBJ)/admin/cli/decide/% $(OBJ)/admin/lib/decide/% $(OBJ)/admin/creative/%,$(cli_objects) $(admin_objects)): \
    CXXFLAGS += -O1 -g1

# The tests themselves need not be fast, and compile in half the time.
$(OBJ)/t/unit/%.o $(OBJ)/t/fleet/%.o: CXXFLAGS += -O1 -It/unit

$(OBJ)/libads.a: $(lib_objects)
	@rm -f $@ && ar rcs $@ $^

$(OBJ)/libadmin.a: $(admin_objects)
	@rm -f $@ && ar rcs $@ $^

# The schema is part of the command. The list of names is a file of its own, so that a file that
# is gone counts as a change.
$(BUILD)/sql/list: FORCE
	@mkdir -p $(@D)
	@echo '$(sql_files)' | cmp -s - $@ || echo '$(sql_files)' > $@

$(BUILD)/sql/files.cpp: $(sql_files) $(BUILD)/sql/list
	@{ echo '#include "lib/database/migrations.hpp"'; echo 'namespace ads::admin {'; \
	   echo 'namespace {'; echo 'constexpr SqlFile kFiles[] = {'; \
	   for file in $(sql_files); do \
	       printf '{"%s", R"ads-sql(' "$${file#admin/sql/}"; cat "$$file"; echo ')ads-sql"},'; \
	   done; \
	   echo '};'; echo '}'; echo 'const std::span<const SqlFile> kSqlFiles(kFiles);'; echo '}'; \
	 } > $@.new && mv $@.new $@

$(OBJ)/sql/files.o: $(BUILD)/sql/files.cpp
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXXFLAGS) -c $< -o $@

$(OBJ)/nginx-ads: $(cli_objects) $(OBJ)/sql/files.o $(OBJ)/libadmin.a $(OBJ)/libads.a
	@$(CXX) $(CXXFLAGS) $^ -o $@ -lfmt -lcurl -lgumbo $(LIBS)

$(OBJ)/unit-tests: $(unit_objects) $(OBJ)/libadmin.a $(OBJ)/libads.a
	@$(CXX) $(CXXFLAGS) $^ -o $@ -lgtest -lgtest_main -lfmt -lz -lgumbo $(LIBS)

# Compares ads.rights() with the model of the simulation, for t/fleet/rights.t.
$(OBJ)/rights-check: $(OBJ)/t/fleet/rights_check.o $(OBJ)/libads.a
	@$(CXX) $(CXXFLAGS) $^ -o $@ $(LIBS)

-include $(shell find $(BUILD) -name '*.d' -path '*/$(VARIANT)/*' 2>/dev/null)

# ---- testing ---------------------------------------------------------------------
unit: ## build and run the unit tests
	@scripts/progress "compiling the unit tests" --no-print-directory V=1 -j$(jobs) $(OBJ)/unit-tests
	@$(OBJ)/unit-tests --gtest_brief=1 --gtest_output=xml:$(OBJ)/unit.xml $(UNIT_FLAGS)

TEST_FILES ?= t/*/*.t
# The shipped module; a file that says "use AdsTest::Clock" gets the test build instead.
nginx_env   = TEST_NGINX_TIMEOUT=30 TEST_NGINX_LOAD_MODULES=$(CURDIR)/$(BUILD)/ngx_http_ads_module.so \
              ADS_TEST_MODULE=$(CURDIR)/$(BUILD)/test/ngx_http_ads_module.so \
              ADS_COMMAND=$(CURDIR)/$(BUILD)/nginx-ads PERL5LIB=t/lib$${PERL5LIB:+:$$PERL5LIB}
prove       = ADS_TEST_SKIPS=$(skips) prove --harness AdsTest::Harness
skips      := $(BUILD)/skipped
# Those in the data format of Test::Nginx::Socket.
data_files := $(shell grep -l '^use AdsTest;' t/*/*.t)
# Every directive and each way in which nginx starts, reloads and ends.
smoke_files := $(addprefix t/,$(addsuffix .t,config/directives serve/serve serve/variables serve/targeting serve/frequency \
               serve/page visitor/identity track/track track/keys status/status status/counters catalog/catalog spool/spool \
               fault/reload fault/kill fault/restart))

nginx-tests: ## run t/*/*.t on a real nginx (TEST_FILES=t/serve/serve.t for one)
	@$(nginx_env) $(prove) -j2 $(TEST_FILES)

real-tests: all test-module ## run the data-format files under the real Test::Nginx::Socket, if it is installed
	@if perl -MTest::Nginx::Socket -e1 2>/dev/null; then \
	    $(nginx_env) TEST_NGINX_REAL=1 $(prove) $(data_files); \
	else \
	    echo "make real-tests: Test::Nginx::Socket is not installed" | tee -a $(skips); \
	fi

NGINX_SOURCES ?=
nginx-versions: all ## run the smoke tests on other versions of nginx (NGINX_SOURCES="DIR DIR")
	@if [ -n "$(NGINX_SOURCES)" ]; then \
	    $(nginx_env) PROVE='$(prove)' scripts/nginx-versions $(BUILD)/versions "$(smoke_files)" $(NGINX_SOURCES); \
	else \
	    echo 'make nginx-versions: no other nginx; set NGINX_SOURCES="DIR DIR" to source trees' | tee -a $(skips); \
	fi

clang-test: ## build the module with clang, and run the smoke tests on it
	@scripts/setup build test fuzz
	@$(MAKE) --no-print-directory cli
	@CC=$(CLANG) scripts/build-module $(BUILD)/clang
	@CC=$(CLANG) ADS_TEST_CLOCK=1 scripts/build-module $(BUILD)/clang-test
	@$(nginx_env) TEST_NGINX_LOAD_MODULES=$(CURDIR)/$(BUILD)/clang/ngx_http_ads_module.so \
	    ADS_TEST_MODULE=$(CURDIR)/$(BUILD)/clang-test/ngx_http_ads_module.so $(prove) -j2 $(smoke_files)

hup-test: all test-module ## the same, reloading one nginx instead of restarting it
	@$(nginx_env) TEST_NGINX_USE_HUP=1 $(prove) -j2 $(TEST_FILES)

valgrind-test: all test-module ## the same under valgrind
	@$(nginx_env) TEST_NGINX_USE_VALGRIND=1 $(prove) $(TEST_FILES)

asan-test: asan-api-test ## unit tests and those of the API under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory VARIANT=asan unit

# The leaks are judged when the process ends.
asan-api-test: module ## the tests of the API on a command with sanitizers
	@scripts/progress "compiling the command" --no-print-directory V=1 VARIANT=asan -j$(jobs) $(BUILD)/asan/nginx-ads
	@$(nginx_env) ADS_COMMAND=$(CURDIR)/$(BUILD)/asan/nginx-ads $(prove) $(wildcard t/console/api*.t)

tsan-test: ## the tests of shared memory and of threads under ThreadSanitizer
	@$(MAKE) --no-print-directory VARIANT=tsan unit

FUZZ_SECONDS ?= 60
fuzz: ## set up, and run each fuzz target (FUZZ_SECONDS=60)
	@scripts/setup build fuzz
	@$(MAKE) --no-print-directory module
	@$(MAKE) --no-print-directory -j$(shell nproc) VARIANT=fuzz $(addprefix $(BUILD)/fuzz/,$(fuzz_names))
	@for name in $(fuzz_names); do \
	    mkdir -p $(BUILD)/fuzz/corpus/$$name t/fuzz/corpus/$$name; \
	    echo "fuzz $$name, $(FUZZ_SECONDS) s"; \
	    $(BUILD)/fuzz/$$name -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -verbosity=0 \
	        -artifact_prefix=$(BUILD)/fuzz/$$name- $(BUILD)/fuzz/corpus/$$name \
	        t/fuzz/corpus/$$name || exit 1; \
	done

# The filter of pages, with nginx's headers; what it needs of nginx is in the target.
page_filter   := $(addprefix $(OBJ)/src/ngx/page/,body.o read.o)
nginx_headers  = $(addprefix -isystem $(BUILD)/module/tree/src/,core event event/modules os/unix http http/modules http/v2) \
                 -isystem $(BUILD)/module/objs
$(page_filter) $(OBJ)/t/fuzz/page_filter.o: CXXFLAGS += $(nginx_headers)
$(BUILD)/fuzz/page_filter: $(page_filter)

$(BUILD)/fuzz/%: $(OBJ)/t/fuzz/%.o $(OBJ)/libadmin.a $(OBJ)/libads.a
	@$(CXX) $(CXXFLAGS) -fsanitize=fuzzer $^ -o $@ -lgumbo -lz $(LIBS)

# ---- quality and speed --------------------------------------------------------------
sources := $(shell git ls-files '*.cpp' '*.hpp' 2>/dev/null || find src admin t -name '*.[ch]pp')

lint: ## format and layers
	@scripts/lint

format: ## clang-format everything
	@clang-format -i $(sources)

bench_tools := $(addprefix $(BUILD)/bench/,tokens core instructions limiter load segments tick)

$(BUILD)/bench/%: t/bench/%.cpp t/bench/fixture.hpp $(BUILD)/plain/libads.a
	@mkdir -p $(@D)
	@$(CXX) $(CXXFLAGS) $< -o $@ $(BUILD)/plain/libads.a -lbenchmark $(LIBS)

bench: ## ratios of worker CPU per request, against nginx's own handlers
	@scripts/setup build bench
	@$(MAKE) --no-print-directory all $(bench_tools)
	@scripts/bench $(BENCH_FLAGS)
	@scripts/bench --core
	@scripts/bench --limiter
	@scripts/bench --callgrind
	@scripts/bench --compile --runs 3
	@scripts/bench --pacing
	@scripts/bench --ship --events 200000
	@t/bench/ingest --rows 50000
	@t/bench/creatives
	@t/bench/redis
	@t/bench/worker
	@t/bench/page

# ---- installing -------------------------------------------------------------------
# Only what a program needs is installed; gdb finds its symbols in the folder for them.
DESTDIR ?=
PREFIX  ?= /usr
root    = $(DESTDIR)$(PREFIX)
share   = $(root)/share
etc     = $(DESTDIR)/etc/nginx-ads
# source, mode, where under PREFIX
define install_stripped
	install -D -m $(2) $(1) $(root)/$(3)
	install -d $(root)/lib/debug$(PREFIX)/$(dir $(3))
	objcopy --only-keep-debug $(1) $(root)/lib/debug$(PREFIX)/$(3).debug
	chmod 644 $(root)/lib/debug$(PREFIX)/$(3).debug
	strip --strip-unneeded $(root)/$(3)
	objcopy --add-gnu-debuglink=$(root)/lib/debug$(PREFIX)/$(3).debug $(root)/$(3)
endef
install: all ## install the module, the command and what goes with it (DESTDIR=, PREFIX=)
	$(call install_stripped,$(BUILD)/ngx_http_ads_module.so,644,lib/nginx/modules/ngx_http_ads_module.so)
	$(call install_stripped,$(BUILD)/nginx-ads,755,bin/nginx-ads)
	install -D -m 644 conf/bots.txt $(share)/nginx-ads/bots.txt
	install -m 644 conf/prometheus-rules.yml conf/grafana-dashboard.json $(share)/nginx-ads
	install -d $(share)/nginx-ads/examples $(share)/man/man1 $(share)/bash-completion/completions \
	    $(share)/zsh/vendor-completions $(root)/lib/systemd/system $(root)/lib/tmpfiles.d
	sed -e 's|/usr/lib/|$(PREFIX)/lib/|' -e 's|/usr/share/|$(PREFIX)/share/|' conf/nginx.conf > $(share)/nginx-ads/examples/nginx.conf
	install -m 644 conf/catalog.json $(share)/nginx-ads/examples/catalog.json
	install -m 644 docs/examples/*.json $(share)/nginx-ads/examples
	[ ! -d $(BUILD)/tag ] || { install -d $(share)/nginx-ads/tag && \
	    install -m 644 $(BUILD)/tag/*.js $(share)/nginx-ads && install -m 644 $(BUILD)/tag/package/* $(share)/nginx-ads/tag; }
	install -d $(share)/nginx-ads/console
	if [ -d $(BUILD)/console ]; then install -m 644 $(BUILD)/console/* $(share)/nginx-ads/console; \
	 else echo '<!doctype html><title>Console</title>The console was not built: install nodejs and npm, then make install.' > $(share)/nginx-ads/console/index.html; fi
	$(BUILD)/nginx-ads validate --schema > $(share)/nginx-ads/catalog.schema.json
	$(BUILD)/nginx-ads man > $(share)/man/man1/nginx-ads.1
	$(BUILD)/nginx-ads completion bash > $(share)/bash-completion/completions/nginx-ads
	$(BUILD)/nginx-ads completion zsh > $(share)/zsh/vendor-completions/_nginx-ads
	for unit in conf/*.service; do \
	    sed 's|/usr/bin/|$(PREFIX)/bin/|' $$unit > $(root)/lib/systemd/system/$${unit##*/} || exit 1; \
	done
	install -m 644 conf/tmpfiles.conf $(root)/lib/tmpfiles.d/nginx-ads.conf
	install -d -m 755 $(DESTDIR)/var/lib/nginx-ads $(etc)
	[ -e $(etc)/catalog.json ] || install -m 644 docs/examples/empty.json $(etc)/catalog.json
	[ -n "$(DESTDIR)" ] || [ -e $(etc)/secret ] || $(BUILD)/nginx-ads key generate --output $(etc)/secret

clean: ## remove build/
	rm -rf $(BUILD)
