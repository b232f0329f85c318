#include "api/caffe2.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/error.h"
#include "api/exchange.h"
#include "api/predictor.h"
#include "core/engine.h"
#include "core/workspace.h"

struct caffe2_engine {
  std::shared_ptr<caffe2::Engine> engine;
};

struct caffe2_workspace {
  caffe2::Workspace workspace;
};

struct caffe2_predictor {
  caffe2::Predictor predictor;
};

namespace caffe2::api {

namespace {

static_assert(CAFFE2_MAX_RANK == Shape::kMaxDims);

constexpr int kMaxThreads = 1024;

// The one way into the engine: no exception leaves `body`.
template <class Body>
caffe2_code guarded(caffe2_error* error, const Body& body) noexcept {
  if (!usable(error)) return CAFFE2_INVALID_ARGUMENT;
  try {
    body();
    return report_success(error);
  } catch (...) {
    return report_exception(error);
  }
}

template <class T>
T& required(T* pointer, const char* what) {
  CAFFE2_ENFORCE(pointer != nullptr, what, " is NULL");
  return *pointer;
}

template <class T>
T& object(T* handle, const char* what) {
  CAFFE2_ENFORCE(handle != nullptr, what, " is NULL: was it not created?");
  return *handle;
}

Workspace& in(caffe2_workspace* handle) { return object(handle, "workspace").workspace; }
const Workspace& in(const caffe2_workspace* handle) {
  return object(handle, "workspace").workspace;
}
Predictor& in(caffe2_predictor* handle) { return object(handle, "predictor").predictor; }
const Predictor& in(const caffe2_predictor* handle) {
  return object(handle, "predictor").predictor;
}

template <class Struct>
Struct& sized(Struct* pointer, const char* what) {
  CAFFE2_ENFORCE(required(pointer, what).struct_size >= sizeof(Struct), what, ".struct_size is ",
                 pointer->struct_size, "; it has to be set to the size of the struct, ",
                 sizeof(Struct));
  return *pointer;
}

std::string_view name_of(const char* name) { return &required(name, "the name"); }

std::string_view bytes_of(const void* data, size_t bytes, const char* what) {
  return {&required(static_cast<const char*>(data), what), bytes};
}

// *out is NULL when this fails, for whatever reason.
template <class Handle, class Make>
caffe2_code create(Handle** out, caffe2_error* error, const Make& make) noexcept {
  if (out != nullptr) *out = nullptr;
  return guarded(error, [&] {
    Handle*& handle = required(out, "the place for the new object");
    handle = make().release();
  });
}

ForeignTensor foreign(const caffe2_tensor* given) {
  const caffe2_tensor& tensor = sized(given, "caffe2_tensor");
  CAFFE2_ENFORCE(tensor.rank >= 0 && tensor.rank <= CAFFE2_MAX_RANK, "caffe2_tensor.rank is ",
                 tensor.rank, "; allowed: 0 to ", CAFFE2_MAX_RANK);
  ForeignTensor result{static_cast<DataType>(tensor.data_type), {}, tensor.data, tensor.bytes};
  for (int i = 0; i < tensor.rank; i++) result.shape.append(tensor.dims[i]);
  return result;
}

void describe(const Tensor& tensor, const void* data, caffe2_tensor& out) {
  out.data_type = static_cast<int32_t>(tensor.type());
  out.rank = tensor.rank();
  std::fill(std::copy(tensor.shape().begin(), tensor.shape().end(), out.dims), std::end(out.dims),
            0);
  out.data = data;
  out.bytes = tensor.bytes();
}

void fetch(const Tensor& tensor, const char* name, void* buffer, size_t capacity,
           caffe2_tensor* description) {
  if (description != nullptr) describe(tensor, buffer, sized(description, "caffe2_tensor"));
  if (buffer == nullptr) return;
  CAFFE2_ENFORCE(capacity >= tensor.bytes(), "the values of '", name, "' need ", tensor.bytes(),
                 " bytes; the buffer has ", capacity);
  if (tensor.bytes() > 0) std::memcpy(buffer, tensor.raw_data(), tensor.bytes());
}

void view(const Tensor& tensor, caffe2_tensor* description) {
  describe(tensor, tensor.raw_data(), sized(description, "caffe2_tensor"));
}

void copy_names(const std::vector<std::string>& names, char* out, size_t capacity, size_t* needed) {
  size_t bytes = 0;
  for (const std::string& name : names) bytes += name.size() + 1;
  required(needed, "the place for the number of bytes") = bytes;
  if (out == nullptr) return;
  CAFFE2_ENFORCE(capacity >= bytes, "the names need ", bytes, " bytes; the buffer has ", capacity);
  for (const std::string& name : names) {
    out = std::copy_n(name.c_str(), name.size() + 1, out);
  }
}

}  // namespace

}  // namespace caffe2::api

using namespace caffe2;
using namespace caffe2::api;

uint32_t caffe2_abi_version(void) { return CAFFE2_ABI_VERSION; }

caffe2_code caffe2_engine_create(const caffe2_engine_options* options, caffe2_engine** engine,
                                 caffe2_error* error) {
  return create(engine, error, [&] {
    EngineOptions chosen;
    if (options != nullptr) {
      sized(options, "caffe2_engine_options");
      CAFFE2_ENFORCE(options->threads >= 0 && options->threads <= kMaxThreads, "threads is ",
                     options->threads, "; allowed: 0 (all cores) to ", kMaxThreads);
      chosen.threads = options->threads;
      if (options->isa != nullptr) chosen.isa = options->isa;
      chosen.memory_limit =
          static_cast<size_t>(std::min<uint64_t>(options->memory_limit, SIZE_MAX));
    }
    auto made = std::make_shared<Engine>(chosen);
    if (options != nullptr && options->interrupted != nullptr) {
      made->hooks().interrupted = [ask = options->interrupted, context = options->context] {
        return ask(context) != 0;
      };
    }
    return std::unique_ptr<caffe2_engine>(new caffe2_engine{std::move(made)});
  });
}

void caffe2_engine_free(caffe2_engine* engine) { delete engine; }

int32_t caffe2_engine_threads(const caffe2_engine* engine) {
  return engine != nullptr ? engine->engine->pool().threads() : 0;
}

const char* caffe2_engine_isa(const caffe2_engine* engine) {
  return engine != nullptr ? kernels::isa_name(engine->engine->isa()) : nullptr;
}

uint64_t caffe2_engine_memory_used(const caffe2_engine* engine) {
  return engine != nullptr ? engine->engine->allocator()->used() : 0;
}

uint64_t caffe2_engine_memory_peak(const caffe2_engine* engine) {
  return engine != nullptr ? engine->engine->allocator()->peak() : 0;
}

caffe2_code caffe2_workspace_create(const caffe2_engine* engine, caffe2_workspace** workspace,
                                    caffe2_error* error) {
  return create(workspace, error, [&] {
    const auto& shared = object(engine, "engine").engine;
    return std::unique_ptr<caffe2_workspace>(new caffe2_workspace{Workspace(shared)});
  });
}

void caffe2_workspace_free(caffe2_workspace* workspace) { delete workspace; }

caffe2_code caffe2_workspace_reset(caffe2_workspace* workspace, caffe2_error* error) {
  return guarded(error, [&] { in(workspace).reset(); });
}

caffe2_code caffe2_workspace_set_random_seed(caffe2_workspace* workspace, uint64_t seed,
                                             caffe2_error* error) {
  return guarded(error, [&] { in(workspace).set_random_seed(seed); });
}

caffe2_code caffe2_workspace_create_blob(caffe2_workspace* workspace, const char* name,
                                         caffe2_error* error) {
  return guarded(error, [&] { in(workspace).create_blob(name_of(name)); });
}

caffe2_code caffe2_workspace_remove_blob(caffe2_workspace* workspace, const char* name,
                                         caffe2_error* error) {
  return guarded(error, [&] {
    if (in(workspace).remove_blob(name_of(name))) return;
    in(workspace).get_blob(name);  // raises with near names
  });
}

int caffe2_workspace_has_blob(const caffe2_workspace* workspace, const char* name) {
  bool found = false;
  guarded(nullptr, [&] { found = in(workspace).find_blob(name_of(name)) != nullptr; });
  return found;
}

caffe2_code caffe2_workspace_blob_names(const caffe2_workspace* workspace, char* names,
                                        size_t capacity, size_t* bytes, caffe2_error* error) {
  return guarded(error, [&] { copy_names(in(workspace).blob_names(), names, capacity, bytes); });
}

caffe2_code caffe2_workspace_net_names(const caffe2_workspace* workspace, char* names,
                                       size_t capacity, size_t* bytes, caffe2_error* error) {
  return guarded(error, [&] { copy_names(in(workspace).net_names(), names, capacity, bytes); });
}

caffe2_code caffe2_workspace_feed(caffe2_workspace* workspace, const char* name,
                                  const caffe2_tensor* tensor, caffe2_error* error) {
  return guarded(error, [&] { feed(in(workspace), name_of(name), foreign(tensor)); });
}

caffe2_code caffe2_workspace_fetch(const caffe2_workspace* workspace, const char* name,
                                   void* buffer, size_t capacity, caffe2_tensor* tensor,
                                   caffe2_error* error) {
  return guarded(error, [&] {
    fetch(plain_tensor(in(workspace), name_of(name)), name, buffer, capacity, tensor);
  });
}

caffe2_code caffe2_workspace_view(const caffe2_workspace* workspace, const char* name,
                                  caffe2_tensor* tensor, caffe2_error* error) {
  return guarded(error, [&] { view(plain_tensor(in(workspace), name_of(name)), tensor); });
}

caffe2_code caffe2_workspace_create_net(caffe2_workspace* workspace, const void* net_def,
                                        size_t bytes, int overwrite, caffe2_error* error) {
  return guarded(error, [&] {
    in(workspace).create_net(parse<NetDef>(bytes_of(net_def, bytes, "net_def")), {},
                             overwrite != 0);
  });
}

caffe2_code caffe2_workspace_run_net(caffe2_workspace* workspace, const char* name,
                                     caffe2_error* error) {
  return guarded(error, [&] { in(workspace).get_net(name_of(name))->run(); });
}

caffe2_code caffe2_workspace_delete_net(caffe2_workspace* workspace, const char* name,
                                        caffe2_error* error) {
  return guarded(error, [&] {
    if (in(workspace).remove_net(name_of(name))) return;
    in(workspace).get_net(name);  // raises with near names
  });
}

caffe2_code caffe2_workspace_run_net_once(caffe2_workspace* workspace, const void* net_def,
                                          size_t bytes, caffe2_error* error) {
  return guarded(error, [&] {
    in(workspace).run_net_once(parse<NetDef>(bytes_of(net_def, bytes, "net_def")), {});
  });
}

caffe2_code caffe2_predictor_create(const caffe2_engine* engine, const void* init_net,
                                    size_t init_bytes, const void* predict_net,
                                    size_t predict_bytes, caffe2_predictor** predictor,
                                    caffe2_error* error) {
  return create(predictor, error, [&] {
    const auto& shared = object(engine, "engine").engine;
    const auto init = bytes_of(init_net, init_bytes, "init_net");
    const auto predict = bytes_of(predict_net, predict_bytes, "predict_net");
    return std::unique_ptr<caffe2_predictor>(
        new caffe2_predictor{Predictor(shared, init, predict)});
  });
}

caffe2_code caffe2_predictor_open(const caffe2_engine* engine, const char* path,
                                  caffe2_predictor** predictor, caffe2_error* error) {
  return create(predictor, error, [&] {
    const auto& shared = object(engine, "engine").engine;
    CAFFE2_ENFORCE(path != nullptr, "the path is NULL");
    return std::unique_ptr<caffe2_predictor>(
        new caffe2_predictor{Predictor(shared, std::string(path))});
  });
}

void caffe2_predictor_free(caffe2_predictor* predictor) { delete predictor; }

size_t caffe2_predictor_input_count(const caffe2_predictor* predictor) {
  return predictor != nullptr ? predictor->predictor.inputs().size() : 0;
}

const char* caffe2_predictor_input_name(const caffe2_predictor* predictor, size_t index) {
  if (index >= caffe2_predictor_input_count(predictor)) return nullptr;
  return predictor->predictor.inputs()[index].name.c_str();
}

int caffe2_predictor_input_needed(const caffe2_predictor* predictor, size_t index) {
  return index < caffe2_predictor_input_count(predictor) &&
         predictor->predictor.inputs()[index].needed;
}

size_t caffe2_predictor_output_count(const caffe2_predictor* predictor) {
  return predictor != nullptr ? predictor->predictor.outputs().size() : 0;
}

const char* caffe2_predictor_output_name(const caffe2_predictor* predictor, size_t index) {
  if (index >= caffe2_predictor_output_count(predictor)) return nullptr;
  return predictor->predictor.outputs()[index].c_str();
}

caffe2_code caffe2_predictor_feed(caffe2_predictor* predictor, const char* input,
                                  const caffe2_tensor* tensor, caffe2_error* error) {
  return guarded(error, [&] { in(predictor).feed(name_of(input), foreign(tensor)); });
}

caffe2_code caffe2_predictor_run(caffe2_predictor* predictor, caffe2_error* error) {
  return guarded(error, [&] { in(predictor).run(); });
}

caffe2_code caffe2_predictor_fetch(const caffe2_predictor* predictor, const char* output,
                                   void* buffer, size_t capacity, caffe2_tensor* tensor,
                                   caffe2_error* error) {
  return guarded(error, [&] {
    fetch(in(predictor).output(name_of(output)), output, buffer, capacity, tensor);
  });
}

caffe2_code caffe2_predictor_view(const caffe2_predictor* predictor, const char* output,
                                  caffe2_tensor* tensor, caffe2_error* error) {
  return guarded(error, [&] { view(in(predictor).output(name_of(output)), tensor); });
}
