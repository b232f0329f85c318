"""The engine's tables, generated from declarations and sources."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from caffe2 import ops

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("generate", ROOT / "native" / "generate.py")
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)

PRINT_TABLE = r"""
#include <climits>
#include <cstdio>
#include "core/schema.h"
using namespace caffe2;
int main() {
  for (int i = 0; i < kOperatorSchemaCount; i++) {
    const OperatorSchema& s = kOperatorSchemas[i];
    std::printf("%s kind=%d in=%d..%d out=%d..%d native=%d\n", s.name, (int)s.kind, s.min_inputs,
                s.max_inputs == INT_MAX ? -1 : s.max_inputs, s.min_outputs,
                s.max_outputs == INT_MAX ? -1 : s.max_outputs, s.native);
    for (int k = 0; k < s.n_input_names; k++)
      std::printf(" input %s %u\n", s.input_names[k], s.type_masks[k]);
    for (int k = 0; k < s.n_inplace; k++)
      std::printf(" inplace %d %d\n", s.inplace[k][0], s.inplace[k][1]);
    for (int k = 0; k < s.n_enforced; k++)
      std::printf(" enforced %d %d\n", s.enforced_inplace[k][0], s.enforced_inplace[k][1]);
    for (int k = 0; k < s.n_args; k++) {
      const ArgumentSchema& a = s.args[k];
      std::printf(" arg %s kind=%d required=%d", a.name, (int)a.kind, a.required);
      if (a.has_min) std::printf(" min=%.17g", a.min);
      if (a.has_max) std::printf(" max=%.17g", a.max);
      if (a.choices) std::printf(" choices=%s", a.choices);
      std::printf(" default=%lld %.17g %s\n", (long long)a.default_int, a.default_float,
                  a.default_string ? a.default_string : "-");
    }
  }
}
"""


def compiler():
    found = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if found is None:
        pytest.skip("there is no C++ compiler")
    return found


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """What a program sees that is linked with the table of all declarations."""
    folder = tmp_path_factory.mktemp("table")
    (folder / "table.cc").write_text(generate.schema_text(ops.all()))
    (folder / "print.cc").write_text(PRINT_TABLE)
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'native'}"]
    sources = ["table.cc", "print.cc", "-o", "print"]
    subprocess.run([compiler(), *flags, *sources], cwd=folder, check=True)
    text = subprocess.run(["./print"], cwd=folder, check=True, capture_output=True, text=True)
    blocks, name = {}, ""
    for line in text.stdout.splitlines():
        if not line.startswith(" "):
            name = line.split()[0]
        blocks.setdefault(name, []).append(line)
    return blocks


def test_table_holds_every_declaration_in_order(table):
    assert list(table) == list(ops.all())


def test_counts_types_and_pairs(table):
    assert table["Relu"] == ["Relu kind=0 in=1..1 out=1..1 native=1", " input X 2", " inplace 0 0"]
    assert table["Sum"][:2] == ["Sum kind=0 in=1..-1 out=1..1 native=1", " input A 9222"]
    assert table["Conv"][0] == "Conv kind=0 in=2..3 out=1..1 native=1"
    assert table["GaussianFill"][0] == "GaussianFill kind=1 in=0..1 out=1..1 native=1"
    assert table["AtomicIter"] == [
        "AtomicIter kind=2 in=2..2 out=1..1 native=1",
        " input mutex 0",
        " input iter 1024",
        " enforced 1 0",
    ]
    assert table["MomentumSGDUpdate"][5:8] == [" inplace 0 0", " inplace 1 1", " inplace 3 2"]


def test_arguments(table):
    conv = table["Conv"]
    assert " arg stride kind=0 required=0 min=1 max=2147483647 default=1 0 -" in conv
    assert " arg kernels kind=4 required=0 min=1 max=2147483647 default=0 0 -" in conv
    assert " arg order kind=3 required=0 choices=NCHW NHWC nchw nhwc default=0 0 NCHW" in conv
    assert " arg no_bias kind=2 required=0 default=0 0 -" in conv
    rate = table["LearningRate"]
    assert any(line.startswith(" arg policy kind=3 required=1 choices=fixed step") for line in rate)
    assert " arg base_lr kind=1 required=1 default=0 0 -" in rate
    assert " arg lr_shrink kind=1 required=0 default=0 0.98999999999999999 -" in rate


SOURCE = "namespace caffe2 {{\n{lines}\n}}\n"


def sources(folder, **files):
    for name, lines in files.items():
        (folder / f"{name}.cc").write_text(SOURCE.format(lines="\n".join(lines)))
    return generate.find_registrations(folder)


def test_registrations_are_found(tmp_path):
    found = sources(
        tmp_path,
        a=["REGISTER_CPU_OPERATOR(Relu, ReluOperator<float>)", "// REGISTER_CPU_OPERATOR(Foo, F)"],
        b=[
            "REGISTER_CPU_OPERATOR(Conv,",
            "                      ConvOperator)",
            "REGISTER_CPU_OPERATOR_WITH_ENGINE(Conv, IM2COL, Im2colConv)",
        ],
    )
    assert found == {"Relu": [""], "Conv": ["", "IM2COL"]}
    text = generate.operators_text(found, "0123")
    for function in ("Relu", "Conv", "Conv_IM2COL"):
        declared = f"void caffe2_register_cpu_{function}(KernelRegistry&);"
        assert f"  caffe2_register_cpu_{function}(registry);" in text
        assert declared in text


def test_registered_twice(tmp_path):
    line = "REGISTER_CPU_OPERATOR(Relu, A)"
    with pytest.raises(generate.GenerateError, match=r"b\.cc: Relu is registered twice"):
        sources(tmp_path, a=[line], b=[line])


def test_registration_without_declaration():
    with pytest.raises(generate.GenerateError, match="not declared in caffe2/ops: Rellu"):
        generate.check_registrations(ops.all(), {"Rellu": [""]}, allow_missing=True)


def test_native_without_registration():
    with pytest.raises(
        generate.GenerateError, match=r"no REGISTER_CPU_OPERATOR line.*: .*\bAccuracy"
    ):
        generate.check_registrations(ops.all(), {"Relu": [""]}, allow_missing=False)
    generate.check_registrations(ops.all(), {"Relu": [""]}, allow_missing=True)


def test_an_engine_alone_is_not_enough():
    one = {"Conv": ops.find("Conv")}
    with pytest.raises(generate.GenerateError, match="Conv"):
        generate.check_registrations(one, {"Conv": ["IM2COL"]}, allow_missing=False)
    generate.check_registrations(one, {"Conv": ["IM2COL", ""]}, allow_missing=False)


def test_command(tmp_path):
    schema, operators = tmp_path / "schema.inc", tmp_path / "operators.cc"
    command = [sys.executable, str(ROOT / "native" / "generate.py"), "--root", str(ROOT)]
    files = ["--schema", str(schema), "--operators", str(operators)]
    subprocess.run([*command, *files], check=True)
    assert 'name = "Conv"' in schema.read_text()
    assert "caffe2_register_cpu_Conv(registry);" in operators.read_text()
    (tmp_path / "native" / "operators").mkdir(parents=True)
    (tmp_path / "caffe2").symlink_to(ROOT / "caffe2")
    command[-1] = str(tmp_path)
    result = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("native/generate.py: declared native=True, but no")
