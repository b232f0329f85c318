// For the tests of the C API: checks, and nets put together byte by byte.
#ifndef CAFFE2_TESTS_API_TESTING_H_
#define CAFFE2_TESTS_API_TESTING_H_

#include <stdio.h>
#include <string.h>

#include "api/caffe2.h"

static int failed_checks = 0;
static caffe2_error error = CAFFE2_ERROR_INIT;

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      failed_checks++;                                                          \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                           \
  } while (0)

// The call returns `wanted`, and `error` says the same with `part` in its text.
#define CHECK_GIVES(wanted, part, call)                                                      \
  do {                                                                                       \
    const caffe2_code got = (call);                                                          \
    if (got != (wanted) || error.code != got || strstr(error.text, (part)) == NULL) {        \
      failed_checks++;                                                                       \
      fprintf(stderr, "%s:%d: %s\n  gave %d, %d: %s\n", __FILE__, __LINE__, #call, (int)got, \
              (int)error.code, error.text);                                                  \
    }                                                                                        \
  } while (0)

#define CHECK_OK(call)                \
  do {                                \
    CHECK_GIVES(CAFFE2_OK, "", call); \
    CHECK(error.text[0] == '\0');     \
  } while (0)

static inline caffe2_tensor floats(const float* values, int64_t rows, int64_t columns) {
  caffe2_tensor tensor = CAFFE2_TENSOR_INIT;
  tensor.data_type = CAFFE2_FLOAT;
  tensor.rank = 2;
  tensor.dims[0] = rows;
  tensor.dims[1] = columns;
  tensor.data = values;
  tensor.bytes = (size_t)rows * (size_t)columns * sizeof(float);
  return tensor;
}

static inline void feed_floats(caffe2_workspace* workspace, const char* name, const float* values,
                               int64_t rows, int64_t columns) {
  const caffe2_tensor tensor = floats(values, rows, columns);
  CHECK_OK(caffe2_workspace_feed(workspace, name, &tensor, &error));
}

static inline caffe2_engine* new_engine(int32_t threads, uint64_t memory_limit) {
  const caffe2_engine_options options = {sizeof options, threads, NULL, memory_limit, NULL, NULL};
  caffe2_engine* engine = NULL;
  CHECK_OK(caffe2_engine_create(&options, &engine, &error));
  return engine;
}

static inline caffe2_workspace* new_workspace(const caffe2_engine* engine) {
  caffe2_workspace* workspace = NULL;
  CHECK_OK(caffe2_workspace_create(engine, &workspace, &error));
  return workspace;
}

// A message on its way to the wire format.
typedef struct Message {
  size_t size;
  unsigned char data[8192];
} Message;

static inline void put_varint(Message* m, uint64_t value) {
  for (; value >= 128; value >>= 7) m->data[m->size++] = (unsigned char)(value | 128);
  m->data[m->size++] = (unsigned char)value;
}

static inline void put_bytes(Message* m, int field, const void* data, size_t size) {
  put_varint(m, (uint64_t)field << 3 | 2);
  put_varint(m, size);
  memcpy(m->data + m->size, data, size);
  m->size += size;
}

static inline void put_text(Message* m, int field, const char* text) {
  put_bytes(m, field, text, strlen(text));
}

// One entry of a repeated field for each word.
static inline void put_words(Message* m, int field, const char* words) {
  while (*words != '\0') {
    const size_t size = strcspn(words, " ");
    put_bytes(m, field, words, size);
    words += size + (words[size] == ' ');
  }
}

// OperatorDef: input 1, output 2, type 4, arg 5. Argument: name 1, i 3, s 4, ints 6, strings 7.
static inline Message make_operator(const char* type, const char* inputs, const char* outputs) {
  Message op = {0, {0}};
  put_words(&op, 1, inputs);
  put_words(&op, 2, outputs);
  put_text(&op, 4, type);
  return op;
}

static inline void add_shape(Message* op, int64_t dim) {
  Message arg = {0, {0}};
  put_text(&arg, 1, "shape");
  put_varint(&arg, 6 << 3);
  put_varint(&arg, (uint64_t)dim);
  put_bytes(op, 5, arg.data, arg.size);
}

// NetDef: name 1, op 2, external_input 7, external_output 8.
static inline Message make_net(const char* name, const char* inputs, const char* outputs) {
  Message net = {0, {0}};
  put_text(&net, 1, name);
  put_words(&net, 7, inputs);
  put_words(&net, 8, outputs);
  return net;
}

static inline void add_message(Message* net, Message op) { put_bytes(net, 2, op.data, op.size); }

static inline void add_operator(Message* net, const char* type, const char* inputs,
                                const char* outputs) {
  add_message(net, make_operator(type, inputs, outputs));
}

// y = x w^T + b, as Python's protobuf writes it:
//   text_format.Parse(TEXT, caffe2_pb2.NetDef()).SerializeToString()
//
//   name: "init"
//   op { type: "GivenTensorFill" output: "w"
//        arg { name: "shape" ints: 3 ints: 2 }
//        arg { name: "values" floats: 1 floats: 2 floats: 3 floats: 4 floats: 5 floats: 6 } }
//   op { type: "GivenTensorFill" output: "b"
//        arg { name: "shape" ints: 3 }
//        arg { name: "values" floats: 0.5 floats: -0.5 floats: 0 } }
static const unsigned char kInitNet[] = {
    0x0a, 0x04, 0x69, 0x6e, 0x69, 0x74, 0x12, 0x49, 0x12, 0x01, 0x77, 0x22, 0x0f, 0x47, 0x69, 0x76,
    0x65, 0x6e, 0x54, 0x65, 0x6e, 0x73, 0x6f, 0x72, 0x46, 0x69, 0x6c, 0x6c, 0x2a, 0x0b, 0x0a, 0x05,
    0x73, 0x68, 0x61, 0x70, 0x65, 0x30, 0x03, 0x30, 0x02, 0x2a, 0x26, 0x0a, 0x06, 0x76, 0x61, 0x6c,
    0x75, 0x65, 0x73, 0x2d, 0x00, 0x00, 0x80, 0x3f, 0x2d, 0x00, 0x00, 0x00, 0x40, 0x2d, 0x00, 0x00,
    0x40, 0x40, 0x2d, 0x00, 0x00, 0x80, 0x40, 0x2d, 0x00, 0x00, 0xa0, 0x40, 0x2d, 0x00, 0x00, 0xc0,
    0x40, 0x12, 0x38, 0x12, 0x01, 0x62, 0x22, 0x0f, 0x47, 0x69, 0x76, 0x65, 0x6e, 0x54, 0x65, 0x6e,
    0x73, 0x6f, 0x72, 0x46, 0x69, 0x6c, 0x6c, 0x2a, 0x09, 0x0a, 0x05, 0x73, 0x68, 0x61, 0x70, 0x65,
    0x30, 0x03, 0x2a, 0x17, 0x0a, 0x06, 0x76, 0x61, 0x6c, 0x75, 0x65, 0x73, 0x2d, 0x00, 0x00, 0x00,
    0x3f, 0x2d, 0x00, 0x00, 0x00, 0xbf, 0x2d, 0x00, 0x00, 0x00, 0x00,
};
//   name: "affine"
//   op { type: "FC" input: "x" input: "w" input: "b" output: "y" }
//   external_input: "x" external_input: "w" external_input: "b" external_output: "y"
static const unsigned char kPredictNet[] = {
    0x0a, 0x06, 0x61, 0x66, 0x66, 0x69, 0x6e, 0x65, 0x12, 0x10, 0x0a, 0x01, 0x78,
    0x0a, 0x01, 0x77, 0x0a, 0x01, 0x62, 0x12, 0x01, 0x79, 0x22, 0x02, 0x46, 0x43,
    0x3a, 0x01, 0x78, 0x3a, 0x01, 0x77, 0x3a, 0x01, 0x62, 0x42, 0x01, 0x79,
};

#endif  // CAFFE2_TESTS_API_TESTING_H_
