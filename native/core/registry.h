// Kernels by (operator type, device, engine).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/operator.h"

namespace caffe2 {

using OperatorFactory = std::unique_ptr<Operator> (*)(const OperatorContext& context);

class KernelRegistry {
 public:
  // All kernels that were compiled in; the list is generated from the sources.
  static const KernelRegistry& builtin();

  void add(std::string_view type, Device device, std::string_view engine, OperatorFactory factory);

  // nullptr when there is none. An engine that nobody registered falls back to the default one:
  // nets name engines ("CUDNN") that are hints for other devices.
  OperatorFactory find(std::string_view type, Device device, std::string_view engine) const;

  // What is registered for a type, for error texts: "CPU, CPU/IM2COL", or "none".
  std::string describe(std::string_view type) const;

 private:
  static std::string key(std::string_view type, Device device, std::string_view engine);
  std::unordered_map<std::string, OperatorFactory> factories_;
};

void register_generated_kernels(KernelRegistry& registry);

// One line per operator in a file of native/operators; native/generate.py collects the names.
// REGISTER_CPU_OPERATOR(Relu, ReluOperator) or, with an engine, ..._WITH_ENGINE(Conv, IM2COL, ...).
#define CAFFE2_FACTORY(...)                                                             \
  [](const ::caffe2::OperatorContext& context) -> std::unique_ptr<::caffe2::Operator> { \
    return std::make_unique<__VA_ARGS__>(context);                                      \
  }
#define REGISTER_CPU_OPERATOR(name, ...)                                          \
  void caffe2_register_cpu_##name(::caffe2::KernelRegistry& registry);            \
  void caffe2_register_cpu_##name(::caffe2::KernelRegistry& registry) {           \
    registry.add(#name, ::caffe2::Device::kCPU, "", CAFFE2_FACTORY(__VA_ARGS__)); \
  }
#define REGISTER_CPU_OPERATOR_WITH_ENGINE(name, engine, ...)                           \
  void caffe2_register_cpu_##name##_##engine(::caffe2::KernelRegistry& registry);      \
  void caffe2_register_cpu_##name##_##engine(::caffe2::KernelRegistry& registry) {     \
    registry.add(#name, ::caffe2::Device::kCPU, #engine, CAFFE2_FACTORY(__VA_ARGS__)); \
  }

}  // namespace caffe2
