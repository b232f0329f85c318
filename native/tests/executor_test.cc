// The executors: order, overlap, errors, cancellation; and nets that give the same bits on both.
#include "core/executor.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "core/workspace.h"

using namespace caffe2;

namespace {

OperatorDef op(const std::string& type, std::vector<std::string> in, std::vector<std::string> out) {
  OperatorDef def;
  def.type = type;
  def.input = std::move(in);
  def.output = std::move(out);
  return def;
}

// A net of n steps without any order between them.
NetDef independent(int n) {
  NetDef net;
  for (int i = 0; i < n; i++) net.op.push_back(op("Relu", {}, {"y" + std::to_string(i)}));
  return net;
}

NetDef chain(int n) {
  NetDef net;
  for (int i = 0; i < n; i++) {
    net.op.push_back(op("Relu", {"y" + std::to_string(i)}, {"y" + std::to_string(i + 1)}));
  }
  return net;
}

struct Runner {
  explicit Runner(int threads) : pool(threads) {}
  void run(
      const NetDef& net, std::function<void(int, RunContext&)> execute,
      std::function<bool(int)> may_block = [](int) { return false; }) {
    const DependencyGraph graph(net);
    Cancellation cancellation(hooks);
    RunContext context{cancellation};
    const Steps steps{static_cast<int>(net.op.size()), std::move(execute), std::move(may_block)};
    run_parallel(steps, graph, pool, context);
  }
  ThreadPool pool;
  HostHooks hooks;
};

// Lets `count` threads go on together.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  bool wait() {
    std::unique_lock lock(mutex_);
    missing_--;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
};

}  // namespace

TEST_CASE("dependencies: read after write, write after read, write after write, control inputs") {
  NetDef net;
  net.op = {op("A", {}, {"x"}), op("B", {"x"}, {"y"}),      op("C", {"x"}, {"z"}),
            op("D", {}, {"x"}), op("E", {"x", "x"}, {"x"}), op("F", {}, {"w"})};
  net.op[5].control_input = {"z"};
  const DependencyGraph graph(net);
  CHECK(graph.children[0] == std::vector<int>{1, 2, 3});
  CHECK(graph.children[1] == std::vector<int>{3});
  CHECK(graph.children[2] == std::vector<int>{3, 5});
  CHECK(graph.children[3] == std::vector<int>{4});
  CHECK(graph.children[4].empty());
  CHECK(graph.parents == std::vector<int>{0, 1, 1, 3, 1, 1});
}

TEST_CASE("every step runs once, after those it waits for") {
  std::mt19937 random(0);
  for (const int threads : {1, 2, 8, 64}) {
    Runner runner(threads);
    for (int round = 0; round < 20; round++) {
      NetDef net;
      for (int i = 0; i < 60; i++) {
        std::vector<std::string> in, out;
        for (int k = random() % 3; k > 0; k--) in.push_back("b" + std::to_string(random() % 15));
        out.push_back("b" + std::to_string(random() % 15));
        net.op.push_back(op("X", in, out));
      }
      const DependencyGraph graph(net);
      std::vector<std::atomic<int>> done(60);
      std::vector<std::atomic<int>> parents(60);
      std::atomic<bool> early{false};
      runner.run(net, [&](int i, RunContext&) {
        if (parents[i] != graph.parents[i]) early = true;
        done[i]++;
        for (const int child : graph.children[i]) parents[child]++;
      });
      CHECK_FALSE(early);
      for (const auto& count : done) CHECK(count == 1);
    }
  }
}

TEST_CASE("independent steps overlap") {
  Runner runner(4);
  Meeting meeting(4);
  std::atomic<int> met{0};
  runner.run(independent(4), [&](int, RunContext&) { met += meeting.wait(); });
  CHECK(met == 4);
}

TEST_CASE("steps that may block have threads of their own, beside a pool of one") {
  Runner runner(1);
  Meeting meeting(3);
  std::atomic<int> met{0};
  runner.run(
      independent(3), [&](int, RunContext&) { met += meeting.wait(); },
      [](int i) { return i > 0; });
  CHECK(met == 3);
}

TEST_CASE("the first error ends the run and nothing that waits for it starts") {
  for (const int threads : {1, 3}) {
    Runner runner(threads);
    std::atomic<int> started{0};
    CHECK_THROWS_WITH_AS(runner.run(chain(10),
                                    [&](int i, RunContext&) {
                                      started++;
                                      if (i == 4) fail(Code::kInvalidArgument, "step four");
                                    }),
                         "step four", Error);
    CHECK(started == 5);
  }
}

TEST_CASE("an error wakes the steps that wait") {
  Runner runner(2);
  std::mutex mutex;
  std::condition_variable never;
  CHECK_THROWS_WITH_AS(runner.run(
                           independent(3),
                           [&](int i, RunContext& context) {
                             if (i == 0) fail(Code::kInternal, "broken");
                             std::unique_lock lock(mutex);
                             context.cancellation.wait(
                                 never, lock, [] { return false; },
                                 [] { return std::string("a step that waits"); });
                           },
                           [](int i) { return i > 0; }),
                       "broken", Error);
}

TEST_CASE("the host's interrupt ends a run that waits, and stalls are reported once") {
  Runner runner(2);
  std::atomic<bool> interrupt{false};
  std::vector<std::string> reports;
  std::mutex reports_mutex;
  runner.hooks.interrupted = [&] { return interrupt.load(); };
  runner.hooks.stall_seconds = 0.05;
  runner.hooks.on_stall = [&](const std::string& text) {
    std::lock_guard lock(reports_mutex);
    reports.push_back(text);
    interrupt = true;
  };
  std::mutex mutex;
  std::condition_variable never;
  try {
    runner.run(
        independent(1),
        [&](int, RunContext& context) {
          std::unique_lock lock(mutex);
          context.cancellation.wait(
              never, lock, [] { return false; }, [] { return std::string("waits for q"); });
        },
        [](int) { return true; });
    FAIL("not interrupted");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kCancelled);
  }
  CHECK(reports == std::vector<std::string>{"waits for q"});
}

namespace {

// Runs a random net and returns all blobs, as bytes.
std::vector<std::string> run_random_net(unsigned seed, const char* type, int threads) {
  std::mt19937 random(seed);
  Workspace workspace(std::make_shared<Engine>(EngineOptions{threads, "auto", 0}));
  workspace.set_random_seed(seed);
  const auto blob = [&] { return "b" + std::to_string(random() % 12); };
  for (int i = 0; i < 12; i++) {
    Tensor tensor(workspace.engine().allocator(), {5, 7}, DataType::kFloat);
    for (int k = 0; k < 35; k++) tensor.mutable_data<float>()[k] = int(random() % 200) - 100.f;
    workspace.create_blob("b" + std::to_string(i))->set(tensor);
  }
  NetDef net;
  net.name = "random";
  net.type = type;
  for (int i = 0; i < 40; i++) {
    const std::string out = blob();
    switch (random() % 5) {
      case 0:
        net.op.push_back(op("Relu", {blob()}, {out}));
        break;
      case 1:
        net.op.push_back(op("Tanh", {out}, {out}));
        break;
      case 2: {
        std::string other = blob();
        if (other == out) other = out == "b0" ? "b1" : "b0";
        net.op.push_back(op("Sum", {out, other}, {out}));
        break;
      }
      case 3: {
        std::string in = blob();
        if (in == out) in = out == "b0" ? "b1" : "b0";
        net.op.push_back(op("Softmax", {in}, {out}));
        break;
      }
      default: {
        OperatorDef fill = op("GaussianFill", {}, {out});
        Argument shape;
        shape.name = "shape";
        shape.ints = {5, 7};
        fill.arg.push_back(shape);
        net.op.push_back(fill);
      }
    }
  }
  workspace.create_net(net, {}, false);
  for (int run = 0; run < 3; run++) workspace.get_net("random")->run();
  std::vector<std::string> out;
  for (int i = 0; i < 12; i++) {
    const Tensor tensor = workspace.get_blob("b" + std::to_string(i))->get().tensor;
    out.emplace_back(static_cast<const char*>(tensor.raw_data()), tensor.bytes());
  }
  return out;
}

}  // namespace

TEST_CASE("same seed, same bits: serial or parallel, on any number of threads") {
  for (unsigned seed = 0; seed < 15; seed++) {
    const auto serial = run_random_net(seed, "simple", 1);
    CHECK(run_random_net(seed, "simple", 8) == serial);
    for (const int threads : {1, 2, 8}) CHECK(run_random_net(seed, "dag", threads) == serial);
    CHECK(run_random_net(seed + 1000, "simple", 1) != serial);
  }
}

TEST_CASE("an error in a parallel net names its operator; other nets go on") {
  Workspace workspace(std::make_shared<Engine>(EngineOptions{4, "auto", 0}));
  Tensor x(workspace.engine().allocator(), {2}, DataType::kFloat);
  x.mutable_data<float>()[0] = x.mutable_data<float>()[1] = 1;
  workspace.create_blob("x")->set(x);
  workspace.create_blob("three")->set(
      Tensor(workspace.engine().allocator(), {3}, DataType::kFloat));
  NetDef net;
  net.name = "n";
  net.type = "async_scheduling";
  net.op = {op("Relu", {"x"}, {"a"}), op("Sum", {"x", "three"}, {"b"}), op("Relu", {"b"}, {"c"})};
  workspace.create_net(net, {}, false);
  for (int round = 0; round < 20; round++) {
    try {
      workspace.get_net("n")->run();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.location().op_index == 1);
      CHECK(error.location().op_type == "Sum");
    }
    CHECK(workspace.get_blob("c")->get().empty());
  }
}

TEST_CASE("a second run of a net that runs is refused") {
  Runner runner(1);
  Workspace workspace(std::make_shared<Engine>(EngineOptions{1, "auto", 0}));
  workspace.create_blob("x")->set(Tensor(workspace.engine().allocator(), {1}, DataType::kFloat));
  NetDef net;
  net.name = "n";
  for (int i = 0; i < 20000; i++) net.op.push_back(op("Relu", {"x"}, {"x"}));
  workspace.create_net(net, {}, false);
  std::atomic<int> refused{0}, ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; k++) {
        try {
          workspace.get_net("n")->run();
          ran++;
        } catch (const Error& error) {
          refused += error.code() == Code::kFailedPrecondition;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(ran + refused == 20);
  CHECK(ran >= 1);
}
