# Everything one does with this project.  Needs Python >= 3.10, a C++ compiler and a package index;
# the rest comes from pyproject.toml into .venv.  `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
SEEDS ?= 1
FUZZ_SECONDS ?= 60
WERROR ?= OFF
CONFORMANCE ?= ../shared/conformance

BIN := $(VENV)/bin
CMAKE := $(BIN)/cmake
TOOLS := $(VENV)/.tools
INSTALLED := $(VENV)/.installed
# Further options for CMake, such as -DCAFFE2_ISAS=avx2; pip takes them from the environment.
export CMAKE_ARGS ?=
# What the native module is made of: a change in other Python files needs no build.
SOURCES := pyproject.toml $(shell find CMakeLists.txt native caffe2/ops \
	-name CMakeLists.txt -o -name '*.cc' -o -name '*.h' -o -name '*.py')
CPP_FILES = $(shell git ls-files --cached --others --exclude-standard '*.cc' '*.h' '*.c')

export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

.DELETE_ON_ERROR:
.PHONY: help build demo test models smoke full asan tsan bench lint format clean \
	bench-peers bench-train \
	python-test native-test clang arm64 wasm fuzz harness conformance wheel

help:
	@sed -n 's/^#: //p' $(MAKEFILE_LIST)

#: make demo         train LeNet on handwritten digits, save it, serve it (SEEDS=5: five starts)
demo: $(INSTALLED)
	$(BIN)/python examples/mnist.py --seeds $(SEEDS)
	$(BIN)/python examples/mnist_predict.py

#: make test         every test but the long ones
test: native-test python-test

#: make smoke        the quickest tests, for while one works
smoke: $(INSTALLED)
	$(BIN)/pytest -m "not slow" -x tests/graph tests/engine tests/deploy

#: make full         test, lint, and all that takes long
full: test lint asan tsan clang arm64 wasm fuzz harness conformance wheel

#: make bench        speed alone: kernels beside the processor's peak, nets and their operators
bench: $(INSTALLED)
	$(CMAKE) -S . -B build/native -DCAFFE2_BENCHMARKS=ON \
		-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) --log-level=WARNING
	$(CMAKE) --build build/native --target kernel_benchmark
	$(BIN)/python benchmarks/ours.py --kernels build/native/native/kernels/kernel_benchmark $(BENCH_ARGS)

#: make bench-peers  inference beside the frameworks that are installed (PEERS=python ...: where;
#:                   BENCH_ARGS="--quick --json FILE": as the programs take them)
bench-peers: $(INSTALLED)
	$(if $(PEERS),,-$(BIN)/pip install -q --group peers)
	$(BIN)/python benchmarks/peers.py $(foreach python,$(PEERS),--python $(python)) $(BENCH_ARGS)

#: make bench-train  the LeNet training step beside PyTorch's
bench-train: $(INSTALLED)
	$(BIN)/pip install -q --group bench
	$(BIN)/python benchmarks/train_lenet.py

#: make models       saved nets of the original in ../shared/models, beside its recorded answers
models: $(INSTALLED)
	$(BIN)/python tests/models/zoo.py $(MODELS)

#: make lint         ruff, clang-format, mypy
lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(CPP_FILES)
	$(BIN)/mypy

#: make format       lets ruff and clang-format lay out the sources
format: $(TOOLS)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP_FILES)

#: make build        builds and installs into .venv, when something changed
build: $(INSTALLED)

#: make clean        removes what was built
clean:
	rm -rf build dist $(VENV)

$(TOOLS): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade "pip>=25.1"
	$(BIN)/pip install -q --group build --group test --group lint
	@touch $@

# The stamp has the time before the build: a source that changes meanwhile is built next time.
$(INSTALLED): $(TOOLS) $(SOURCES)
	@touch $@.new
	$(BIN)/pip install -q --no-build-isolation -e '.[cli,pictures]' -C build-dir=build/native \
		-C cmake.define.CAFFE2_WERROR=$(WERROR)
	@mv $@.new $@

# The parts of `test` and `full`.

# Some tests run programs of the native build.
export CAFFE2_NATIVE_BUILD ?= $(abspath build/native)

python-test: $(INSTALLED)
	$(BIN)/pytest -n $(JOBS) -m "not slow"

harness: $(INSTALLED)
	CAFFE2_TEST_EFFORT=full $(BIN)/pytest -n $(JOBS)

# $(call native_tests,NAME,CMAKE OPTIONS) builds the native tests in build/NAME and runs them.
define native_tests
$(CMAKE) -S . -B build/$(1) -G Ninja -DCAFFE2_PYTHON=OFF -DCAFFE2_TESTS=ON -DCAFFE2_WERROR=ON \
	-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python) \
	--log-level=WARNING $(2) $(CMAKE_ARGS)
$(CMAKE) --build build/$(1)
$(BIN)/ctest --test-dir build/$(1)/native --output-on-failure --no-tests=error
endef

# $(call module_tests,NAME) does so in build/NAME of a Python module: most of it is the same.
define module_tests
$(CMAKE) -S . -B build/$(1) -DCAFFE2_TESTS=ON -DCAFFE2_C_API=ON \
	-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) --log-level=WARNING
$(CMAKE) --build build/$(1)
$(BIN)/ctest --test-dir build/$(1)/native --output-on-failure --no-tests=error
endef

# A part whose tools are not installed says so and is left out.
DOCTEST := $(firstword $(wildcard $(addsuffix /doctest/doctest.h,/usr/include /usr/local/include)))
CLANG := $(shell command -v clang++)
EMSCRIPTEN := $(and $(shell command -v node),$(shell em-config EMSCRIPTEN_ROOT 2>/dev/null))
ARM64 := $(and $(shell command -v aarch64-linux-gnu-g++),$(shell command -v qemu-aarch64))

ifeq ($(DOCTEST),)
native-test clang arm64 wasm: ; @echo "$@ skipped: no header doctest/doctest.h (Debian: doctest-dev)"
else
native-test: $(INSTALLED)
	$(call module_tests,native)

ifeq ($(CLANG),)
clang: ; @echo "$@ skipped: no clang++ (Debian: clang)"
else
clang: $(TOOLS)
	$(call native_tests,clang,-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
endif

ifeq ($(ARM64),)
arm64: ; @echo "$@ skipped: Debian: g++-aarch64-linux-gnu, qemu-user"
else
arm64: $(TOOLS)
	mkdir -p build/arm64 && ln -sfn $(dir $(DOCTEST)) build/arm64/doctest
	$(call native_tests,arm64,-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
		-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
		-DDOCTEST_INCLUDE_DIR=$(abspath build/arm64) \
		"-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/aarch64-linux-gnu")
endif

ifeq ($(EMSCRIPTEN),)
wasm: ; @echo "$@ skipped: Debian: emscripten, nodejs"
else
# Where Debian has the modules that emscripten needs, for a node that is not Debian's.
wasm: export NODE_PATH ?= /usr/share/nodejs
wasm: $(INSTALLED)
	mkdir -p build/wasm && ln -sfn $(dir $(DOCTEST)) build/wasm/doctest
	$(call native_tests,wasm,-DDOCTEST_INCLUDE_DIR=$(abspath build/wasm) \
		-DCMAKE_TOOLCHAIN_FILE=$(EMSCRIPTEN)/cmake/Modules/Platform/Emscripten.cmake \
		-DCMAKE_CROSSCOMPILING_EMULATOR=node -DCMAKE_C_FLAGS=-pthread -DCMAKE_CXX_FLAGS=-pthread)
	CAFFE2_WASM_BUILD=$(abspath build/wasm) $(BIN)/pytest tests/deploy/test_wasm.py
endif
endif

# $(call new_venv,NAME) makes build/NAME with what builds and tests need, and nothing of ours.
define new_venv
$(PYTHON) -m venv build/$(1)
build/$(1)/bin/pip install -q --upgrade "pip>=25.1"
build/$(1)/bin/pip install -q --group build --group test
endef

SANITIZE := -DCAFFE2_SANITIZE=address,undefined
RUNTIMES = $(foreach name,asan ubsan,$(shell $(CXX) -print-file-name=lib$(name).so))

# One build for Python and the native tests. Leaks are looked for in the latter; the Python
# interpreter has its own.
asan: $(TOOLS)
	$(call new_venv,asan-venv)
	build/asan-venv/bin/pip install -q --no-build-isolation -C build-dir=build/asan \
		-C cmake.args="$(SANITIZE)" -C cmake.define.CAFFE2_WERROR=ON .
	$(if $(DOCTEST),$(call module_tests,asan))
	cd build && LD_PRELOAD="$(RUNTIMES)" ASAN_OPTIONS=detect_leaks=0 \
		UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 asan-venv/bin/pytest -n $(JOBS) \
		-m "not slow" ../tests/engine ../tests/ops ../tests/deploy

# Races between threads, in the tests of the engine.
tsan: $(TOOLS)
	$(if $(DOCTEST),$(call native_tests,tsan,-DCAFFE2_SANITIZE=thread))

ifeq ($(CLANG),)
fuzz: ; @echo "$@ skipped: no clang++ (Debian: clang)"
else
fuzz: $(INSTALLED)
	$(CMAKE) -S . -B build/fuzz -G Ninja -DCAFFE2_PYTHON=OFF -DCAFFE2_FUZZ=ON -DCAFFE2_C_API=OFF \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++ \
		-DCAFFE2_SANITIZE=fuzzer-no-link,address,undefined --log-level=WARNING \
		-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python) \
		$(CMAKE_ARGS)
	$(CMAKE) --build build/fuzz
	cd build && $(abspath $(BIN))/python ../fuzz/model_fuzz.py $(FUZZ_SECONDS) $(wildcard $(CURDIR)/../shared/models)
	$(BIN)/python fuzz/make_seeds.py build/fuzz/seeds $(wildcard $(CURDIR)/../shared/models)
	for fuzzer in build/fuzz/fuzz/*_fuzz; do echo $$fuzzer; \
		$$fuzzer -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=20 -verbosity=0 \
			build/fuzz/corpus/$$(basename $$fuzzer) build/fuzz/seeds || exit 1; \
	done
endif

ifeq ($(wildcard $(CONFORMANCE)/run.py),)
conformance: ; @echo "$@ skipped: no runner in $(CONFORMANCE) (set CONFORMANCE)"
else
conformance: $(TOOLS)
	$(call new_venv,conformance-venv)
	build/conformance-venv/bin/pip install -q -r $(CONFORMANCE)/requirements.txt
	build/conformance-venv/bin/pip install -q --no-build-isolation \
		-C build-dir=build/conformance-python .
	CAFFE2_CONFORMANCE=$(CONFORMANCE) build/conformance-venv/bin/python \
		tests/conformance/ratchet.py $(CONFORMANCE_ARGS)
endif

WHEEL_LIMIT := 10000000
wheel: $(TOOLS)
	rm -rf build/wheel build/wheel-venv
	$(BIN)/pip wheel -q --no-deps -w build/wheel .
	@stat -c '%n: %s bytes' build/wheel/*.whl
	test $$(stat -c %s build/wheel/*.whl) -lt $(WHEEL_LIMIT)
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/pip install -q build/wheel/*.whl pytest
	build/wheel-venv/bin/pytest -m "not slow" tests/deploy
