// The C API from C: predictors and nets give the right numbers, and clean errors.
#include <pthread.h>

#include "api_testing.h"

static caffe2_engine* engine = NULL;

static const float kX[] = {1, -1, 2, 0.5F};
static const float kY[] = {-0.5F, -1.5F, -1, 3.5F, 7.5F, 13};  // exact: small multiples of 1/2

static caffe2_predictor* new_predictor(void) {
  caffe2_predictor* predictor = NULL;
  CHECK_OK(caffe2_predictor_create(engine, kInitNet, sizeof kInitNet, kPredictNet,
                                   sizeof kPredictNet, &predictor, &error));
  return predictor;
}

static void test_predictor_answers(void) {
  caffe2_predictor* const p = new_predictor();
  const char* const names[] = {"x", "w", "b"};
  CHECK(caffe2_predictor_input_count(p) == 3);
  for (size_t i = 0; i < 3; i++) {
    CHECK(strcmp(caffe2_predictor_input_name(p, i), names[i]) == 0);
    CHECK(caffe2_predictor_input_needed(p, i) == (i == 0));
  }
  CHECK(caffe2_predictor_output_count(p) == 1);
  CHECK(strcmp(caffe2_predictor_output_name(p, 0), "y") == 0);
  CHECK(caffe2_predictor_input_name(p, 3) == NULL && caffe2_predictor_output_name(p, 1) == NULL);
  CHECK(!caffe2_predictor_input_needed(p, 3));

  const caffe2_tensor x = floats(kX, 2, 2);
  caffe2_tensor y = CAFFE2_TENSOR_INIT;
  CHECK_GIVES(CAFFE2_FAILED_PRECONDITION, "has not run", caffe2_predictor_view(p, "y", &y, &error));
  CHECK_GIVES(CAFFE2_FAILED_PRECONDITION, "were not fed for this run: x",
              caffe2_predictor_run(p, &error));
  CHECK_OK(caffe2_predictor_feed(p, "x", &x, &error));
  CHECK_OK(caffe2_predictor_run(p, &error));
  CHECK_OK(caffe2_predictor_view(p, "y", &y, &error));
  CHECK(y.data_type == CAFFE2_FLOAT && y.rank == 2 && y.dims[0] == 2 && y.dims[1] == 3);
  CHECK(y.bytes == sizeof kY && memcmp(y.data, kY, sizeof kY) == 0);

  // A needed input is to be fed for each run; the last answer stays until the next.
  CHECK_GIVES(CAFFE2_FAILED_PRECONDITION, "the net needs: x", caffe2_predictor_run(p, &error));
  float copy[6] = {0};
  CHECK_OK(caffe2_predictor_fetch(p, "y", copy, sizeof copy, NULL, &error));
  CHECK(memcmp(copy, kY, sizeof kY) == 0);

  // A parameter that is fed keeps its new value.
  const float zeros[3] = {0, 0, 0};
  caffe2_tensor b = floats(zeros, 3, 1);
  b.rank = 1;
  CHECK_OK(caffe2_predictor_feed(p, "b", &b, &error));
  for (int run = 0; run < 2; run++) {
    CHECK_OK(caffe2_predictor_feed(p, "x", &x, &error));
    CHECK_OK(caffe2_predictor_run(p, &error));
    CHECK_OK(caffe2_predictor_fetch(p, "y", copy, sizeof copy, NULL, &error));
    CHECK(copy[0] == -1 && copy[1] == -1 && copy[2] == -1 && copy[5] == 13);
  }
  caffe2_predictor_free(p);
}

// ModelDef: net 2. The same answers out of a file.
static void test_a_predictor_of_a_file(void) {
  const char* const path = "api_test_model.pb";
  Message model = {0, {0}};
  put_bytes(&model, 2, kInitNet, sizeof kInitNet);
  put_bytes(&model, 2, kPredictNet, sizeof kPredictNet);
  FILE* file = fopen(path, "wb");
  CHECK(file != NULL && fwrite(model.data, 1, model.size, file) == model.size);
  if (file != NULL) fclose(file);
  caffe2_predictor* p = NULL;
  CHECK_OK(caffe2_predictor_open(engine, path, &p, &error));
  remove(path);
  const caffe2_tensor x = floats(kX, 2, 2);
  float y[6] = {0};
  CHECK_OK(caffe2_predictor_feed(p, "x", &x, &error));
  CHECK_OK(caffe2_predictor_run(p, &error));
  CHECK_OK(caffe2_predictor_fetch(p, "y", y, sizeof y, NULL, &error));
  CHECK(memcmp(y, kY, sizeof y) == 0);
  caffe2_predictor_free(p);
  CHECK_GIVES(CAFFE2_NOT_FOUND, "cannot be read", caffe2_predictor_open(engine, path, &p, &error));
  CHECK(p == NULL);
  CHECK_GIVES(CAFFE2_FAILED_PRECONDITION, "no regular file",
              caffe2_predictor_open(engine, "/", &p, &error));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "NULL", caffe2_predictor_open(engine, NULL, &p, &error));
}

static void test_predictor_errors(void) {
  caffe2_predictor* const p = new_predictor();
  const caffe2_tensor x = floats(kX, 2, 2);
  caffe2_tensor y = CAFFE2_TENSOR_INIT;
  CHECK_GIVES(CAFFE2_NOT_FOUND, "no input 'y'", caffe2_predictor_feed(p, "y", &x, &error));
  CHECK_GIVES(CAFFE2_NOT_FOUND, "It gives: y", caffe2_predictor_view(p, "x", &y, &error));

  // A failed run has no answer; the predictor stays usable.
  CHECK_OK(caffe2_predictor_feed(p, "x", &x, &error));
  CHECK_OK(caffe2_predictor_run(p, &error));
  const caffe2_tensor wide = floats(kX, 1, 3);
  CHECK_OK(caffe2_predictor_feed(p, "x", &wide, &error));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "3 features", caffe2_predictor_run(p, &error));
  CHECK(strcmp(error.operator_type, "FC") == 0 && strcmp(error.net, "affine") == 0);
  CHECK_GIVES(CAFFE2_FAILED_PRECONDITION, "last run failed",
              caffe2_predictor_view(p, "y", &y, &error));
  const double two[] = {1, 2};
  caffe2_tensor doubles = floats(NULL, 1, 2);
  doubles.data_type = CAFFE2_DOUBLE;
  doubles.data = two;
  doubles.bytes = sizeof two;
  CHECK_OK(caffe2_predictor_feed(p, "x", &doubles, &error));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "has type double; allowed: float",
              caffe2_predictor_run(p, &error));
  CHECK_GIVES(CAFFE2_FAILED_PRECONDITION, "were not fed", caffe2_predictor_run(p, &error));
  CHECK_OK(caffe2_predictor_feed(p, "x", &x, &error));
  CHECK_OK(caffe2_predictor_run(p, &error));
  CHECK_OK(caffe2_predictor_view(p, "y", &y, &error));
  CHECK(y.bytes == sizeof kY && memcmp(y.data, kY, sizeof kY) == 0);
  caffe2_predictor_free(p);
}

static caffe2_code create_predictor(const void* init, size_t init_size, const void* predict,
                                    size_t predict_size) {
  caffe2_predictor* p = (caffe2_predictor*)&error;  // anything but NULL
  const caffe2_code code =
      caffe2_predictor_create(engine, init, init_size, predict, predict_size, &p, &error);
  CHECK(p == NULL);
  return code;
}

static void test_predictors_that_cannot_be_made(void) {
  const size_t init = sizeof kInitNet, predict = sizeof kPredictNet;
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "not fill before: x, w, b. Were the two nets swapped?",
              create_predictor(kPredictNet, predict, kInitNet, init));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "init_net is no serialized NetDef",
              create_predictor(kInitNet, init - 3, kPredictNet, predict));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "predict_net is no serialized NetDef",
              create_predictor(kInitNet, init, kPredictNet, predict - 1));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "init_net holds no operators",
              create_predictor(kInitNet, 0, kPredictNet, predict));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "predict_net is NULL",
              create_predictor(kInitNet, init, NULL, 0));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "names no external_output",
              create_predictor(kInitNet, init, kInitNet, init));
  Message undeclared = make_net("n", "x w b", "y");
  add_operator(&undeclared, "FC", "1 w b", "y");
  CHECK_GIVES(
      CAFFE2_INVALID_ARGUMENT,
      "nothing provides: 1; its inputs are x, init_net fills b, w. Were the two nets swapped",
      create_predictor(kInitNet, init, undeclared.data, undeclared.size));
  Message unanswered = make_net("n", "x", "y z");
  add_operator(&unanswered, "Relu", "x", "y");
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "nothing provides: z;",
              create_predictor(kInitNet, init, unanswered.data, unanswered.size));
  Message misspelt = make_net("n", "x", "y");
  add_operator(&misspelt, "Rleu", "x", "y");
  CHECK_GIVES(CAFFE2_NOT_FOUND, "'Rleu'. Did you mean Relu",
              create_predictor(kInitNet, init, misspelt.data, misspelt.size));
}

static void test_nets_of_a_workspace(void) {
  caffe2_workspace* const w = new_workspace(engine);
  Message net = make_net("n", "", "");
  add_operator(&net, "Relu", "x", "y");
  add_operator(&net, "Sum", "y x", "z");
  CHECK_GIVES(CAFFE2_NOT_FOUND, "'x' (operator 0, Relu)",
              caffe2_workspace_create_net(w, net.data, net.size, 0, &error));
  CHECK_OK(caffe2_workspace_create_blob(w, "x", &error));
  CHECK_OK(caffe2_workspace_create_net(w, net.data, net.size, 0, &error));
  CHECK_GIVES(CAFFE2_FAILED_PRECONDITION, "'x' is empty", caffe2_workspace_run_net(w, "n", &error));
  const float x[] = {-3, 4};
  feed_floats(w, "x", x, 1, 2);
  CHECK_OK(caffe2_workspace_run_net(w, "n", &error));
  caffe2_tensor z = CAFFE2_TENSOR_INIT;
  CHECK_OK(caffe2_workspace_view(w, "z", &z, &error));
  CHECK(z.bytes == sizeof x && ((const float*)z.data)[0] == -3 && ((const float*)z.data)[1] == 8);

  // One error of an operator, and all that is known of its place.
  feed_floats(w, "bad", x, 2, 1);
  Message failing = make_net("failing", "", "");
  add_operator(&failing, "Relu", "x", "y");
  add_operator(&failing, "Sum", "y bad", "z");
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "Operator 1 (Sum) of net 'failing': ",
              caffe2_workspace_run_net_once(w, failing.data, failing.size, &error));
  CHECK(error.operator_index == 1 && strcmp(error.operator_type, "Sum") == 0);
  CHECK(strcmp(error.net, "failing") == 0);
  CHECK_OK(caffe2_workspace_view(w, "z", &z, &error));
  CHECK(((const float*)z.data)[1] == 8);
  CHECK(error.operator_index == -1 && error.operator_type[0] == '\0' && error.net[0] == '\0');

  // A net that takes the name of another.
  Message other = make_net("n", "", "");
  add_operator(&other, "Relu", "x", "z");
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "exists already",
              caffe2_workspace_create_net(w, other.data, other.size, 0, &error));
  CHECK_OK(caffe2_workspace_create_net(w, other.data, other.size, 1, &error));
  CHECK_OK(caffe2_workspace_run_net(w, "n", &error));
  CHECK_OK(caffe2_workspace_view(w, "z", &z, &error));
  CHECK(((const float*)z.data)[1] == 4);
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "no name",
              caffe2_workspace_create_net(w, other.data, 0, 0, &error));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "NetDef",
              caffe2_workspace_create_net(w, other.data, other.size - 1, 1, &error));
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "NetDef",
              caffe2_workspace_run_net_once(w, other.data, other.size - 1, &error));
  CHECK_OK(caffe2_workspace_run_net(w, "n", &error));
  CHECK_OK(caffe2_workspace_delete_net(w, "n", &error));
  CHECK_GIVES(CAFFE2_NOT_FOUND, "no net 'n'", caffe2_workspace_run_net(w, "n", &error));
  CHECK_GIVES(CAFFE2_NOT_FOUND, "no net 'n'", caffe2_workspace_delete_net(w, "n", &error));
  caffe2_workspace_free(w);
}

static void test_names_of_a_workspace(void) {
  caffe2_workspace* const w = new_workspace(engine);
  size_t bytes = 1;
  char names[8];
  CHECK_OK(caffe2_workspace_blob_names(w, NULL, 0, &bytes, &error));
  CHECK(bytes == 0);
  CHECK_OK(caffe2_workspace_create_blob(w, "x", &error));
  CHECK_OK(caffe2_workspace_create_blob(w, "long", &error));
  CHECK_OK(caffe2_workspace_create_blob(w, "x", &error));
  CHECK_OK(caffe2_workspace_blob_names(w, NULL, 0, &bytes, &error));
  CHECK(bytes == 7);
  CHECK_OK(caffe2_workspace_blob_names(w, names, 7, &bytes, &error));
  CHECK(memcmp(names, "long\0x", 7) == 0);
  bytes = 0;
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "need 7 bytes; the buffer has 6",
              caffe2_workspace_blob_names(w, names, 6, &bytes, &error));
  CHECK(bytes == 7);
  CHECK_GIVES(CAFFE2_INVALID_ARGUMENT, "NULL",
              caffe2_workspace_blob_names(w, names, 7, NULL, &error));

  Message net = make_net("net", "", "");
  add_operator(&net, "Relu", "x", "y");
  CHECK_OK(caffe2_workspace_create_net(w, net.data, net.size, 0, &error));
  CHECK_OK(caffe2_workspace_net_names(w, names, sizeof names, &bytes, &error));
  CHECK(bytes == 4 && memcmp(names, "net", 4) == 0);

  CHECK(caffe2_workspace_has_blob(w, "y") == 1 && caffe2_workspace_has_blob(w, "z") == 0);
  CHECK_OK(caffe2_workspace_remove_blob(w, "y", &error));
  CHECK(caffe2_workspace_has_blob(w, "y") == 0);
  CHECK_GIVES(CAFFE2_NOT_FOUND, "no blob 'lnog' in this workspace. Did you mean long?",
              caffe2_workspace_remove_blob(w, "lnog", &error));
  CHECK_OK(caffe2_workspace_reset(w, &error));
  CHECK(caffe2_workspace_has_blob(w, "x") == 0);
  CHECK_OK(caffe2_workspace_net_names(w, NULL, 0, &bytes, &error));
  CHECK(bytes == 0);
  caffe2_workspace_free(w);
}

// Random numbers in `values`, from a workspace with this seed on an engine with `threads` threads.
static void random_numbers(uint64_t seed, int32_t threads, float* values, size_t bytes) {
  const caffe2_engine_options options = {sizeof options, threads, NULL, 0, NULL, NULL};
  caffe2_engine* e = NULL;
  caffe2_workspace* w = NULL;
  CHECK_OK(caffe2_engine_create(&options, &e, &error));
  CHECK_OK(caffe2_workspace_create(e, &w, &error));
  CHECK_OK(caffe2_workspace_set_random_seed(w, seed, &error));
  Message net = make_net("", "", ""), fill = make_operator("GaussianFill", "", "r");
  add_shape(&fill, (int64_t)(bytes / sizeof(float)));
  add_message(&net, fill);
  CHECK_OK(caffe2_workspace_run_net_once(w, net.data, net.size, &error));
  CHECK_OK(caffe2_workspace_fetch(w, "r", values, bytes, NULL, &error));
  caffe2_workspace_free(w);
  caffe2_engine_free(e);
}

static void test_equal_seeds_give_equal_numbers(void) {
  enum { kCount = 100000 };
  static float first[kCount], second[kCount];
  random_numbers(7, 1, first, sizeof first);
  random_numbers(7, 4, second, sizeof second);
  CHECK(memcmp(first, second, sizeof first) == 0);
  random_numbers(8, 1, second, sizeof second);
  CHECK(memcmp(first, second, sizeof first) != 0);
}

static int count_and_interrupt(void* context) {
  ++*(int*)context;
  return 1;
}

static void test_a_run_is_interrupted(void) {
  int asked = 0;
  const caffe2_engine_options options = {sizeof options, 1, NULL, 0, count_and_interrupt, &asked};
  caffe2_engine* e = NULL;
  caffe2_workspace* w = NULL;
  CHECK_OK(caffe2_engine_create(&options, &e, &error));
  CHECK_OK(caffe2_workspace_create(e, &w, &error));
  // Some seconds of work, where a run asks after some hundredths.
  Message net = make_net("long", "", "");
  Message fill = make_operator("GaussianFill", "", "r");
  add_shape(&fill, 4000000);
  for (int i = 0; i < 100; i++) add_message(&net, fill);
  CHECK_GIVES(CAFFE2_CANCELLED, "cancelled",
              caffe2_workspace_run_net_once(w, net.data, net.size, &error));
  CHECK(asked == 1);
  caffe2_workspace_free(w);
  caffe2_engine_free(e);
}

static void* predict_often(void* wrong) {
  caffe2_predictor* p = NULL;
  int* const failures = (int*)wrong;
  const caffe2_tensor x = floats(kX, 2, 2);
  *failures += caffe2_predictor_create(engine, kInitNet, sizeof kInitNet, kPredictNet,
                                       sizeof kPredictNet, &p, NULL) != CAFFE2_OK;
  for (int i = 0; i < 200; i++) {
    caffe2_tensor y = CAFFE2_TENSOR_INIT;
    *failures += caffe2_predictor_feed(p, "x", &x, NULL) != CAFFE2_OK;
    *failures += caffe2_predictor_run(p, NULL) != CAFFE2_OK;
    *failures += caffe2_predictor_view(p, "y", &y, NULL) != CAFFE2_OK;
    *failures += y.bytes != sizeof kY || memcmp(y.data, kY, sizeof kY) != 0;
  }
  caffe2_predictor_free(p);
  return NULL;
}

static void test_threads_share_an_engine(void) {
  enum { kThreads = 4 };
  pthread_t threads[kThreads];
  int failures[kThreads] = {0};
  for (int i = 0; i < kThreads; i++) {
    CHECK(pthread_create(&threads[i], NULL, predict_often, &failures[i]) == 0);
  }
  for (int i = 0; i < kThreads; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(failures[i] == 0);
  }
}

int main(void) {
  engine = new_engine(2, 0);
  test_predictor_answers();
  test_a_predictor_of_a_file();
  test_predictor_errors();
  test_predictors_that_cannot_be_made();
  test_nets_of_a_workspace();
  test_names_of_a_workspace();
  test_equal_seeds_give_equal_numbers();
  test_a_run_is_interrupted();
  test_threads_share_an_engine();
  caffe2_engine_free(engine);
  if (failed_checks > 0) fprintf(stderr, "%d checks failed\n", failed_checks);
  return failed_checks > 0;
}
