// Workspaces and nets: failures leave things as they were, and say where they happened.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/workspace.h"

using namespace caffe2;

namespace {

struct Fixture {
  std::shared_ptr<Engine> engine = std::make_shared<Engine>(EngineOptions{2, "auto", 0});
  Workspace workspace{engine};

  void feed(const std::string& name, const Shape& shape, float value) {
    Tensor tensor(engine->allocator(), shape, DataType::kFloat);
    float* data = tensor.mutable_data<float>();
    for (int64_t i = 0; i < tensor.size(); i++) data[i] = value;
    workspace.create_blob(name)->set(std::move(tensor));
  }
  std::vector<float> fetch(const std::string& name) {
    const BlobValue value = workspace.get_blob(name)->get();
    REQUIRE(value.is_tensor());
    const Tensor& tensor = value.tensor;
    return {tensor.data<float>(), tensor.data<float>() + tensor.size()};
  }
};

OperatorDef op(const std::string& type, std::vector<std::string> in, std::vector<std::string> out) {
  OperatorDef def;
  def.type = type;
  def.input = std::move(in);
  def.output = std::move(out);
  return def;
}

NetDef net(const std::string& name, std::vector<OperatorDef> ops) {
  NetDef def;
  def.name = name;
  def.op = std::move(ops);
  return def;
}

template <class F>
Error error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kInternal, "no error");
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a net runs by name on the blobs of its workspace") {
  feed("x", {2}, -3);
  workspace.create_net(net("n", {op("Relu", {"x"}, {"y"}), op("Sum", {"y", "x"}, {"z"})}), {},
                       false);
  CHECK(workspace.find_blob("z") != nullptr);
  workspace.get_net("n")->run();
  CHECK(fetch("z") == std::vector<float>{-3, -3});
  feed("x", {3}, 2);
  workspace.get_net("n")->run();
  CHECK(fetch("z") == std::vector<float>{4, 4, 4});
}

TEST_CASE_FIXTURE(Fixture, "nets outlive the removal of their blobs") {
  feed("x", {2}, 1);
  workspace.create_net(net("n", {op("Relu", {"x"}, {"y"})}), {}, false);
  workspace.get_net("n")->run();
  workspace.remove_blob("y");
  workspace.get_net("n")->run();
  CHECK(fetch("y") == std::vector<float>{1, 1});
  workspace.remove_blob("x");
  const Error error = error_of([&] { workspace.get_net("n")->run(); });
  CHECK(error.code() == Code::kNotFound);
  CHECK(std::string(error.what()).find("'x' (operator 0, Relu)") != std::string::npos);
  feed("x", {1}, 5);
  workspace.get_net("n")->run();
  CHECK(fetch("y") == std::vector<float>{5});
}

TEST_CASE_FIXTURE(Fixture, "a net that cannot be made changes nothing") {
  feed("x", {2}, 1);
  const Error unknown = error_of([&] {
    workspace.create_net(net("n", {op("Relu", {"x"}, {"y"}), op("Rleu", {"y"}, {"z"}),
                                   op("Nonsense1", {"y"}, {"u"})}),
                         {}, false);
  });
  CHECK(unknown.code() == Code::kNotFound);
  CHECK(std::string(unknown.what()).find("'Nonsense1'") != std::string::npos);
  CHECK(std::string(unknown.what()).find("'Rleu'. Did you mean Relu") != std::string::npos);
  const Error missing = error_of([&] {
    workspace.create_net(net("n", {op("Sum", {"x", "a"}, {"y"}), op("Sum", {"y", "b"}, {"z"})}),
                         {"file.py:1", "file.py:2"}, false);
  });
  const std::string text = missing.what();
  CHECK(text.find("reads 2 blob(s)") != std::string::npos);
  CHECK(text.find("'a' (operator 0, Sum, file.py:1)") != std::string::npos);
  CHECK(text.find("'b' (operator 1, Sum, file.py:2)") != std::string::npos);
  CHECK(workspace.blob_names() == std::vector<std::string>{"x"});
  CHECK(workspace.net_names().empty());
  CHECK(error_of([&] { workspace.create_net(net("", {}), {}, false); }).code() ==
        Code::kInvalidArgument);
}

TEST_CASE_FIXTURE(Fixture, "a failing operator is named and leaves its outputs as they were") {
  feed("x", {2}, 1);
  feed("bad", {3}, 1);
  feed("z", {1}, 42);
  workspace.create_net(net("n", {op("Relu", {"x"}, {"y"}), op("Sum", {"y", "bad"}, {"z"})}),
                       {"a.py:7", "a.py:8"}, false);
  const Error error = error_of([&] { workspace.get_net("n")->run(); });
  CHECK(error.location().op_index == 1);
  CHECK(std::string(error.what()) ==
        "Operator 1 (Sum) of net 'n': input 0 (A) 'y' has shape (2,) but input 1 (A) 'bad' has "
        "(3,); they must be the same\n  created at a.py:8");
  CHECK(fetch("y") == std::vector<float>{1, 1});
  CHECK(fetch("z") == std::vector<float>{42});
}

TEST_CASE_FIXTURE(Fixture, "running out of memory at any call leaves outputs and memory whole") {
  feed("x", {4, 8}, 1);
  feed("w", {3, 8}, 1);
  feed("b", {3}, 1);
  const auto run = [&] { workspace.run_operator_once(op("FC", {"x", "w", "b"}, {"y"}), ""); };
  int failures = 0;
  for (int n = 1;; n++) {
    workspace.remove_blob("y");
    engine->allocator()->fail_at_call(n);
    const Error error = error_of(run);
    engine->allocator()->fail_at_call(0);
    if (error.text() == "no error") break;
    failures++;
    CHECK(error.code() == Code::kOutOfMemory);
    CHECK(error.location().op_type == "FC");
    const auto y = workspace.find_blob("y");
    CHECK((y == nullptr || y->get().empty()));
  }
  CHECK(failures >= 1);
  CHECK(fetch("y") == std::vector<float>(12, 9));
}

TEST_CASE_FIXTURE(Fixture, "growing a blob leaves a shared storage alone") {
  feed("x", {2}, 7);
  workspace.run_operator_once(op("Relu", {"x"}, {"y"}), "");
  const Tensor held = workspace.get_blob("y")->get().tensor;
  feed("x", {100}, 3);
  workspace.run_operator_once(op("Relu", {"x"}, {"y"}), "");
  CHECK(held.data<float>()[0] == 7);
  CHECK(fetch("y").size() == 100);
}

TEST_CASE_FIXTURE(Fixture, "memory goes back with the last holder") {
  const size_t before = engine->allocator()->used();
  feed("x", {1000}, 1);
  workspace.run_net_once(net("", {op("Relu", {"x"}, {"y"})}), {});
  CHECK(engine->allocator()->used() > before + 8000);
  workspace.reset();
  CHECK(engine->allocator()->used() == before);
}

namespace {

// Doubles output 0 in place; `meanwhile` happens after it has asked for the output, before it
// writes.
class Doubling : public Operator {
 public:
  Doubling(const OperatorContext& context, std::function<void(const float* output)> meanwhile)
      : Operator(context), meanwhile_(std::move(meanwhile)) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    meanwhile_(y.data<float>());
    for (int64_t i = 0; i < y.size(); i++) y.mutable_data<float>()[i] = 2 * x.data<float>()[i];
  }

 private:
  const std::function<void(const float*)> meanwhile_;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "what was read does not change under its reader") {
  std::function<void(const float*)> meanwhile;
  workspace.set_reference_factory([&](const OperatorContext& context) {
    return std::make_unique<Doubling>(context, [&](const float* output) { meanwhile(output); });
  });
  OperatorDef doubling = op("Relu", {"x"}, {"x"});
  doubling.engine = "REFERENCE";
  const auto write = [&] { workspace.run_operator_once(doubling, ""); };
  const auto held = [&] { return workspace.get_blob("x")->get().tensor; };
  feed("x", {2}, 3);

  SUBCASE("a reader before the write keeps the memory, and the write goes elsewhere") {
    const Tensor before = held();
    meanwhile = [&](const float* output) { CHECK(output != before.data<float>()); };
    write();
    CHECK(before.data<float>()[0] == 3);
  }
  SUBCASE("a reader who comes while the blob is being written gets a copy") {
    Tensor copy;
    meanwhile = [&](const float* output) {
      copy = held();
      CHECK(output != copy.data<float>());
      // Packed weights are kept by storage and version: those of a copy are used for nothing else.
      CHECK(copy.storage() != workspace.get_blob("x")->get_shared().tensor.storage());
      workspace.run_operator_once(op("Copy", {"x"}, {"y"}), "");
    };
    write();
    CHECK(copy.data<float>()[1] == 3);
    CHECK(fetch("y") == std::vector<float>{3, 3});
    // Afterwards it is read and written where it lies.
    const float* lies = workspace.get_blob("x")->get_shared().tensor.data<float>();
    CHECK(held().data<float>() == lies);
    meanwhile = [&](const float* output) { CHECK(output == lies); };
    write();
    CHECK(fetch("x") == std::vector<float>{12, 12});
  }
  SUBCASE("of two who write at the same time each has memory of its own; the last one counts") {
    bool outer = true;
    const float* first = nullptr;
    meanwhile = [&](const float* output) {
      if (!std::exchange(outer, false)) {
        CHECK(output != first);
        return;
      }
      first = output;
      write();
      CHECK(fetch("x") == std::vector<float>{6, 6});
    };
    write();
    CHECK(fetch("x") == std::vector<float>{6, 6});
  }
  SUBCASE("a writer who fails gives it back") {
    const float* lies = workspace.get_blob("x")->get_shared().tensor.data<float>();
    meanwhile = [](const float*) { fail(Code::kInvalidArgument, "no"); };
    CHECK(error_of(write).text() == "no");
    CHECK(held().data<float>() == lies);
    meanwhile = [&](const float* output) { CHECK(output == lies); };
    write();
  }
  SUBCASE("views are meant to see writes") {
    const Tensor seen = workspace.get_blob("x")->get_shared().tensor;
    seen.storage()->add_view();
    meanwhile = [&](const float* output) { CHECK(output == seen.data<float>()); };
    write();
    CHECK(seen.data<float>()[0] == 6);
    seen.storage()->remove_view();
  }
  CHECK(fetch("x").size() == 2);
}
