// Queues of records: many threads, closing, cancelling, memory.
#include "core/queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/serialize.h"
#include "core/workspace.h"

using namespace caffe2;

namespace {

Argument integer(const std::string& name, int64_t value) {
  Argument arg;
  arg.name = name;
  arg.i = value;
  return arg;
}

OperatorDef op(const std::string& type, std::vector<std::string> in, std::vector<std::string> out,
               std::vector<Argument> args = {}) {
  OperatorDef def;
  def.type = type;
  def.input = std::move(in);
  def.output = std::move(out);
  def.arg = std::move(args);
  return def;
}

NetDef net(const std::string& name, std::vector<OperatorDef> ops, const std::string& type = "") {
  NetDef def;
  def.name = name;
  def.type = type;
  def.op = std::move(ops);
  return def;
}

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Queues {
  explicit Queues(int threads = 1)
      : engine(std::make_shared<Engine>(EngineOptions{threads, "auto", 0})), workspace(engine) {
    engine->hooks().stall_seconds = 1e-9;
    engine->hooks().on_stall = [this](const std::string& text) {
      std::lock_guard lock(mutex);
      reports.push_back(text);
      reported.notify_all();
    };
  }

  // Until so many waits have been reported.
  void await_waits(size_t count) {
    std::unique_lock lock(mutex);
    reported.wait(lock, [&] { return reports.size() >= count; });
  }

  std::mutex mutex;
  std::condition_variable reported;
  std::vector<std::string> reports;
  std::shared_ptr<Engine> engine;
  Workspace workspace;

  void run(OperatorDef def) { workspace.run_operator_once(std::move(def), ""); }
  void create_queue(const std::string& name, int capacity, int num_blobs = 1) {
    run(op("CreateBlobsQueue", {}, {name},
           {integer("capacity", capacity), integer("num_blobs", num_blobs)}));
  }
  const void* feed(const std::string& name, const std::vector<float>& values) {
    Tensor tensor(engine->allocator(), {static_cast<int64_t>(values.size())}, DataType::kFloat);
    std::copy(values.begin(), values.end(), tensor.mutable_data<float>());
    const void* data = tensor.raw_data();
    workspace.create_blob(name)->set(std::move(tensor));
    return data;
  }
  Tensor fetch(const std::string& name) {
    const BlobValue value = workspace.get_blob(name)->get();
    REQUIRE(value.is_tensor());
    return value.tensor;
  }
  template <class T>
  T single(const std::string& name) {
    return fetch(name).data<T>()[0];
  }
  void enqueue(const std::string& queue, const std::vector<float>& values) {
    feed("record", values);
    run(op("EnqueueBlobs", {queue, "record"}, {"record"}));
  }
  std::string state(const std::string& queue) {
    return workspace.get_blob(queue)->get().as<BlobsQueue>()->state_text();
  }
};

// Runs a net in a thread of its own until it ends or is cancelled.
class Background {
 public:
  Background(Workspace& workspace, NetDef def)
      : cancellation_(workspace.engine().hooks()),
        net_(std::move(def), {}, workspace, 0),
        thread_([this] {
          RunContext context{cancellation_};
          error_ = error_of([&] { net_.run(context); });
        }) {}
  ~Background() {
    cancel();
    join();
  }
  void cancel() { cancellation_.cancel(); }
  std::string join() {
    if (thread_.joinable()) thread_.join();
    return error_;
  }

 private:
  Cancellation cancellation_;
  CompiledNet net_;
  std::string error_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a value moves through a queue without a copy") {
  Queues q;
  q.create_queue("q", 2, 2);
  const void* first = q.feed("a", {1, 2});
  const void* second = q.feed("b", {3});
  q.run(op("EnqueueBlobs", {"q", "a", "b"}, {"a", "b"}));
  CHECK(q.workspace.get_blob("a")->get().empty());
  CHECK(q.workspace.get_blob("b")->get().empty());
  q.feed("a", {7, 7});  // what the producer writes next is something else
  q.run(op("DequeueBlobs", {"q"}, {"c", "d"}));
  CHECK(q.fetch("c").raw_data() == first);
  CHECK(q.fetch("d").raw_data() == second);
  CHECK(q.fetch("c").data<float>()[1] == 2);
}

TEST_CASE("many producers and consumers lose, double and tear nothing") {
  constexpr int kProducers = 4, kConsumers = 4;
  constexpr int64_t kRecords = 1000;
  Queues q;
  q.create_queue("q", 3, 3);
  const auto name = [](const char* blob, int i) { return blob + std::to_string(i); };
  for (int i = 0; i < kProducers; i++) {
    q.run(op("CreateCounter", {}, {name("counter", i)}));
    q.workspace.create_net(net(name("produce", i),
                               {op("ConstantFill", {}, {name("id", i)}, {integer("value", i)}),
                                op("CountUp", {name("counter", i)}, {name("n", i)}),
                                op("Copy", {name("n", i)}, {name("m", i)}),
                                op("EnqueueBlobs", {"q", name("id", i), name("n", i), name("m", i)},
                                   {name("id", i), name("n", i), name("m", i)})}),
                           {}, false);
  }
  for (int i = 0; i < kConsumers; i++) {
    q.workspace.create_net(
        net(name("consume", i),
            {op("SafeDequeueBlobs", {"q"},
                {name("to_id", i), name("to_n", i), name("to_m", i), name("done", i)})}),
        {}, false);
  }
  std::vector<std::thread> producers, consumers;
  for (int i = 0; i < kProducers; i++) {
    producers.emplace_back([&, i] {
      const auto produce = q.workspace.get_net(name("produce", i));
      for (int64_t k = 0; k < kRecords; k++) produce->run();
    });
  }
  struct Seen {
    bool whole = true, in_order = true;
    std::map<int64_t, std::vector<int64_t>> numbers;  // per producer
  };
  std::vector<Seen> seen(kConsumers);
  for (int i = 0; i < kConsumers; i++) {
    consumers.emplace_back([&, i] {
      const auto consume = q.workspace.get_net(name("consume", i));
      while (true) {
        consume->run();
        if (q.single<bool>(name("done", i))) return;
        const auto n = q.single<int64_t>(name("to_n", i));
        auto& numbers = seen[i].numbers[q.single<int64_t>(name("to_id", i))];
        seen[i].whole = seen[i].whole && q.single<int64_t>(name("to_m", i)) == n;
        seen[i].in_order = seen[i].in_order && (numbers.empty() || numbers.back() < n);
        numbers.push_back(n);
      }
    });
  }
  for (std::thread& thread : producers) thread.join();
  q.run(op("CloseBlobsQueue", {"q"}, {}));
  for (std::thread& thread : consumers) thread.join();
  for (const Seen& one : seen) {
    CHECK(one.whole);
    CHECK(one.in_order);
  }
  for (int producer = 0; producer < kProducers; producer++) {
    std::vector<int64_t> all, expected(kRecords);
    for (Seen& one : seen) {
      all.insert(all.end(), one.numbers[producer].begin(), one.numbers[producer].end());
    }
    std::sort(all.begin(), all.end());
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(all == expected);
  }
}

TEST_CASE("closing wakes everybody who waits") {
  Queues q;
  q.create_queue("full", 1);
  q.create_queue("empty", 1);
  q.enqueue("full", {1});
  for (const char* blob : {"a", "b", "c"}) q.feed(blob, {5});
  std::vector<std::unique_ptr<Background>> waiting;
  const auto start = [&](OperatorDef def) {
    waiting.push_back(std::make_unique<Background>(q.workspace, net("", {std::move(def)})));
  };
  start(op("EnqueueBlobs", {"full", "a"}, {"a"}));
  start(op("EnqueueBlobs", {"full", "b"}, {"b"}));
  start(op("SafeEnqueueBlobs", {"full", "c"}, {"c", "c_status"}));
  start(op("DequeueBlobs", {"empty"}, {"d"}));
  start(op("DequeueBlobs", {"empty"}, {"e"}));
  start(op("SafeDequeueBlobs", {"empty"}, {"f", "f_status"}));
  q.await_waits(6);
  q.run(op("CloseBlobsQueue", {"full"}, {}));
  q.run(op("CloseBlobsQueue", {"empty"}, {}));
  CHECK(contains(waiting[0]->join(), "(EnqueueBlobs): input 0 (queue) 'full' is closed"));
  CHECK(contains(waiting[1]->join(), "'full' is closed"));
  CHECK(waiting[2]->join() == "no error");
  CHECK(
      contains(waiting[3]->join(), "(DequeueBlobs): input 0 (queue) 'empty' is closed and empty"));
  CHECK(contains(waiting[4]->join(), "'empty' is closed and empty"));
  CHECK(waiting[5]->join() == "no error");
  CHECK(q.single<bool>("c_status"));
  CHECK(q.single<bool>("f_status"));
  // Who could not bring a record keeps it.
  for (const char* blob : {"a", "b", "c"}) CHECK(q.single<float>(blob) == 5);
  CHECK(q.workspace.get_blob("d")->get().empty());
  q.run(op("DequeueBlobs", {"full"}, {"last"}));
  CHECK(q.single<float>("last") == 1);
}

TEST_CASE("a cancelled wait leaves queue and blobs as they were") {
  Queues q;
  q.create_queue("q", 1);
  q.enqueue("q", {1});
  q.feed("x", {2});
  {
    Background enqueue(q.workspace, net("", {op("EnqueueBlobs", {"q", "x"}, {"x"})}));
    q.await_waits(1);
    enqueue.cancel();
    CHECK(contains(enqueue.join(), "cancelled"));
  }
  CHECK(q.single<float>("x") == 2);
  CHECK(q.state("q") == "1 of 1 records");
  // It had one of the two records that it wants.
  Background two(
      q.workspace,
      net("", {op("SafeDequeueBlobs", {"q"}, {"y", "status"}, {integer("num_records", 2)})}));
  q.await_waits(2);
  CHECK(q.state("q") == "0 of 1 records");
  two.cancel();
  CHECK(contains(two.join(), "cancelled"));
  CHECK(q.state("q") == "1 of 1 records");
  q.run(op("DequeueBlobs", {"q"}, {"y"}));
  CHECK(q.single<float>("y") == 1);
}

TEST_CASE("nobody waits for a queue that is gone") {
  Queues q;
  const auto dequeue = [&] {
    return std::make_unique<Background>(q.workspace, net("", {op("DequeueBlobs", {"q"}, {"y"})}));
  };
  const std::string text = "input 0 (queue) 'q' was removed or replaced";
  q.create_queue("q", 1);
  auto waiting = dequeue();
  q.await_waits(1);
  q.create_queue("q", 1);
  CHECK(contains(waiting->join(), text));
  waiting = dequeue();
  q.await_waits(2);
  q.workspace.remove_blob("q");
  CHECK(contains(waiting->join(), text));
  q.create_queue("q", 1);
  waiting = dequeue();
  q.await_waits(3);
  q.workspace.reset();
  CHECK(contains(waiting->join(), text));
}

TEST_CASE("a long wait is reported once") {
  Queues q;
  q.create_queue("q", 2);
  q.feed("x", {1});
  Background first(q.workspace,
                   net("first", {op("Relu", {"x"}, {"y"}), op("DequeueBlobs", {"q"}, {"z"})}));
  q.await_waits(1);
  Background second(q.workspace, net("second", {op("DequeueBlobs", {"q"}, {"u"})}));
  q.await_waits(2);
  q.enqueue("q", {1});
  q.enqueue("q", {2});
  CHECK(first.join() == "no error");
  CHECK(second.join() == "no error");
  const std::string rest = " (DequeueBlobs) waits for a record of queue 'q' (0 of 2 records)";
  CHECK(q.reports == std::vector<std::string>{"Operator 1" + rest, "Operator 0" + rest});
}

TEST_CASE("producers and consumers of one parallel net need no pool") {
  Queues q(1);
  constexpr int kRecords = 20;
  q.create_queue("q", 1);
  std::vector<OperatorDef> ops;
  for (int i = 0; i < kRecords; i++) {
    const std::string x = "x" + std::to_string(i), y = "y" + std::to_string(i);
    ops.push_back(op("DequeueBlobs", {"q"}, {y}));  // before there is anything
    ops.push_back(op("ConstantFill", {}, {x}, {integer("value", i)}));
    ops.push_back(op("EnqueueBlobs", {"q", x}, {x}));
  }
  q.workspace.create_net(net("n", std::move(ops), "dag"), {}, false);
  for (int repeat = 0; repeat < 5; repeat++) {
    q.workspace.get_net("n")->run();
    std::set<int64_t> found;
    for (int i = 0; i < kRecords; i++) found.insert(q.single<int64_t>("y" + std::to_string(i)));
    CHECK(found.size() == kRecords);
    CHECK(*found.begin() == 0);
    CHECK(*found.rbegin() == kRecords - 1);
  }
  CHECK(q.state("q") == "0 of 1 records");
}

TEST_CASE("a failing operator ends the waits of its net") {
  Queues q;
  q.create_queue("q", 1);
  q.feed("a", {1});
  q.feed("b", {1, 2});
  const NetDef def = net("n",
                         {op("DequeueBlobs", {"q"}, {"x"}), op("DequeueBlobs", {"q"}, {"y"}),
                          op("Sum", {"a", "b"}, {"c"})},
                         "dag");
  CHECK(contains(error_of([&] { q.workspace.run_net_once(def, {}); }), "Operator 2 (Sum)"));
}

TEST_CASE("no memory stays behind") {
  Queues q;
  const size_t before = q.engine->allocator()->used();
  q.create_queue("q", 4);
  for (float k = 0; k < 4; k++) q.enqueue("q", {k, k});
  {
    q.feed("x", {1, 2, 3});
    Background waiting(q.workspace, net("", {op("EnqueueBlobs", {"q", "x"}, {"x"})}));
    q.await_waits(1);
    q.workspace.reset();
    waiting.join();
  }
  CHECK(q.engine->allocator()->used() == before);
}

TEST_CASE("when memory runs out the records are still in the queue") {
  Queues q;
  q.create_queue("q", 3);
  for (float k = 0; k < 3; k++) q.enqueue("q", {k});
  const OperatorDef def =
      op("SafeDequeueBlobs", {"q"}, {"y", "status"}, {integer("num_records", 3)});
  int failures = 0;
  for (;; failures++) {
    q.engine->allocator()->fail_at_call(failures + 1);
    const std::string error = error_of([&] { q.run(def); });
    q.engine->allocator()->fail_at_call(0);
    if (error == "no error") break;
    CHECK(contains(error, "Operator (SafeDequeueBlobs)"));
    CHECK(q.state("q") == "3 of 3 records");
    CHECK(q.workspace.get_blob("y")->get().empty());
  }
  CHECK(failures == 2);  // the status and the blob
  const Tensor y = q.fetch("y");
  CHECK(std::vector<float>(y.data<float>(), y.data<float>() + y.size()) ==
        std::vector<float>{0, 1, 2});
}

TEST_CASE("counting is exact with many threads") {
  constexpr int kThreads = 4, kTimes = 2000;
  Queues q;
  q.run(op("CreateCounter", {}, {"counter"}));
  q.run(op("CreateMutex", {}, {"mutex"}));
  q.run(op("ConstantFill", {}, {"sum"}, {integer("value", 0), integer("dtype", 2)}));
  q.run(op("ConstantFill", {}, {"three"}, {integer("value", 3), integer("dtype", 2)}));
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  std::vector<std::vector<int64_t>> counts(kThreads), fetched(kThreads);
  for (int i = 0; i < kThreads; i++) {
    const std::string id = std::to_string(i);
    q.workspace.create_net(
        net(id, {op("CountUp", {"counter"}, {"count" + id}),
                 op("AtomicFetchAdd", {"mutex", "sum", "three"}, {"sum", "fetched" + id})}),
        {}, false);
    threads.emplace_back([&, i, id] {
      const auto count = q.workspace.get_net(id);
      while (!go) std::this_thread::yield();
      for (int k = 0; k < kTimes; k++) {
        count->run();
        counts[i].push_back(q.single<int64_t>("count" + id));
        fetched[i].push_back(q.single<int32_t>("fetched" + id));
      }
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  std::set<int64_t> all_counts, all_fetched;
  for (const auto& some : counts) all_counts.insert(some.begin(), some.end());
  for (const auto& some : fetched) all_fetched.insert(some.begin(), some.end());
  CHECK(all_counts.size() == kThreads * kTimes);  // none twice
  CHECK(*all_counts.rbegin() == kThreads * kTimes - 1);
  CHECK(all_fetched.size() == kThreads * kTimes);
  CHECK(*all_fetched.rbegin() == 3 * (kThreads * kTimes - 1));
  CHECK(q.single<int32_t>("sum") == 3 * kThreads * kTimes);
}

TEST_CASE("counters and mutexes can be saved, queues cannot") {
  Queues q;
  q.run(op("CreateCounter", {}, {"c"}, {integer("init_count", 12)}));
  const auto saved = [&](const char* name) {
    return serialize_blob(name, q.workspace.get_blob(name)->get());
  };
  q.workspace.create_blob("d")->set(deserialize_blob(saved("c"), *q.engine));
  q.run(op("CountUp", {"d"}, {"n"}));
  CHECK(q.single<int64_t>("n") == 12);
  q.run(op("CreateMutex", {}, {"m"}));
  CHECK(deserialize_blob(saved("m"), *q.engine).as<Mutex>() != nullptr);
  q.create_queue("q", 1);
  CHECK(contains(error_of([&] { saved("q"); }), "BlobsQueue> cannot be saved"));
}
