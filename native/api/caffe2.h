// The C API of the engine: nets from bytes, feed, run, fetch. C99 or later, and C++.
//
// Objects   An engine has the memory, the threads and the kernels; workspaces and predictors are
//           made with one and may outlive it. Who calls ..._create owns the object and gives it
//           back with ..._free, which takes NULL too. When a creation fails the handle is NULL, and
//           functions that are given it say so. Nothing else that comes from here is to be freed.
// Errors    A function that returns a caffe2_code can fail. It then says why in `error`, where that
//           is not NULL, and leaves its other results alone. Nothing is thrown or printed, and the
//           process is never ended. Who feeds, creates or removes in vain has changed nothing; a
//           run that fails leaves every blob as it was or wholly written.
// Tensors   Row-major, without gaps, in the byte order of the machine.
// Text      Ends with a NUL. Names are compared byte by byte; error texts are valid UTF-8.
// Threads   An engine may be used from many threads at once, a workspace or a predictor from one at
//           a time. There is no state outside of these objects.
#ifndef CAFFE2_API_CAFFE2_H_
#define CAFFE2_API_CAFFE2_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__EMSCRIPTEN__)
#define CAFFE2_API __attribute__((visibility("default"), used))  // also for JavaScript
#elif defined(__GNUC__)
#define CAFFE2_API __attribute__((visibility("default")))
#else
#define CAFFE2_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Raised by changes that compiled programs would notice. Structs grow at their end, which their
// `struct_size` tells, and functions are added without a new number.
#define CAFFE2_ABI_VERSION 1
CAFFE2_API uint32_t caffe2_abi_version(void);  // of the library, to be compared with the header's

typedef int32_t caffe2_code;
enum {
  CAFFE2_OK = 0,
  CAFFE2_INVALID_ARGUMENT = 1,     // malformed bytes, a wrong size, type or value, NULL
  CAFFE2_NOT_FOUND = 2,            // no such blob, net, operator type
  CAFFE2_OUT_OF_MEMORY = 3,        // the system's, or the limit of the engine
  CAFFE2_FAILED_PRECONDITION = 4,  // not at this moment: the blob is empty, nothing was run yet
  CAFFE2_UNSUPPORTED = 5,          // this build or this API cannot do it
  CAFFE2_INTERNAL = 6,             // a defect of the library
  CAFFE2_CANCELLED = 7             // `interrupted` of the engine's options said so
};

// An error, in memory of the caller. Texts that do not fit end with "...".
typedef struct caffe2_error {
  size_t struct_size;       // sizeof(caffe2_error), set by the caller; calls refuse smaller ones
  caffe2_code code;         // what the function returned
  int32_t operator_index;   // place of the operator in its net; -1: none, or the net's only one
  char operator_type[128];  // "": the error is not one of an operator
  char net[256];            // "": no net, or one without a name
  char text[2048];          // the whole error, operator and net included
} caffe2_error;
#define CAFFE2_ERROR_INIT {sizeof(caffe2_error), CAFFE2_OK, -1, "", "", ""}

// Element types, with the numbers of TensorProto.DataType.
enum {
  CAFFE2_FLOAT = 1,
  CAFFE2_INT32 = 2,
  CAFFE2_BYTE = 3,
  CAFFE2_STRING = 4,  // exists in blobs, but is neither fed nor fetched here
  CAFFE2_BOOL = 5,    // one byte, 0 or 1
  CAFFE2_UINT8 = 6,
  CAFFE2_INT8 = 7,
  CAFFE2_UINT16 = 8,
  CAFFE2_INT16 = 9,
  CAFFE2_INT64 = 10,
  CAFFE2_FLOAT16 = 12,
  CAFFE2_DOUBLE = 13
};

#define CAFFE2_MAX_RANK 16

// A tensor that lies in memory of the caller (feed) or of a blob (view).
typedef struct caffe2_tensor {
  size_t struct_size;  // sizeof(caffe2_tensor), set by the caller
  int32_t data_type;
  int32_t rank;  // number of dimensions; 0: one value
  int64_t dims[CAFFE2_MAX_RANK];
  const void* data;
  size_t bytes;  // of all values together
} caffe2_tensor;
#define CAFFE2_TENSOR_INIT {sizeof(caffe2_tensor), 0, 0, {0}, NULL, 0}

typedef struct caffe2_engine caffe2_engine;
typedef struct caffe2_workspace caffe2_workspace;
typedef struct caffe2_predictor caffe2_predictor;

// ---- engine

typedef struct caffe2_engine_options {
  size_t struct_size;  // sizeof(caffe2_engine_options), set by the caller
  int32_t threads;     // 1 to 1024, the calling one included; 0: all cores
  const char* isa;     // "sse4", "avx2", "avx512", "neon", "wasm", "generic"; NULL: the best
  // Bytes of all tensors and scratch memory together; 0: three quarters of the memory of the
  // machine or container; UINT64_MAX: no limit. What would pass it is an error,
  // CAFFE2_OUT_OF_MEMORY.
  uint64_t memory_limit;
  // Asked every few hundredths of a second, between operators, by the thread that runs a net, with
  // `context`. An answer other than 0 ends the run with CAFFE2_CANCELLED. NULL: nobody is asked.
  int (*interrupted)(void* context);
  void* context;
} caffe2_engine_options;
#define CAFFE2_ENGINE_OPTIONS_INIT {sizeof(caffe2_engine_options), 0, NULL, 0, NULL, NULL}

// options: NULL stands for CAFFE2_ENGINE_OPTIONS_INIT.
CAFFE2_API caffe2_code caffe2_engine_create(const caffe2_engine_options* options,
                                            caffe2_engine** engine, caffe2_error* error);
CAFFE2_API void caffe2_engine_free(caffe2_engine* engine);

// What the engine came to; 0 and NULL for no engine.
CAFFE2_API int32_t caffe2_engine_threads(const caffe2_engine* engine);
CAFFE2_API const char* caffe2_engine_isa(const caffe2_engine* engine);
CAFFE2_API uint64_t caffe2_engine_memory_used(const caffe2_engine* engine);  // bytes
CAFFE2_API uint64_t caffe2_engine_memory_peak(const caffe2_engine* engine);

// ---- workspace: named blobs, and the nets that run on them

CAFFE2_API caffe2_code caffe2_workspace_create(const caffe2_engine* engine,
                                               caffe2_workspace** workspace, caffe2_error* error);
CAFFE2_API void caffe2_workspace_free(caffe2_workspace* workspace);

// Forgets all nets and blobs.
CAFFE2_API caffe2_code caffe2_workspace_reset(caffe2_workspace* workspace, caffe2_error* error);

// Base of the random numbers of nets that are created from now on and name no seed. Equal seeds
// give equal numbers.
CAFFE2_API caffe2_code caffe2_workspace_set_random_seed(caffe2_workspace* workspace, uint64_t seed,
                                                        caffe2_error* error);

// An empty blob: one that a net can be created on before it is fed. A blob that exists stays.
CAFFE2_API caffe2_code caffe2_workspace_create_blob(caffe2_workspace* workspace, const char* name,
                                                    caffe2_error* error);
CAFFE2_API caffe2_code caffe2_workspace_remove_blob(caffe2_workspace* workspace, const char* name,
                                                    caffe2_error* error);
CAFFE2_API int caffe2_workspace_has_blob(const caffe2_workspace* workspace, const char* name);

// Writes the names, each with its NUL, to `names` of `capacity` bytes, and the number of bytes that
// all names need to `bytes`, also where `names` is NULL (only asks) or too small (an error).
CAFFE2_API caffe2_code caffe2_workspace_blob_names(const caffe2_workspace* workspace, char* names,
                                                   size_t capacity, size_t* bytes,
                                                   caffe2_error* error);
CAFFE2_API caffe2_code caffe2_workspace_net_names(const caffe2_workspace* workspace, char* names,
                                                  size_t capacity, size_t* bytes,
                                                  caffe2_error* error);

// Copies a tensor into a blob, which is made where there is none.
CAFFE2_API caffe2_code caffe2_workspace_feed(caffe2_workspace* workspace, const char* name,
                                             const caffe2_tensor* tensor, caffe2_error* error);

// Copies the values of a blob to `buffer` of `capacity` bytes and describes them in `tensor`, where
// that is not NULL. The description comes also where `buffer` is NULL (only asks) or too small (an
// error).
CAFFE2_API caffe2_code caffe2_workspace_fetch(const caffe2_workspace* workspace, const char* name,
                                              void* buffer, size_t capacity, caffe2_tensor* tensor,
                                              caffe2_error* error);

// Gives the blob's own memory, to be read only. It is valid until the workspace is fed, runs a net,
// loses a blob, is reset or freed.
CAFFE2_API caffe2_code caffe2_workspace_view(const caffe2_workspace* workspace, const char* name,
                                             caffe2_tensor* tensor, caffe2_error* error);

// net_def: a serialized NetDef of `bytes` bytes, needed during the call only. The net goes by its
// NetDef.name; a present net of that name is replaced if `overwrite` is not 0, else it is an error.
CAFFE2_API caffe2_code caffe2_workspace_create_net(caffe2_workspace* workspace, const void* net_def,
                                                   size_t bytes, int overwrite,
                                                   caffe2_error* error);
CAFFE2_API caffe2_code caffe2_workspace_run_net(caffe2_workspace* workspace, const char* name,
                                                caffe2_error* error);
CAFFE2_API caffe2_code caffe2_workspace_delete_net(caffe2_workspace* workspace, const char* name,
                                                   caffe2_error* error);
// Creates, runs and forgets a net, which needs no name.
CAFFE2_API caffe2_code caffe2_workspace_run_net_once(caffe2_workspace* workspace,
                                                     const void* net_def, size_t bytes,
                                                     caffe2_error* error);

// ---- predictor: a net with its parameters, ready to answer

// init_net fills the parameters and is run now; predict_net computes its external_output from its
// external_input. Both are serialized NetDefs, needed during the call only.
CAFFE2_API caffe2_code caffe2_predictor_create(const caffe2_engine* engine, const void* init_net,
                                               size_t init_bytes, const void* predict_net,
                                               size_t predict_bytes, caffe2_predictor** predictor,
                                               caffe2_error* error);
// Both nets in one file, a serialized ModelDef (`caffe2 optimize` writes them). Weights are used
// where they lie in the file, which may be replaced meanwhile but not written over.
CAFFE2_API caffe2_code caffe2_predictor_open(const caffe2_engine* engine, const char* path,
                                             caffe2_predictor** predictor, caffe2_error* error);
CAFFE2_API void caffe2_predictor_free(caffe2_predictor* predictor);

// The inputs are all of external_input. An input that init_net does not fill is needed: it has to
// be fed anew for each run, since a run may overwrite it. Others (parameters, inputs with a value
// that stands for them) keep what they have until they are fed.
//
// Names are NULL out of range; they live as long as the predictor. No predictor has no inputs.
CAFFE2_API size_t caffe2_predictor_input_count(const caffe2_predictor* predictor);
CAFFE2_API const char* caffe2_predictor_input_name(const caffe2_predictor* predictor, size_t index);
CAFFE2_API int caffe2_predictor_input_needed(const caffe2_predictor* predictor, size_t index);
CAFFE2_API size_t caffe2_predictor_output_count(const caffe2_predictor* predictor);
CAFFE2_API const char* caffe2_predictor_output_name(const caffe2_predictor* predictor,
                                                    size_t index);

// Copies a tensor into an input.
CAFFE2_API caffe2_code caffe2_predictor_feed(caffe2_predictor* predictor, const char* input,
                                             const caffe2_tensor* tensor, caffe2_error* error);
CAFFE2_API caffe2_code caffe2_predictor_run(caffe2_predictor* predictor, caffe2_error* error);

// An output of the last run, as caffe2_workspace_fetch and caffe2_workspace_view give it; an error
// where there was no run, or it failed. A view is valid until the predictor is fed, run or freed.
CAFFE2_API caffe2_code caffe2_predictor_fetch(const caffe2_predictor* predictor, const char* output,
                                              void* buffer, size_t capacity, caffe2_tensor* tensor,
                                              caffe2_error* error);
CAFFE2_API caffe2_code caffe2_predictor_view(const caffe2_predictor* predictor, const char* output,
                                             caffe2_tensor* tensor, caffe2_error* error);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // CAFFE2_API_CAFFE2_H_
