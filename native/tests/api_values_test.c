// The C API from C: values in and out, and everything that a caller can get wrong.
#include "api_testing.h"

static caffe2_engine* engine = NULL;

static const float kX[] = {1, -1, 2, 0.5F};

static void test_every_type_is_fed_and_fetched(void) {
  static const struct {
    int32_t type;
    size_t size;
  } kTypes[] = {{CAFFE2_FLOAT, 4}, {CAFFE2_INT32, 4},   {CAFFE2_BYTE, 1},   {CAFFE2_BOOL, 1},
                {CAFFE2_UINT8, 1}, {CAFFE2_INT8, 1},    {CAFFE2_UINT16, 2}, {CAFFE2_INT16, 2},
                {CAFFE2_INT64, 8}, {CAFFE2_FLOAT16, 2}, {CAFFE2_DOUBLE, 8}};
  caffe2_workspace* const w = new_workspace(engine);
  unsigned char values[48], back[48];
  for (size_t i = 0; i < sizeof values; i++) values[i] = i % 3 == 0;
  for (size_t i = 0; i < sizeof kTypes / sizeof kTypes[0]; i++) {
    const size_t bytes = 6 * kTypes[i].size;
    const caffe2_tensor in = {sizeof in, kTypes[i].type, 3, {3, 1, 2}, values, bytes};
    CHECK_OK(caffe2_workspace_feed(w, "x", &in, &error));
    caffe2_tensor out = CAFFE2_TENSOR_INIT;
    memset(back, 255, sizeof back);
    CHECK_OK(caffe2_workspace_fetch(w, "x", back, bytes, &out, &error));
    CHECK(out.data_type == in.data_type && out.rank == 3 && out.bytes == bytes);
    CHECK(memcmp(out.dims, in.dims, sizeof in.dims) == 0 && out.data == back);
    CHECK(memcmp(back, values, bytes) == 0 && (bytes == 48 || back[bytes] == 255));
    out.data_type = 0;
    CHECK_OK(caffe2_workspace_fetch(w, "x", NULL, 0, &out, &error));
    CHECK(out.data_type == in.data_type && out.bytes == bytes && out.data == NULL);
    out.bytes = 0;
    CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "the buffer has 5",
                caffe2_workspace_fetch(w, "x", back, 5, &out, &error));
    CHECK(out.bytes == bytes);
  }
  // One value, and none.
  const caffe2_tensor scalar = {sizeof scalar, CAFFE2_INT32, 0, {0}, values, 4};
  CHECK_OK(caffe2_workspace_feed(w, "x", &scalar, &error));
  caffe2_tensor out = CAFFE2_TENSOR_INIT;
  CHECK_OK(caffe2_workspace_view(w, "x", &out, &error));
  CHECK(out.rank == 0 && out.bytes == 4 && memcmp(out.data, values, 4) == 0);
  const caffe2_tensor none = {sizeof none, CAFFE2_INT32, 2, {0, 5}, NULL, 0};
  CHECK_OK(caffe2_workspace_feed(w, "x", &none, &error));
  CHECK_OK(caffe2_workspace_fetch(w, "x", back, 0, &out, &error));
  CHECK(out.rank == 2 && out.dims[1] == 5 && out.bytes == 0);
  // A blob can be fed from its own view.
  feed_floats(w, "x", kX, 2, 2);
  CHECK_OK(caffe2_workspace_view(w, "x", &out, &error));
  const caffe2_tensor tail = {sizeof tail, CAFFE2_FLOAT, 1, {3}, (const float*)out.data + 1, 12};
  CHECK_OK(caffe2_workspace_feed(w, "x", &tail, &error));
  CHECK_OK(caffe2_workspace_view(w, "x", &out, &error));
  CHECK(out.bytes == 12 && memcmp(out.data, kX + 1, 12) == 0);
  caffe2_workspace_free(w);
}

static void refuse_feed(caffe2_workspace* w, caffe2_code code, const char* text, caffe2_tensor x) {
  caffe2_tensor present = CAFFE2_TENSOR_INIT;
  CHECK_GIVES(code, text, caffe2_workspace_feed(w, "x", &x, &error));
  CHECK_GIVES(code, text, caffe2_workspace_feed(w, "new", &x, &error));
  CHECK(caffe2_workspace_has_blob(w, "new") == 0);
  CHECK_OK(caffe2_workspace_view(w, "x", &present, &error));
  CHECK(present.rank == 2 && memcmp(present.data, kX, sizeof kX) == 0);
}

static void test_tensors_that_contradict_themselves(void) {
  const caffe2_code invalid = CAFFE2_INVALID_ARGUMENT;
  caffe2_workspace* const w = new_workspace(engine);
  feed_floats(w, "x", kX, 2, 2);
  caffe2_tensor x = floats(kX, 2, 2);
  x.bytes = 12;
  refuse_feed(w, invalid, "was fed 12 bytes; shape (2, 2) of float needs 16", x);
  x = floats(kX, 2, 2);
  x.data = NULL;
  refuse_feed(w, invalid, "data that is NULL", x);
  x = floats(kX, 2, -2);
  refuse_feed(w, invalid, "dimension of -2 is negative", x);
  // Addresses of 32 bits are too few for the dimension alone.
  const int narrow = sizeof(size_t) == 4;
  const caffe2_code code = narrow ? CAFFE2_OUT_OF_MEMORY : invalid;
  const char* text = narrow ? "is too large" : "overflows";
  x = floats(kX, INT64_MAX, 3);
  refuse_feed(w, code, text, x);
  x = floats(kX, INT64_MAX, 1);
  refuse_feed(w, code, text, x);
  x = floats(kX, 2, 2);
  x.rank = 17;
  refuse_feed(w, invalid, "rank is 17; allowed: 0 to 16", x);
  x.rank = -1;
  refuse_feed(w, invalid, "rank is -1", x);
  x = floats(kX, 2, 2);
  x.struct_size = 0;
  refuse_feed(w, invalid, "caffe2_tensor.struct_size is 0", x);
  x = floats(kX, 2, 2);
  static const int32_t kNoTypes[] = {0, 11, 14, 99, -1, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof kNoTypes / sizeof kNoTypes[0]; i++) {
    x.data_type = kNoTypes[i];
    refuse_feed(w, invalid, "is no TensorProto.DataType", x);
  }
  x.data_type = CAFFE2_STRING;
  refuse_feed(w, CAFFE2_UNSUPPORTED, "cannot be fed a tensor of strings", x);
  const unsigned char bools[] = {1, 0, 2, 1};
  x = floats((const float*)(const void*)bools, 2, 2);
  x.data_type = CAFFE2_BOOL;
  x.bytes = 4;
  refuse_feed(w, invalid, "a bool of 2 at position 2", x);

  caffe2_tensor out = {0, 0, 0, {0}, NULL, 0};
  CHECK_GIVES(invalid, "struct_size is 0", caffe2_workspace_view(w, "x", &out, &error));
  CHECK_GIVES(invalid, "struct_size is 0", caffe2_workspace_fetch(w, "x", NULL, 0, &out, &error));
  CHECK_GIVES(invalid, "NULL", caffe2_workspace_view(w, "x", NULL, &error));
  CHECK_GIVES(invalid, "NULL", caffe2_workspace_feed(w, "x", NULL, &error));

  out.struct_size = sizeof out;
  CHECK_GIVES(CAFFE2_NOT_FOUND, "no blob 'z'", caffe2_workspace_view(w, "z", &out, &error));
  CHECK_OK(caffe2_workspace_create_blob(w, "empty", &error));
  CHECK_GIVES(CAFFE2_FAILED_PRECONDITION, "'empty' is empty",
              caffe2_workspace_fetch(w, "empty", NULL, 0, &out, &error));
  Message net = make_net("", "", "");
  Message strings = make_operator("GivenTensorStringFill", "", "s");
  Message values = {0, {0}};
  put_text(&values, 1, "values");
  put_text(&values, 7, "text");
  put_bytes(&strings, 5, values.data, values.size);
  add_shape(&strings, 1);
  add_message(&net, strings);
  CHECK_OK(caffe2_workspace_run_net_once(w, net.data, net.size, &error));
  CHECK_GIVES(CAFFE2_UNSUPPORTED, "'s' holds a tensor of strings",
              caffe2_workspace_view(w, "s", &out, &error));
  Message queue = make_net("", "", "");
  add_operator(&queue, "CreateBlobsQueue", "", "q");
  CHECK_OK(caffe2_workspace_run_net_once(w, queue.data, queue.size, &error));
  CHECK_GIVES(CAFFE2_UNSUPPORTED, "'q' holds ", caffe2_workspace_view(w, "q", &out, &error));
  // Strings give way to numbers.
  feed_floats(w, "s", kX, 2, 2);
  CHECK_OK(caffe2_workspace_view(w, "s", &out, &error));
  caffe2_workspace_free(w);
}

// What `name`, as the name of a net whose only operator fails, becomes in an error.
static const char* net_in_error(caffe2_workspace* w, const char* name, size_t size) {
  Message net = {0, {0}};
  put_bytes(&net, 1, name, size);
  add_operator(&net, "Relu", "empty", "y");
  CHECK_GIVES(CAFFE2_FAILED_PRECONDITION, "is empty",
              caffe2_workspace_run_net_once(w, net.data, net.size, &error));
  return error.net;
}

#define REPLACED "\xEF\xBF\xBD"

static void test_error_texts_are_utf8(void) {
  caffe2_workspace* const w = new_workspace(engine);
  CHECK_OK(caffe2_workspace_create_blob(w, "empty", &error));
  static const struct {
    const char *name, *shown;
  } kNames[] = {
      {"plain", "plain"},
      {"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
      {"\x7F \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF",
       "\x7F \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"},
      {"a\xFF", "a" REPLACED},
      {"\x80z", REPLACED "z"},
      {"\xC1\xBF", REPLACED REPLACED},                            // longer than needed
      {"\xE0\x9F\xBF", REPLACED REPLACED REPLACED},               // longer than needed
      {"\xED\xA0\x80", REPLACED REPLACED REPLACED},               // half of a pair
      {"\xF0\x8F\xBF\xBF", REPLACED REPLACED REPLACED REPLACED},  // longer than needed
      {"\xF4\x90\x80\x80", REPLACED REPLACED REPLACED REPLACED},  // above U+10FFFF
      {"\xF5\x80", REPLACED REPLACED},
      {"\xE2\x82", REPLACED REPLACED},  // an end too early
      {"\xE2\x82(", REPLACED REPLACED "("},
  };
  for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; i++) {
    CHECK(strcmp(net_in_error(w, kNames[i].name, strlen(kNames[i].name)), kNames[i].shown) == 0);
  }
  CHECK(strcmp(net_in_error(w, "a\0b", 3), "a" REPLACED "b") == 0);

  // Long ones are cut between characters; 255 bytes fit. The reason is still told.
  char name[4000], shown[300];
  memset(name, 'n', sizeof name);
  memset(shown, 'n', sizeof shown);
  shown[255] = '\0';
  CHECK(strcmp(net_in_error(w, name, 255), shown) == 0);
  memcpy(shown + 252, "...", 4);
  CHECK(strcmp(net_in_error(w, name, 256), shown) == 0);
  CHECK(strcmp(net_in_error(w, name, sizeof name), shown) == 0);
  for (size_t i = 1; i + 4 <= sizeof name; i += 4) memcpy(name + i, "\xF0\x9F\x98\x80", 4);
  memcpy(shown, name, 249);
  memcpy(shown + 249, "...", 4);
  CHECK(strcmp(net_in_error(w, name, 401), shown) == 0);

  char long_name[4001];
  memset(long_name, 'b', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = '\0';
  CHECK_GIVES(CAFFE2_NOT_FOUND, "there is no blob 'bbb",
              caffe2_workspace_remove_blob(w, long_name, &error));
  CHECK(strstr(error.text, "bbb...' (4000 bytes) in this workspace") != NULL);
  // Ten names of 200 bytes are more than an error takes.
  Message net = make_net("n", "", ""), sum = {0, {0}};
  for (int i = 0; i < 12; i++) {
    long_name[0] = (char)('a' + i);
    put_bytes(&sum, 1, long_name, 200);
  }
  put_text(&sum, 2, "y");
  put_text(&sum, 4, "Sum");
  add_message(&net, sum);
  CHECK_GIVES(CAFFE2_NOT_FOUND, "reads 12 blob(s)",
              caffe2_workspace_run_net_once(w, net.data, net.size, &error));
  CHECK(strlen(error.text) == sizeof error.text - 1);
  CHECK(strcmp(error.text + sizeof error.text - 4, "...") == 0);
  caffe2_workspace_free(w);
}

static void test_memory_has_a_limit(void) {
  static const float kMany[1024] = {0};
  caffe2_engine* const small = new_engine(1, 4096);
  caffe2_workspace* const w = new_workspace(small);
  const caffe2_tensor half = floats(kMany, 1, 512), most = floats(kMany, 1, 1008);
  const caffe2_tensor more = floats(kMany, 1, 1025);
  CHECK_GIVES(CAFFE2_OUT_OF_MEMORY, "memory limit of 4096 bytes",
              caffe2_workspace_feed(w, "x", &more, &error));
  CHECK(caffe2_workspace_has_blob(w, "x") == 0);
  CHECK_OK(caffe2_workspace_feed(w, "x", &half, &error));
  CHECK_OK(caffe2_workspace_feed(w, "x", &half, &error));
  CHECK(caffe2_engine_memory_used(small) == 2048 && caffe2_engine_memory_peak(small) == 4096);
  CHECK_GIVES(CAFFE2_OUT_OF_MEMORY, "(2048 in use)", caffe2_workspace_feed(w, "x", &most, &error));
  CHECK_OK(caffe2_workspace_reset(w, &error));
  CHECK(caffe2_engine_memory_used(small) == 0);
  CHECK_OK(caffe2_workspace_feed(w, "x", &most, &error));
  Message net = make_net("n", "", "");
  add_operator(&net, "Relu", "x", "y");
  CHECK_GIVES(CAFFE2_OUT_OF_MEMORY, "(Relu) of net 'n'",
              caffe2_workspace_run_net_once(w, net.data, net.size, &error));
  CHECK(strcmp(error.operator_type, "Relu") == 0);
  CHECK_OK(caffe2_workspace_reset(w, &error));
  CHECK_OK(caffe2_workspace_feed(w, "x", &half, &error));
  CHECK_OK(caffe2_workspace_run_net_once(w, net.data, net.size, &error));
  caffe2_engine_free(small);  // the workspace keeps what it needs
  CHECK_OK(caffe2_workspace_run_net_once(w, net.data, net.size, &error));
  caffe2_workspace_free(w);
}

static void test_engines(void) {
  caffe2_engine* other = NULL;
  CHECK_OK(caffe2_engine_create(NULL, &other, &error));
  CHECK(caffe2_engine_threads(other) >= 1 && caffe2_engine_memory_used(other) == 0);
  const char* const best = caffe2_engine_isa(other);
  caffe2_engine_free(other);
  caffe2_engine_options options = CAFFE2_ENGINE_OPTIONS_INIT;
  options.threads = 3;
  options.isa = best;
  CHECK_OK(caffe2_engine_create(&options, &other, &error));
  CHECK(caffe2_engine_threads(other) == 3 && strcmp(caffe2_engine_isa(other), best) == 0);
  caffe2_engine_free(other);

  static const int32_t kWrong[] = {-1, 1025, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof kWrong / sizeof kWrong[0]; i++) {
    options.threads = kWrong[i];
    CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "allowed: 0 (all cores) to 1024",
                caffe2_engine_create(&options, &other, &error));
    CHECK(other == NULL);
  }
  options.threads = 1;
  options.isa = "mmx";
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "unknown instruction set 'mmx'",
              caffe2_engine_create(&options, &other, &error));
  options.isa = strcmp(best, "neon") == 0 ? "avx2" : "neon";
  CHECK_GIVES(CAFFE2_UNSUPPORTED, "lacks the instruction set",
              caffe2_engine_create(&options, &other, &error));
  options.struct_size = 8;
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "caffe2_engine_options.struct_size is 8",
              caffe2_engine_create(&options, &other, &error));
}

static void test_null_is_refused_everywhere(void) {
  const caffe2_code invalid = CAFFE2_INVALID_ARGUMENT;
  const caffe2_tensor x = floats(kX, 2, 2);
  caffe2_tensor out = CAFFE2_TENSOR_INIT;
  caffe2_workspace* w = NULL;
  caffe2_predictor* p = NULL;
  size_t bytes = 0;
  CHECK_GIVES(invalid, "NULL", caffe2_engine_create(NULL, NULL, &error));
  CHECK_GIVES(invalid, "engine is NULL", caffe2_workspace_create(NULL, &w, &error));
  CHECK_GIVES(invalid, "NULL", caffe2_workspace_create(engine, NULL, &error));
  CHECK_GIVES(invalid, "engine is NULL",
              caffe2_predictor_create(NULL, kInitNet, sizeof kInitNet, kPredictNet,
                                      sizeof kPredictNet, &p, &error));
  CHECK_GIVES(invalid, "NULL",
              caffe2_predictor_create(engine, kInitNet, sizeof kInitNet, kPredictNet,
                                      sizeof kPredictNet, NULL, &error));
  // w and p are what a failed creation leaves.
  const char* const no_workspace = "workspace is NULL: was it not created?";
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_reset(w, &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_set_random_seed(w, 1, &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_create_blob(w, "x", &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_remove_blob(w, "x", &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_blob_names(w, NULL, 0, &bytes, &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_net_names(w, NULL, 0, &bytes, &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_feed(w, "x", &x, &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_fetch(w, "x", NULL, 0, NULL, &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_view(w, "x", &out, &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_create_net(w, kInitNet, 1, 0, &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_run_net(w, "n", &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_delete_net(w, "n", &error));
  CHECK_GIVES(invalid, no_workspace, caffe2_workspace_run_net_once(w, kInitNet, 1, &error));
  const char* const no_predictor = "predictor is NULL: was it not created?";
  CHECK_GIVES(invalid, no_predictor, caffe2_predictor_feed(p, "x", &x, &error));
  CHECK_GIVES(invalid, no_predictor, caffe2_predictor_run(p, &error));
  CHECK_GIVES(invalid, no_predictor, caffe2_predictor_fetch(p, "y", NULL, 0, NULL, &error));
  CHECK_GIVES(invalid, no_predictor, caffe2_predictor_view(p, "y", &out, &error));
  CHECK(caffe2_predictor_input_count(p) == 0 && caffe2_predictor_output_count(p) == 0);
  CHECK(caffe2_predictor_input_name(p, 0) == NULL && caffe2_predictor_output_name(p, 0) == NULL);
  CHECK(!caffe2_predictor_input_needed(p, 0) && !caffe2_workspace_has_blob(w, "x"));
  CHECK(caffe2_engine_threads(NULL) == 0 && caffe2_engine_isa(NULL) == NULL);
  CHECK(caffe2_engine_memory_used(NULL) == 0 && caffe2_engine_memory_peak(NULL) == 0);
  caffe2_engine_free(NULL);
  caffe2_workspace_free(NULL);
  caffe2_predictor_free(NULL);

  w = new_workspace(engine);
  CHECK_GIVES(invalid, "name is NULL", caffe2_workspace_create_blob(w, NULL, &error));
  CHECK_GIVES(invalid, "name is NULL", caffe2_workspace_remove_blob(w, NULL, &error));
  CHECK_GIVES(invalid, "name is NULL", caffe2_workspace_feed(w, NULL, &x, &error));
  CHECK_GIVES(invalid, "name is NULL", caffe2_workspace_fetch(w, NULL, NULL, 0, NULL, &error));
  CHECK_GIVES(invalid, "name is NULL", caffe2_workspace_view(w, NULL, &out, &error));
  CHECK_GIVES(invalid, "name is NULL", caffe2_workspace_run_net(w, NULL, &error));
  CHECK_GIVES(invalid, "name is NULL", caffe2_workspace_delete_net(w, NULL, &error));
  CHECK_GIVES(invalid, "net_def is NULL", caffe2_workspace_create_net(w, NULL, 0, 0, &error));
  CHECK_GIVES(invalid, "net_def is NULL", caffe2_workspace_run_net_once(w, NULL, 9, &error));
  CHECK(!caffe2_workspace_has_blob(w, NULL));

  // Errors may go unheard, but not into a struct of unknown size.
  CHECK(caffe2_workspace_run_net(w, "n", NULL) == CAFFE2_NOT_FOUND);
  CHECK(caffe2_workspace_create_blob(w, "x", NULL) == CAFFE2_OK);
  caffe2_error unset;
  memset(&unset, 0, sizeof unset);
  CHECK(caffe2_workspace_create_blob(w, "y", &unset) == CAFFE2_INVALID_ARGUMENT);
  CHECK(unset.text[0] == '\0' && !caffe2_workspace_has_blob(w, "y"));
  caffe2_workspace* never = w;
  CHECK(caffe2_workspace_create(engine, &never, &unset) == CAFFE2_INVALID_ARGUMENT);
  CHECK(never == NULL);
  caffe2_workspace_free(w);
}

int main(void) {
  CHECK(caffe2_abi_version() == CAFFE2_ABI_VERSION);
  engine = new_engine(2, 0);
  test_every_type_is_fed_and_fetched();
  test_tensors_that_contradict_themselves();
  test_error_texts_are_utf8();
  test_memory_has_a_limit();
  test_engines();
  test_null_is_refused_everywhere();
  caffe2_engine_free(engine);
  if (failed_checks > 0) fprintf(stderr, "%d checks failed\n", failed_checks);
  return failed_checks > 0;
}
