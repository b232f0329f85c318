// Allocator, tensors, thread pool, schemas.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "core/arguments.h"
#include "core/engine.h"
#include "core/machine.h"
#include "core/near_names.h"
#include "core/numbers.h"
#include "core/serialize.h"
#include "core/tensor.h"
#include "core/thread_pool.h"

using namespace caffe2;

namespace {

template <class F>
std::string error_text(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the allocator counts, aligns, limits and fails on request") {
  Allocator allocator;
  void* a = allocator.allocate(1);
  void* b = allocator.allocate(65);
  CHECK(reinterpret_cast<uintptr_t>(a) % 64 == 0);
  CHECK(allocator.used() == 64 + 128);
  allocator.release(a, 1);
  CHECK(allocator.used() == 128);
  CHECK(allocator.peak() == 192);
  allocator.set_limit(256);
  CHECK(error_text([&] { allocator.allocate(129); }) ==
        "allocating 129 bytes would pass the memory limit of 256 bytes (128 in use)");
  CHECK(allocator.used() == 128);
  allocator.set_limit(SIZE_MAX);
  allocator.fail_at_call(2);
  void* c = allocator.allocate(8);
  CHECK_THROWS_AS(allocator.allocate(8), Error);
  void* d = allocator.allocate(8);
  CHECK_THROWS_AS(allocator.allocate(SIZE_MAX - 3), Error);
  allocator.release(b, 65);
  allocator.release(c, 8);
  allocator.release(d, 8);
  CHECK(allocator.used() == 0);
}

TEST_CASE("unless another limit is set, an engine takes three quarters of the memory there is") {
  const size_t most = Allocator::default_limit();
  CHECK(most == machine_memory() / 4 * 3);
  Engine engine({.threads = 1});
  Allocator& allocator = *engine.allocator();
  CHECK(allocator.limit() == most);
  CHECK(error_text([&] { allocator.allocate(most + 1); }) ==
        concat("allocating ", most + 1, " bytes would pass the memory limit of ", most,
               " bytes (0 in use); unless set, it is three quarters of the memory there is"));
  allocator.set_limit(64);
  allocator.set_limit(0);
  CHECK(allocator.limit() == most);
}

TEST_CASE("control groups limit memory, those around a process too") {
  const std::filesystem::path root = std::filesystem::temp_directory_path() / "caffe2_groups";
  const auto write = [&](const char* file, const char* text) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text << "\n";
  };
  const auto limit = [&](const char* groups) {
    return control_group_memory(groups, root.string());
  };
  write("outer/memory.max", "4096");
  write("outer/inner/memory.max", "max");
  write("memory/docker/memory.limit_in_bytes", "8192");
  write("memory/memory.limit_in_bytes", "1024");
  CHECK(limit("0::/outer/inner\n") == 4096);
  CHECK(limit("0::/other\n") == UINT64_MAX);
  CHECK(limit("3:cpuset:/outer\n0::/\n") == UINT64_MAX);
  CHECK(limit("5:cpu,memory:/elsewhere\n0::/outer") == 1024);
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  CHECK(limit("4:memory:/docker\n") == 8192);
  CHECK(limit("no group\n\n:") == UINT64_MAX);
  std::filesystem::remove_all(root);
}

TEST_CASE("sizes are checked for overflow") {
  // Addresses of 32 bits are too few for one such dimension, also where there is no element.
  const int64_t huge = int64_t{1} << 40;
  const bool narrow = sizeof(ptrdiff_t) == 4;
  const std::string too_large = "a tensor of 1099511627776 elements is too large";
  CHECK(error_text([&] { Shape{huge, huge}.size(); }) ==
        (narrow ? too_large : "the size 1099511627776 x 1099511627776 overflows 64 bits"));
  CHECK(error_text([&] { Shape{0, huge}; }) == (narrow ? too_large : "no error"));
  const Shape plane{int64_t{1} << 20, int64_t{1} << 20, 0};
  CHECK(error_text([&] { plane.product(0, 2); }) == (narrow ? too_large : "no error"));
  CHECK_THROWS_AS(Shape{-1}, Error);
  Shape many;
  for (int i = 0; i < Shape::kMaxDims; i++) many.append(1);
  CHECK(error_text([&] { many.append(1); }) == "a tensor has at most 16 dimensions");
  CHECK(Shape{2, 3}.text() == "(2, 3)");
  CHECK(Shape{2}.text() == "(2,)");
  CHECK(Shape{}.size() == 1);
}

TEST_CASE("every write raises the version of the storage") {
  auto allocator = std::make_shared<Allocator>();
  Tensor a(allocator, {2}, DataType::kFloat);
  Tensor alias = a;
  const uint64_t before = a.storage()->version();
  alias.mutable_data<float>()[0] = 1;
  CHECK(a.storage()->version() == before + 1);
  a.raw_mutable_data();
  CHECK(alias.storage()->version() == before + 2);
  a.data<float>();
  CHECK(a.storage()->version() == before + 2);
  CHECK(error_text([&] { a.data<int>(); }) == "a tensor of type float was used as int32");

  // Parts that overlap are one memory.
  const auto whole = std::make_shared<Storage>(a.storage(), 0, 8);
  const auto part = std::make_shared<Storage>(a.storage(), 4, 4);
  const uint64_t seen = part->version();
  whole->raise_version();
  CHECK(part->version() > seen);
  whole->add_view();
  const uint64_t viewed = part->version();
  CHECK(part->version() > viewed);
  CHECK(part->views() == 0);
  whole->remove_view();
  CHECK(part->version() == part->version());
}

TEST_CASE("the pool runs every block once, nested and from several threads") {
  for (const int threads : {1, 2, 8}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; round++) {
      struct Job {
        ThreadPool* pool;
        std::vector<std::atomic<int>> counts = std::vector<std::atomic<int>>(100);
      } job{&pool};
      pool.run(
          100,
          [](void* context, int i) {
            Job& j = *static_cast<Job*>(context);
            j.pool->run(
                2, [](void* c, int) { ++*static_cast<std::atomic<int>*>(c); }, &j.counts[i]);
          },
          &job);
      for (const auto& count : job.counts) CHECK(count == 2);
    }
    std::atomic<int> total{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 4; t++) {
      callers.emplace_back([&] {
        for (int k = 0; k < 100; k++) {
          pool.run(7, [](void* c, int) { ++*static_cast<std::atomic<int>*>(c); }, &total);
        }
      });
    }
    for (auto& caller : callers) caller.join();
    CHECK(total == 4 * 100 * 7);
    pool.resize(3);
    CHECK(pool.threads() == 3);
    total = 0;
    pool.run(5, [](void* c, int) { ++*static_cast<std::atomic<int>*>(c); }, &total);
    CHECK(total == 5);
  }
}

TEST_CASE("numbers out of text") {
  const auto read = [](std::string_view text) {
    double value = 7;
    const auto [end, error] = read_double(text, value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(value) : std::nullopt;
  };
  CHECK(read("0.1") == 0.1);
  CHECK(read("-12.5e-1") == -1.25);
  CHECK(read(".5") == 0.5);
  CHECK(read("9007199254740993") == 9007199254740992.0);
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(read("inf") == infinite);
  CHECK(read("-Infinity") == -infinite);
  CHECK(std::isnan(read("nan").value_or(0)));
  CHECK(read("1e999") == infinite);
  CHECK(read("-1E999") == -infinite);
  CHECK(read("1e-999") == 0.0);
  CHECK(std::signbit(read("-1e-999").value_or(1)));
  for (const char* wrong : {"", "+1", " 1", "0x10", "1,5", "e5", "-", "1e999x"}) {
    CHECK_FALSE(read(wrong).has_value());
  }
}

TEST_CASE("near names") {
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("Rleu", "Relu") == 1);
  CHECK(edit_distance("ca", "abc") == 3);
  const std::vector<std::string> names{"conv1_w", "conv2_w", "fc"};
  CHECK(near_names("conv1_ww", names) == ". Did you mean conv1_w, conv2_w?");
  CHECK(near_names("something_else", names).empty());
}

TEST_CASE("the table of schemas is sorted and found by name") {
  for (int i = 1; i < kOperatorSchemaCount; i++) {
    CHECK(std::strcmp(kOperatorSchemas[i - 1].name, kOperatorSchemas[i].name) < 0);
  }
  CHECK(find_schema("Conv") != nullptr);
  CHECK(find_schema("Con") == nullptr);
  CHECK(find_schema("") == nullptr);
}

namespace {

OperatorDef relu(const std::string& in, const std::string& out) {
  OperatorDef def;
  def.type = "Relu";
  def.input = {in};
  def.output = {out};
  return def;
}

Argument integer(const std::string& name, int64_t value) {
  Argument arg;
  arg.name = name;
  arg.i = value;
  return arg;
}

}  // namespace

TEST_CASE("definitions are verified: counts, in-place use, arguments") {
  const auto text = [](const OperatorDef& def) {
    return error_text([&] { verify(def, *find_schema(*def.type)); });
  };
  CHECK(text(relu("x", "x")) == "no error");
  OperatorDef def = relu("x", "y");
  def.input.push_back("z");
  CHECK(text(def) == "it has 2 input(s); allowed: 1");
  OperatorDef conv;
  conv.type = "Conv";
  conv.input = {"x", "w"};
  conv.output = {"x"};
  CHECK(text(conv) ==
        "blob 'x' is both input 0 and output 0, and this operator cannot run in-place there");
  conv.output = {"y"};
  conv.arg = {integer("stride", 0)};
  CHECK(text(conv) == "argument 'stride' = 0 is below the least allowed value 1");
  Argument order;
  order.name = "order";
  order.s = "NCWH";
  conv.arg = {order};
  CHECK(text(conv) == "argument 'order' = 'NCWH' is not one of: NCHW NHWC nchw nhwc");
  conv.arg = {integer("order", 3)};
  CHECK(text(conv) == "argument 'order' must be a string");
  conv.arg = {integer("something_of_an_old_net", 3)};
  CHECK(text(conv) == "no error");
}

TEST_CASE("blobs survive serialization; damaged bytes are refused") {
  Engine engine;
  Tensor tensor(engine.allocator(), {2, 3}, DataType::kFloat);
  std::iota(tensor.mutable_data<float>(), tensor.mutable_data<float>() + 6, 0.5f);
  const std::string bytes = serialize_blob("x", BlobValue{tensor, nullptr});
  const BlobValue back = deserialize_blob(bytes, engine);
  CHECK(back.tensor.shape() == Shape{2, 3});
  CHECK(std::memcmp(back.tensor.raw_data(), tensor.raw_data(), tensor.bytes()) == 0);
  for (size_t n = 0; n < bytes.size(); n++) {
    CHECK_THROWS_AS(deserialize_blob(bytes.substr(0, n), engine), Error);
  }
  const BlobValue text{Tensor(), std::make_shared<Text>("hello")};
  CHECK(deserialize_blob(serialize_blob("t", text), engine).as<Text>()->value == "hello");
  struct InMemory : Object {
    const char* kind() const override { return "a kind that lives in memory"; }
  };
  CHECK(error_text([&] {
          serialize_blob("m", BlobValue{Tensor(), std::make_shared<InMemory>()});
        }) == "a blob that holds a kind that lives in memory cannot be saved");
}
