#include "bindings/arrays.h"

#include <cstring>
#include <utility>
#include <vector>

namespace caffe2::bindings {

using namespace nb::literals;

namespace {

nb::dlpack::dtype dlpack_type(DataType type) {
  using nb::dlpack::dtype_code;
  const auto make = [&](dtype_code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * type_size(type)),
                             1};
  };
  switch (type) {
    case DataType::kFloat:
    case DataType::kDouble:
    case DataType::kFloat16:
      return make(dtype_code::Float);
    case DataType::kBool:
      return make(dtype_code::Bool);
    case DataType::kByte:
    case DataType::kUInt8:
    case DataType::kUInt16:
      return make(dtype_code::UInt);
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
      return make(dtype_code::Int);
    case DataType::kString:
    case DataType::kUndefined:
      break;
  }
  fail(Code::kUnsupported, "tensors of type ", type_name(type), " have no array form");
}

// The array owns `owner`, which is deleted with it.
template <class Owner>
nb::object make_array(void* data, const Tensor& tensor, Owner* owner) {
  nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<Owner*>(p); });
  std::vector<size_t> shape(tensor.shape().begin(), tensor.shape().end());
  const nb::dlpack::dtype dtype = dlpack_type(tensor.type());
  return nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), capsule, nullptr, dtype).cast();
}

}  // namespace

namespace {

DataType find_data_type(nb::dlpack::dtype dtype) {
  for (int i = 1; i <= static_cast<int>(DataType::kDouble); i++) {
    const auto type = static_cast<DataType>(i);
    // uint8 arrays become UINT8 tensors; BYTE is what old files call the same thing.
    if (type_size(type) == 0 || type == DataType::kByte || type == DataType::kString) continue;
    if (dlpack_type(type) == dtype) return type;
  }
  return DataType::kUndefined;
}

}  // namespace

bool is_data_type(nb::dlpack::dtype dtype) { return find_data_type(dtype) != DataType::kUndefined; }

DataType data_type(nb::dlpack::dtype dtype) {
  const DataType type = find_data_type(dtype);
  if (type != DataType::kUndefined) return type;
  fail(Code::kInvalidArgument,
       "arrays of this element type cannot become tensors; allowed are "
       "bool, int8, int16, int32, int64, uint8, uint16, float16, float32, float64");
}

Shape shape_of(const InputArray& array) {
  Shape shape;
  for (size_t i = 0; i < array.ndim(); i++) shape.append(static_cast<int64_t>(array.shape(i)));
  return shape;
}

Tensor to_tensor(const InputArray& array, Engine& engine) {
  Tensor tensor(engine.allocator(), shape_of(array), data_type(array.dtype()));
  if (tensor.bytes() > 0) std::memcpy(tensor.raw_mutable_data(), array.data(), tensor.bytes());
  return tensor;
}

Tensor lend_tensor(const InputArray& array, Engine& engine) {
  struct ArrayLender : Lender {
    explicit ArrayLender(InputArray lent) : array(std::move(lent)) {}
    InputArray array;
  };
  const Shape shape = shape_of(array);
  const DataType type = data_type(array.dtype());
  const size_t bytes = Tensor::bytes_for(shape, type);
  void* data = const_cast<void*>(array.data());
  if (bytes == 0 || reinterpret_cast<uintptr_t>(data) % type_size(type) != 0) {
    return to_tensor(array, engine);
  }
  return Tensor(std::make_shared<Storage>(engine.allocator(), std::make_shared<ArrayLender>(array),
                                          data, bytes),
                shape, type);
}

Tensor to_string_tensor(const nb::object& array, Engine& engine) {
  Shape shape;
  for (nb::handle dim : array.attr("shape")) shape.append(nb::cast<int64_t>(dim));
  Tensor tensor(engine.allocator(), shape, DataType::kString);
  std::string* out = tensor.mutable_data<std::string>();
  for (nb::handle item : array.attr("flat")) {
    const auto bytes = nb::cast<nb::bytes>(item);
    *out++ = std::string(bytes.c_str(), bytes.size());
  }
  return tensor;
}

namespace {

nb::object string_array(const Tensor& tensor) {
  nb::list items;
  const auto* strings = tensor.data<std::string>();
  for (int64_t i = 0; i < tensor.size(); i++) {
    items.append(nb::bytes(strings[i].data(), strings[i].size()));
  }
  nb::list shape;
  for (const int64_t dim : tensor.shape()) shape.append(dim);
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("empty")(nb::tuple(shape), "dtype"_a = nb::str("O"));
  if (tensor.size() > 0) array.attr("flat") = items;
  return array;
}

}  // namespace

nb::object to_array(const Tensor& tensor) {
  if (tensor.type() == DataType::kString) return string_array(tensor);
  struct Buffer {
    std::unique_ptr<unsigned char[]> data;
  };
  const size_t bytes = tensor.bytes();
  auto buffer = std::make_unique<Buffer>();
  buffer->data.reset(new unsigned char[bytes > 0 ? bytes : 1]);
  if (bytes > 0) std::memcpy(buffer->data.get(), tensor.raw_data(), bytes);
  void* data = buffer->data.get();
  return make_array(data, tensor, buffer.release());
}

nb::object view_array(const Tensor& tensor) {
  struct View {
    explicit View(std::shared_ptr<Storage> s) : storage(std::move(s)) { storage->add_view(); }
    ~View() { storage->remove_view(); }
    std::shared_ptr<Storage> storage;
  };
  auto view = std::make_unique<View>(tensor.storage());
  return make_array(tensor.storage()->data(), tensor, view.release());
}

}  // namespace caffe2::bindings
