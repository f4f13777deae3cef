# `make run` and `make test` do everything. The rest is for people who work on Holdfast. The building itself is
# CMake's; this file only remembers what to call.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local

# Where `make run` listens and keeps its store.
LISTEN ?= 127.0.0.1:4653
DATA ?= ./holdfast-data

# How many seconds `make fuzz` gives each target; TARGET=name runs one alone, JOBS=n so many at once.
T ?= 60
TARGET ?=

# How often `make crash` kills the server, and `make failover` the primary of a PostgreSQL cluster.
N ?= 10000

.PHONY: all run test crash failover fuzz coverage lint format bench install clean

all:
	@tools/deps.sh build
	@cmake --preset release -DHF_TESTS=OFF -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build build -j $(JOBS) -- --no-print-directory

run: all
	@exec build/holdfast serve $(if $(HOLDFAST_POSTGRES)$(HOLDFAST_STORE),,--data $(DATA)) --listen $(LISTEN) --welcome

test:
	@tools/deps.sh test
	@tools/test.sh

crash:
	@tools/deps.sh test
	@tools/crash.sh $(N)

failover:
	@tools/deps.sh test
	@cmake --preset release -DHF_TESTS=ON >/dev/null
	@cmake --build build -j $(JOBS) --target holdfast postgres_failover -- --no-print-directory
	@HF_CYCLES=$(N) build/tests/postgres_failover

fuzz:
	@tools/deps.sh test
	@JOBS=$(JOBS) tools/fuzz.sh $(T) $(TARGET)

coverage:
	@tools/deps.sh test
	@tools/coverage.sh

lint:
	@tools/deps.sh lint
	@tools/lint.sh

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

bench: all
	build/holdfast bench --tokens 5000000 --rounds 5 --out doc/bench

install: all
	@cmake --install build --prefix $(PREFIX)

clean:
	rm -rf build build-*
