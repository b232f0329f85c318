// Weights that are kept packed: what is written to them counts in the next run.
#include "operators/packed_weights.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "core/int8_tensor.h"
#include "core/workspace.h"

using namespace caffe2;

namespace {

struct Layer {
  std::string type;
  std::vector<Shape> inputs;  // X, filter, bias, ...
  std::vector<int> filters;   // which inputs are packed
  std::vector<std::pair<const char*, int64_t>> args;
  bool is_int8() const { return type.starts_with("Int8"); }
};

const std::vector<Layer> kLayers = {
    {"Conv", {{1, 5, 6, 6}, {20, 5, 3, 3}, {20}}, {1}, {{"kernel", 3}}},
    {"Conv", {{1, 5, 6, 6}, {20, 5, 1, 1}, {20}}, {1}, {{"kernel", 1}}},
    {"FC", {{5, 7}, {20, 7}, {20}}, {1}, {}},
    {"ExpandDepthwise",
     {{1, 5, 6, 6}, {20, 5, 1, 1}, {20}, {20, 1, 3, 3}, {20}},
     {1, 3},
     {{"kernel", 3}}},
    {"ExpandDepthwise",
     {{1, 5, 6, 6}, {20, 5, 1, 1}, {20}, {20, 1, 3, 3}, {20}, {7, 20, 1, 1}, {7}},
     {1, 3, 5},
     {{"kernel", 3}}},
    {"Int8Conv", {{1, 6, 6, 5}, {20, 3, 3, 5}}, {1}, {{"kernel", 3}}},
    {"Int8FC", {{5, 7}, {20, 7}}, {1}, {}},
};

class Run {
 public:
  Run(const Layer& layer, const std::shared_ptr<Engine>& engine)
      : layer_(layer), engine_(engine), workspace_(engine) {
    NetDef def;
    def.name = "net";
    OperatorDef op;
    op.type = layer.type;
    op.output = {"y"};
    for (int i = 0; i < static_cast<int>(layer.inputs.size()); i++) op.input.push_back(name(i));
    for (const auto& [key, value] : layer.args) argument(op, key).i = value;
    if (layer.is_int8()) {
      argument(op, "order").s = "NHWC";
      argument(op, "Y_scale").f = 0.5f;
      argument(op, "Y_zero_point").i = 100;
    }
    def.op = {op};
    for (int i = 0; i < static_cast<int>(layer.inputs.size()); i++) feed(i, i);
    net_ = workspace_.create_net(def, {}, false);
  }

  // Other values where it lies, or in memory of their own.
  void write(int i, int seed) {
    const BlobValue value = workspace_.get_blob(name(i))->get_shared();
    Tensor alias = layer_.is_int8() ? value.as<Int8Tensor>()->values : value.tensor;
    fill(alias, seed);
  }
  void feed(int i, int seed) {
    const DataType type = layer_.is_int8() ? DataType::kUInt8 : DataType::kFloat;
    Tensor tensor(engine_->allocator(), layer_.inputs[i], type);
    fill(tensor, seed);
    Blob& blob = *workspace_.create_blob(name(i));
    if (layer_.is_int8()) {
      blob.set(std::make_shared<Int8Tensor>(std::move(tensor), 0.1f, 3));
    } else {
      blob.set(std::move(tensor));
    }
  }

  std::string answer() {
    net_->run();
    const BlobValue value = workspace_.get_blob("y")->get();
    const Tensor& y = layer_.is_int8() ? value.as<Int8Tensor>()->values : value.tensor;
    return {static_cast<const char*>(y.raw_data()), y.bytes()};
  }

 private:
  static std::string name(int i) { return "input" + std::to_string(i); }
  static Argument& argument(OperatorDef& op, const char* name) {
    op.arg.emplace_back();
    op.arg.back().name = name;
    return op.arg.back();
  }
  static void fill(Tensor& tensor, int seed) {
    const bool floats = tensor.type() == DataType::kFloat;
    void* values = tensor.raw_mutable_data();  // once: storages that are fed have one version
    for (int64_t i = 0; i < tensor.size(); i++) {
      const int64_t value = (i * 7 + seed * 13) % 31;
      if (floats) {
        static_cast<float*>(values)[i] = static_cast<float>(value - 15);
      } else {
        static_cast<uint8_t*>(values)[i] = static_cast<uint8_t>(value);
      }
    }
  }

  const Layer& layer_;
  const std::shared_ptr<Engine> engine_;
  Workspace workspace_;
  std::shared_ptr<CompiledNet> net_;
};

}  // namespace

TEST_CASE("packed weights follow what is written to them, and what takes their place") {
  const auto engine = std::make_shared<Engine>(EngineOptions{1, "auto", 0});
  for (const Layer& layer : kLayers) {
    for (const int filter : layer.filters) {
      CAPTURE(layer.type);
      CAPTURE(filter);
      Run run(layer, engine), fresh(layer, engine);
      const std::string before = fresh.answer();
      for (int i = 0; i < 3; i++) CHECK(run.answer() == before);  // packed by the second one
      for (const bool where_it_lies : {false, true, false}) {
        const int seed = where_it_lies ? 15 : 16;
        where_it_lies ? run.write(filter, seed) : run.feed(filter, seed);
        Run other(layer, engine);
        other.feed(filter, seed);
        const std::string wanted = other.answer();
        CHECK(wanted != before);
        for (int i = 0; i < 3; i++) CHECK(run.answer() == wanted);
      }
    }
  }
}

TEST_CASE("a filter of which only the packed form is left is packed in another way") {
  using kernels::ConvAlgorithm;
  const auto engine = std::make_shared<Engine>(EngineOptions{1, "auto", 0});
  Workspace workspace(engine);
  OperatorDef def;
  def.type = "Conv";
  def.input = {"x", "w"};
  def.output = {"y"};
  const OperatorContext context{def, *find_schema("Conv"), *engine, workspace};
  const kernels::Table& table = engine->kernels();
  kernels::ConvShape s;
  s.c = 35, s.k = 37;
  for (const int64_t window : {1, 3}) {
    s.kh = s.kw = window;
    Tensor filter(engine->allocator(), {s.k, s.c, window, window}, DataType::kFloat);
    for (int64_t i = 0; i < filter.size(); i++) {
      filter.mutable_data<float>()[i] = static_cast<float>(i * 7 % 101 + 2);
    }
    const Tensor original = filter.copy();
    PackedFilter packed(context, 1);
    std::map<ConvAlgorithm, const float*> places;
    for (const auto algorithm :
         {ConvAlgorithm::kDirect, ConvAlgorithm::kIm2col, ConvAlgorithm::kDirect,
          ConvAlgorithm::kWinograd4, ConvAlgorithm::kDirect}) {
      if (!table.conv_supports(s, kernels::ConvPass::kForward, algorithm)) continue;
      std::vector<float> wanted(table.conv_packed_bytes(s, algorithm) / sizeof(float));
      table.conv_pack(s, algorithm, original.data<float>(), wanted.data(), engine->parallel());
      const float* found = packed.get(filter, true, s, algorithm);
      // Inputs whose sizes alternate ask for one and the other: each is packed once.
      for (const auto& [other, place] : places) CHECK((other == algorithm) == (place == found));
      places[algorithm] = found;
      int64_t different = 0;
      for (size_t i = 0; i < wanted.size(); i++) {
        if (wanted[i] != 0) different += found[i] != wanted[i];  // gaps hold anything
      }
      CHECK(different == 0);
      // Filters that may be transformed, which loses bits, stay.
      CHECK(filter.storage()->released() == (window == 1));
    }
  }
}
