// What a net may do where nobody looks: other layouts, several operators as one step, shared
// memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/memory_plan.h"
#include "core/workspace.h"

using namespace caffe2;

namespace {

OperatorDef op(const std::string& type, std::vector<std::string> in, std::vector<std::string> out) {
  OperatorDef def;
  def.type = type;
  def.input = std::move(in);
  def.output = std::move(out);
  return def;
}

NetDef net(std::vector<OperatorDef> ops, std::vector<std::string> outputs = {}) {
  NetDef def;
  def.name = "net";
  def.op = std::move(ops);
  def.external_output = std::move(outputs);
  return def;
}

// Conv and its like take a sum and a Relu; everything else is a step of its own.
std::string steps_text(const NetDef& def, const std::vector<std::string>& hidden) {
  const auto fuses = [&](int i) -> unsigned {
    return def.op[i].type == "Conv" ? kFusesSum | kFusesBounds
           : def.op[i].type == "FC" ? kFusesBounds
                                    : kFusesNothing;
  };
  const auto is_hidden = [&](const std::string& name) {
    return std::find(hidden.begin(), hidden.end(), name) != hidden.end();
  };
  std::string text;
  for (const Step& step : fuse(def, {fuses, is_hidden})) {
    text += (text.empty() ? "" : " ") + std::to_string(step.op);
    if (!step.fusion) continue;
    text += "+" + step.fusion->residual.value_or("") + (step.fusion->bounds ? "r" : "") + ">" +
            step.fusion->output;
  }
  return text;
}

}  // namespace

TEST_CASE("chains are one step only where nobody can tell") {
  const OperatorDef conv = op("Conv", {"x", "w"}, {"a"});
  SUBCASE("in place, next to each other, in any net") {
    CHECK(steps_text(net({conv, op("Relu", {"a"}, {"a"})}), {}) == "0+r>a");
  }
  SUBCASE("what writes the blob anew without reading it is no part of the chain") {
    const NetDef def = net({conv, op("Relu", {"b"}, {"a"})});
    CHECK(steps_text(def, {}) == "0 1");
    CHECK(steps_text(def, {"a"}) == "0 1");
  }
  SUBCASE("an operator in between might know the blob by another name") {
    const NetDef def = net({conv, op("Exp", {"b"}, {"c"}), op("Relu", {"a"}, {"a"})});
    CHECK(steps_text(def, {}) == "0 1 2");
    CHECK(steps_text(def, {"a"}) == "1 0+r>a");
  }
  SUBCASE("what is between stays when it can be seen or is used again") {
    const NetDef def = net({conv, op("Relu", {"a"}, {"b"})});
    CHECK(steps_text(def, {}) == "0 1");
    CHECK(steps_text(def, {"a"}) == "0+r>b");
    CHECK(steps_text(net({conv, op("Relu", {"a"}, {"b"}), op("Exp", {"a"}, {"c"})}), {"a"}) ==
          "0 1 2");
    // Written anew before it is read: another value.
    CHECK(steps_text(net({conv, op("Relu", {"a"}, {"b"}), op("Exp", {"b"}, {"a"})}), {"a"}) ==
          "0+r>b 2");
  }
  SUBCASE("a sum with another blob, then Relu; of two convolutions the later one takes it") {
    const NetDef def = net({conv, op("Conv", {"x", "v"}, {"b"}), op("Sum", {"a", "b"}, {"c"}),
                            op("Relu", {"c"}, {"d"})});
    CHECK(steps_text(def, {"a", "b", "c"}) == "0 1+ar>d");
    CHECK(steps_text(def, {"a", "b"}) == "0 1+a>c 3");
    CHECK(steps_text(net({conv, op("Sum", {"a", "a"}, {"c"})}), {"a"}) == "0 1");
    CHECK(steps_text(net({conv, op("Sum", {"a", "b", "c"}, {"c"})}), {"a"}) == "0 1");
    CHECK(steps_text(net({op("FC", {"x", "w", "b"}, {"a"}), op("Sum", {"a", "b"}, {"c"})}),
                     {"a"}) == "0 1");
  }
  SUBCASE("nothing that the first operator reads may change before the last one") {
    CHECK(steps_text(net({conv, op("Exp", {"b"}, {"w"}), op("Relu", {"a"}, {"c"})}), {"a"}) ==
          "0 1 2");
    const std::vector<OperatorDef> sum = {conv, op("Sum", {"a", "b"}, {"c"}),
                                          op("Exp", {"x"}, {"b"}), op("Relu", {"c"}, {"c"})};
    CHECK(steps_text(net(sum), {"a", "c"}) == "0+b>c 2 3");
  }
  SUBCASE("arguments, engines and nets in operators stand in the way") {
    OperatorDef add = op("Add", {"a", "b"}, {"c"});
    CHECK(steps_text(net({conv, add}), {"a"}) == "0+b>c");
    add.arg.push_back({});
    add.arg[0].name = "broadcast";
    CHECK(steps_text(net({conv, add}), {"a"}) == "0 1");
    OperatorDef clip = op("Clip", {"a"}, {"c"});
    CHECK(steps_text(net({conv, clip}), {"a"}) == "0+r>c");
    OperatorDef relu = op("Relu", {"a"}, {"c"});
    relu.engine = "CUDNN";  // as brew builds them
    CHECK(steps_text(net({conv, relu}), {"a"}) == "0+r>c");
    relu.engine = "REFERENCE";
    CHECK(steps_text(net({conv, relu}), {"a"}) == "0 1");
    OperatorDef branch = op("If", {"b"}, {"d"});
    branch.arg.push_back({});
    branch.arg[0].name = "then_net";
    branch.arg[0].n.emplace();
    CHECK(steps_text(net({conv, branch, op("Relu", {"a"}, {"c"})}), {"a"}) == "0 1 2");
  }
}

TEST_CASE("values that live at the same time do not overlap, others share memory") {
  std::vector<Lifetime> chain = {{1000, 0, 1}, {500, 1, 2}, {1000, 2, 3}, {64, 3, 9}};
  CHECK(place(chain) == 1024 + 512);
  std::vector<Lifetime> values;
  uint64_t state = 1;
  const auto draw = [&](int limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % static_cast<uint64_t>(limit));
  };
  for (int i = 0; i < 60; i++) {
    const int first = draw(40);
    values.push_back({static_cast<size_t>(draw(5000)), first, first + draw(8)});
  }
  const size_t bytes = place(values);
  for (const Lifetime& a : values) {
    CHECK(a.offset % Allocator::kAlignment == 0);
    CHECK(a.offset + a.bytes <= bytes);
    for (const Lifetime& b : values) {
      if (&a == &b || a.last < b.first || b.last < a.first || !a.bytes || !b.bytes) continue;
      CHECK((a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset));
    }
  }
}

namespace {

struct Fixture {
  std::shared_ptr<Engine> engine = std::make_shared<Engine>(EngineOptions{2, "auto", 0});
  Workspace workspace{engine};

  Tensor tensor(const Shape& shape, Layout layout = {}) {
    Tensor tensor(engine->allocator(), shape, DataType::kFloat, layout);
    std::fill_n(tensor.mutable_stored(), tensor.stored_size(), 0.0f);
    return tensor;
  }
  void feed(const std::string& name, const Shape& shape, float first = 0) {
    Tensor fed = tensor(shape);
    for (int64_t i = 0; i < fed.size(); i++) {
      fed.mutable_data<float>()[i] = first + 0.25f * static_cast<float>(i % 13) - 1;
    }
    workspace.create_blob(name)->set(std::move(fed));
  }
  std::vector<float> fetch(const std::string& name) {
    const BlobValue value = workspace.get_blob(name)->get();
    REQUIRE(value.is_tensor());
    return {value.tensor.data<float>(), value.tensor.data<float>() + value.tensor.size()};
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a blocked tensor has one meaning in both orders of its axes") {
  for (const int width : {4, engine->kernels().vector_width}) {
    for (const bool last : {false, true}) {
      const int64_t n = 2, c = width + 3, places = 6;
      const Shape shape = last ? Shape{n, 2, 3, c} : Shape{n, c, 2, 3};
      Tensor blocked = tensor(shape, {width, last});
      CHECK(blocked.stored_size() == n * 2 * width * places);
      CHECK_THROWS_AS(blocked.data<float>(), Error);
      CHECK_THROWS_AS(blocked.raw_data(), Error);
      const auto value = [&](int64_t i, int64_t k, int64_t place) {
        return static_cast<float>((i * c + k) * places + place);
      };
      for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < c; k++) {
          for (int64_t p = 0; p < places; p++) {
            blocked.mutable_stored()[((i * 2 + k / width) * places + p) * width + k % width] =
                value(i, k, p);
          }
        }
      }
      const Tensor plain = blocked.to_plain();
      workspace.create_blob("x")->set(blocked);
      workspace.run_operator_once(op("Sigmoid", {"x"}, {"y"}), "");
      workspace.create_blob("z")->set(blocked);
      workspace.create_blob("also_z")->set(blocked);
      workspace.run_operator_once(op("Sum", {"z", "also_z"}, {"z"}), "");
      CHECK(!workspace.get_blob("z")->get_stored().tensor.layout().plain());
      const std::vector<float> sigmoid = fetch("y"), sum = fetch("z");
      CHECK(workspace.get_blob("z")->get_stored().tensor.layout().plain());
      for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < c; k++) {
          for (int64_t p = 0; p < places; p++) {
            const int64_t at = last ? (i * places + p) * c + k : (i * c + k) * places + p;
            CHECK(plain.data<float>()[at] == value(i, k, p));
            CHECK(sum[at] == 2 * value(i, k, p));
            CHECK(sigmoid[at] == doctest::Approx(1 / (1 + std::exp(-value(i, k, p)))));
          }
        }
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "a view keeps its order while a net writes its blob in another one") {
  const int width = engine->kernels().vector_width;
  workspace.create_blob("x")->set(tensor({1, width, 2, 2}, {width, false}));
  workspace.run_operator_once(op("Relu", {"x"}, {"y"}), "");
  const Tensor seen = workspace.get_blob("y")->get().tensor;
  seen.storage()->add_view();
  workspace.run_operator_once(op("Relu", {"x"}, {"y"}), "");
  CHECK(workspace.get_blob("y")->get_stored().tensor.storage() != seen.storage());
  seen.storage()->remove_view();
}

TEST_CASE_FIXTURE(Fixture, "hidden blobs: the same results, in less memory, and nothing to see") {
  std::vector<OperatorDef> ops;
  for (int i = 0; i < 12; i++) {
    const std::string from = i == 0 ? "x" : "h" + std::to_string(i - 1);
    ops.push_back(op(i % 2 ? "Relu" : "Tanh", {from}, {"h" + std::to_string(i)}));
  }
  ops.push_back(op("Sum", {"h11", "h5"}, {"y"}));
  const NetDef def = net(ops, {"y"});
  Workspace open(engine);
  feed("x", {64, 1000});
  open.create_blob("x")->set(workspace.get_blob("x")->get());
  open.create_net(def, {}, false)->run();
  const auto hidden = workspace.create_net(def, {}, false, {.hide_intermediates = true});
  const size_t before = engine->allocator()->used();
  for (int run = 0; run < 3; run++) {
    hidden->run();
    const BlobValue expected = open.get_blob("y")->get();
    const float* values = expected.tensor.data<float>();
    CHECK(fetch("y") == std::vector<float>(values, values + expected.tensor.size()));
  }
  CHECK(workspace.blob_names() == std::vector<std::string>{"x", "y"});
  // The output, and three hidden values at a time instead of twelve.
  CHECK(engine->allocator()->used() - before <= 4 * 64 * 1000 * sizeof(float) + 1024);
  // Larger and smaller inputs are other runs of the same net.
  for (const int64_t rows : {100, 3}) {
    feed("x", {rows, 1000}, 0.5f);
    open.create_blob("x")->set(workspace.get_blob("x")->get());
    open.get_net("net")->run();
    for (int run = 0; run < 2; run++) {
      hidden->run();
      const BlobValue expected = open.get_blob("y")->get();
      const float* values = expected.tensor.data<float>();
      CHECK(fetch("y") == std::vector<float>(values, values + expected.tensor.size()));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "hidden blobs: what is joined is written where it will lie") {
  // c0 = [h0 h1], c1 = [c0 h2]; h3 is needed after it was joined, so it stays apart.
  const NetDef def =
      net({op("Relu", {"x"}, {"h0"}), op("Tanh", {"x"}, {"h1"}),
           op("Concat", {"h0", "h1"}, {"c0", "info0"}), op("Sigmoid", {"x"}, {"h2"}),
           op("Concat", {"c0", "h2"}, {"c1", "info1"}), op("Tanh", {"x"}, {"h3"}),
           op("Concat", {"h3", "c1"}, {"c2", "info2"}), op("Relu", {"c2"}, {"c2"}),
           op("Negative", {"h3"}, {"h4"}), op("Concat", {"c2", "h4"}, {"y", "info"})},
          {"y"});
  Workspace open(engine);
  open.create_blob("x");
  open.create_net(def, {}, false);
  const auto check = [&](const std::shared_ptr<CompiledNet>& hidden, int64_t n, int64_t c) {
    feed("x", {n, c, 4, 4}, -0.7f);
    open.get_blob("x")->set(workspace.get_blob("x")->get());
    for (int run = 0; run < 3; run++) {
      hidden->run();
      open.get_net("net")->run();
      const BlobValue expected = open.get_blob("y")->get();
      const float* values = expected.tensor.data<float>();
      CHECK(fetch("y") == std::vector<float>(values, values + expected.tensor.size()));
    }
  };
  feed("x", {1, 1, 4, 4});
  const auto hidden = workspace.create_net(def, {}, false, {.hide_intermediates = true});
  check(hidden, 1, 64);
  // Other sizes, among them such that fit into the places of before but lie otherwise.
  check(hidden, 2, 16);
  check(hidden, 1, 7);
  check(hidden, 3, 16);
  check(hidden, 1, 64);
}

TEST_CASE_FIXTURE(Fixture, "hidden blobs: what is joined needs no memory of its own") {
  NetDef def = net({op("Tanh", {"x"}, {"h0"}), op("Relu", {"x"}, {"h1"}),
                    op("Concat", {"h0", "h1"}, {"c", "info"}), op("Sigmoid", {"c"}, {"y"})},
                   {"y"});
  feed("x", {1, 64, 10, 10});
  const size_t before = engine->allocator()->used();
  workspace.create_net(def, {}, false, {.hide_intermediates = true});
  for (int run = 0; run < 3; run++) workspace.get_net("net")->run();
  CHECK(engine->allocator()->used() - before <= 4 * 6400 * sizeof(float) + 1024);
}

TEST_CASE_FIXTURE(Fixture,
                  "what exists, is wanted, or is used by operators with a memory is not hidden") {
  feed("x", {3});
  feed("kept", {3});
  OperatorDef iter = op("Iter", {"count"}, {"count"});
  Tensor count(engine->allocator(), {1}, DataType::kInt64);
  count.mutable_data<int64_t>()[0] = 4;
  workspace.create_blob("count")->set(std::move(count));
  workspace
      .create_net(net({op("Relu", {"x"}, {"kept"}), op("Tanh", {"kept"}, {"out"}),
                       op("Relu", {"out"}, {"gone"}), iter},
                      {"out"}),
                  {}, false, {.hide_intermediates = true})
      ->run();
  CHECK(workspace.blob_names() == std::vector<std::string>{"count", "kept", "out", "x"});
  CHECK(fetch("kept")[0] == 0);
}

TEST_CASE_FIXTURE(Fixture, "while somebody watches, every operator is a step of its own") {
  feed("x", {1, 2, 3, 3});
  feed("w", {2, 2, 1, 1});
  OperatorDef conv = op("Conv", {"x", "w"}, {"y"});
  conv.arg.push_back({});
  conv.arg[0].name = "kernel";
  conv.arg[0].i = 1;
  const auto made = workspace.create_net(net({conv, op("Relu", {"y"}, {"y"})}, {"y"}), {}, false);
  made->run();
  const auto fused = fetch("y");
  CHECK(made->time_operators(1)[1] == 0);
  std::vector<std::string> seen;
  float least = 0;
  made->observe([&](int i, bool done) {
    seen.push_back(std::to_string(i) + (done ? " done" : ""));
    if (i != 1 || done) return;
    const auto values = fetch("y");
    least = *std::min_element(values.begin(), values.end());
  });
  made->run();
  CHECK(seen == std::vector<std::string>{"0", "0 done", "1", "1 done"});
  CHECK(least < 0);
  CHECK(fetch("y") == fused);
  made->observe(nullptr);
  made->run();
  CHECK(seen.size() == 4);
  CHECK(fetch("y") == fused);
}

TEST_CASE_FIXTURE(Fixture, "nets that are quoted as text are seen by whoever looks for nets") {
  const auto branch = [](const std::string& text) {
    OperatorDef def = op("If", {"yes"}, {});
    def.arg.push_back({});
    def.arg[0].name = "then_net";
    def.arg[0].s = text;
    return def;
  };
  Tensor yes(engine->allocator(), {}, DataType::kBool);
  *yes.mutable_data<bool>() = true;
  workspace.create_blob("yes")->set(std::move(yes));
  feed("x", {1, 2, 3, 3});
  feed("w", {2, 2, 1, 1});
  feed("later", {1, 2, 3, 3}, 5);
  const auto run = [this](const NetDef& def, bool hide) {
    workspace.create_net(def, {}, true, {.hide_intermediates = hide})->run();
    return fetch("y");
  };
  SUBCASE("what they read is not hidden") {
    OperatorDef copy = branch("op { type: 'Copy' input: 'a' output: 'y' }");
    copy.output = {"y"};
    const NetDef def = net({op("Tanh", {"x"}, {"a"}), copy}, {"y"});
    const auto open = run(def, false);
    workspace.remove_blob("a");
    CHECK(run(def, true) == open);
  }
  SUBCASE("what they write stands in the way of a step that would run later") {
    OperatorDef conv = op("Conv", {"x", "w"}, {"a"});
    conv.arg.push_back({});
    conv.arg[0].name = "kernel";
    conv.arg[0].i = 1;
    const NetDef def = net(
        {conv, branch("op { type: 'Copy' input: 'later' output: 'x' }"), op("Relu", {"a"}, {"y"})},
        {"y"});
    const auto open = run(def, false);
    workspace.remove_blob("a");
    feed("x", {1, 2, 3, 3});
    CHECK(run(def, true) == open);
  }
  SUBCASE("their operators are known, when the net is made") {
    const NetDef def =
        net({branch("op { type: 'If' arg { name: 'then_net' s: "
                    "'op { type: \"Nonsense1\" }' } }")});
    CHECK_THROWS_WITH_AS(workspace.create_net(def, {}, true),
                         doctest::Contains("unknown operator types: 'Nonsense1'"), Error);
    CHECK_THROWS_WITH_AS(
        workspace.create_net(net({branch("op {")}), {}, true),
        doctest::Contains("Operator 0 (If) of net 'net': argument 'then_net': the text is no net"),
        Error);
  }
}

TEST_CASE_FIXTURE(Fixture, "hidden blobs: what each run moves does not make it lay out all anew") {
  // Softmax reads its input in plain order, whatever the order it was written in.
  const int width = engine->kernels().vector_width;
  workspace.create_blob("x")->set(tensor({1, width, 5, 5}, {width, false}));
  const NetDef def = net(
      {op("Relu", {"x"}, {"h0"}), op("Softmax", {"h0"}, {"h1"}), op("Tanh", {"h1"}, {"y"})}, {"y"});
  const auto hidden = workspace.create_net(def, {}, false, {.hide_intermediates = true});
  for (int run = 0; run < 3; run++) hidden->run();
  const int64_t before = engine->allocator()->calls();
  hidden->run();
  CHECK(engine->allocator()->calls() - before <= 1);  // what is moved
}
