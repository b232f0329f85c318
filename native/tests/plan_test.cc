// Plans: order, stopping, reports, threads, workspaces inside workspaces, errors, cancellation.
#include <doctest/doctest.h>

#include "plan_testing.h"

using namespace caffe2;
using namespace caffe2::plan_testing;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(Fixture, "steps run in order, each num_iter times") {
  CHECK(run({step("s", {"a", "b"})}) == "a b");
  CHECK(run({step("s", {"b", "a"}, 2), step("t", {"c"})}) == "b a b a c");
  CHECK(run({step("s", {"a"}, 0)}) == "");
  CHECK(run({}) == "");
  CHECK(run({step("s", {})}) == "");
  CHECK(run({steps("s", {step("x", {"a"}), step("y", {"b"}, 2)}, 2), step("z", {"c"})}) ==
        "a b b a b b c");
}

TEST_CASE_FIXTURE(Fixture, "the nets of a plan replace those of the workspace and stay") {
  feed("x", {-1});
  workspace.create_net(net("n", {op("Copy", {"x"}, {"y"})}), {}, false);
  CHECK(run({step("s", {"n"})}, {net("n", {op("Relu", {"x"}, {"y"})}), net("unused", {})}) == "");
  CHECK(fetch<float>("y") == std::vector<float>{0});
  feed("x", {5});
  workspace.get_net("n")->run();
  CHECK(fetch<float>("y") == std::vector<float>{5});
  CHECK(workspace.net_names() == std::vector<std::string>{"n"});
  // One of the workspace that the plan does not bring along is none of the plan's.
  CHECK(error({step("s", {"m"})}, {net("n", {})}).code() == Code::kNotFound);
}

TEST_CASE_FIXTURE(Fixture, "a top step may read what a step before it makes, a substep may not") {
  const std::vector<NetDef> nets = {net("read", {op("Copy", {"made"}, {"copy"})}),
                                    net("make", {op("ConstantFill", {}, {"made"})})};
  const Error early = error({step("z", {"read"}), step("x", {"make"})}, nets);
  CHECK(contains(early.what(), "'made' (operator 0, Copy)"));
  CHECK(early.location().step == "z");
  CHECK(run({step("x", {"make"}), step("z", {"read"})}, nets) == "");
}

TEST_CASE_FIXTURE(Fixture, "a stop blob is looked at after each net and each substep") {
  stop_at("a", 3);
  CHECK(run({until("stop", step("s", {"a", "b"})), step("t", {"c"})}) == "a b a b a c");
  stop_at("b", 2);
  CHECK(run({until("stop", steps("s", {step("x", {"a"}), step("y", {"b"}), step("z", {"c"})}))}) ==
        "a b c a b");
  // Also before anything has run: it is the step that is done, not the plan.
  feed_flag("stop", true);
  CHECK(run({until("stop", step("s", {"a", "c"})), step("t", {"c"})}) == "a c");
  // The inner step stops, then the outer one.
  stop_at("a", 1);
  CHECK(run({until("stop",
                   steps("o", {until("stop", step("x", {"a", "c"})), step("y", {"c"})}))}) == "a");
  stop_at("a", 2);
  CHECK(run({steps("o", {until("stop", step("x", {"c", "a"})), step("y", {"b"})}, 3)}) ==
        "c a c a b c b c b");
  // A blob that nobody has written yet says no.
  workspace.remove_blob("stop");
  workspace.create_blob("stop");
  actions.calls["b"] = 0;
  actions.act["b"] = [this](int number, RunContext&) { feed_flag("stop", number == 2); };
  CHECK(run({until("stop", step("s", {"c", "b"}))}) == "c b c b");
}

TEST_CASE_FIXTURE(Fixture, "only_once makes one pass, which the stop blob may end early") {
  auto once = until("stop", step("x", {"a", "b"}));
  once.only_once = true;
  stop_at("a", 3);
  CHECK(run({steps("o", {once, step("y", {"c"})}, 4)}) == "a b c a b c a c a c");
  once.only_once = false;
  stop_at("a", 3);
  CHECK(run({once}) == "a b a b a");
  once.should_stop_blob.reset();
  CHECK(run({once}) == "a b");
}

TEST_CASE_FIXTURE(Fixture, "a stop blob that is no single bool is refused") {
  const auto text = [&] { return std::string(error({until("stap", step("s", {"a"}))}).what()); };
  feed_flag("stop", true);
  CHECK(text() == "should_stop_blob 'stap' does not exist. Did you mean stop?\n  in step 's'");
  CHECK(actions.text() == "");
  feed("stap", {1});
  CHECK(text() ==
        "should_stop_blob 'stap' holds a tensor of type float and shape (1,); one bool is needed\n"
        "  in step 's'");
  workspace.get_blob("stap")->set(Tensor(engine->allocator(), {2}, DataType::kBool));
  CHECK(contains(text(), "of type bool and shape (2,)"));
  workspace.get_blob("stap")->set(std::make_shared<Text>("true"));
  CHECK(contains(text(), "holds std::string; one bool"));
  Tensor one(engine->allocator(), {1, 1}, DataType::kBool);
  *one.mutable_data<bool>() = true;
  workspace.get_blob("stap")->set(one);
  actions.text();
  CHECK(run({until("stap", step("s", {"a", "b"}))}) == "a");
}

TEST_CASE_FIXTURE(Fixture, "a malformed plan is refused before anything runs") {
  const auto refuses = [&](ExecutionStep bad, const std::string& text) {
    CAPTURE(text);
    const Error found = error({step("first", {"a"}), steps("outer", {bad})});
    CHECK(contains(found.what(), text));
    CHECK(contains(found.what(), "\n  in step 's'"));
    CHECK(actions.text() == "");
    CHECK(workspace.net_names().empty());
  };
  refuses(step("s", {"aa"}), "the plan has no network 'aa'. Did you mean a");
  refuses(reporting("nets", 1, step("s", {"a"})), "the plan has no network 'nets'");
  auto both = step("s", {"a"});
  both.substep = {step("x", {"b"})};
  refuses(both, "either substeps or networks; this one has 1 and 1");
  refuses(until("stop", step("s", {"a"}, 3)),
          "num_iter = 3 and should_stop_blob = 'stop' are given");
  auto once = step("s", {"a"});
  once.only_once = true;
  refuses(once, "only_once needs a should_stop_blob");
  auto report = step("s", {"a"});
  report.report_net = "b";
  refuses(report, "report_interval, in seconds, has to be given with report_net = 'b'");
  refuses(reporting("b", -1, step("s", {"a"})), "report_interval = -1 is negative");
  refuses(step("s", {"a"}, -3), "num_iter = -3 is negative");
  refuses(every_ms(-5, step("s", {"a"})), "run_every_ms = -5 is negative");
  auto many = side_by_side(steps("s", {step("x", {"a"})}));
  many.num_concurrent_instances = -2;
  refuses(many, "num_concurrent_instances = -2 is negative");
  many.num_concurrent_instances = 1'000'000'000;
  refuses(many, "num_concurrent_instances = 1000000000 is more than 4096");

  const Error twice = error({step("s", {"b"})}, {acting("b")});
  CHECK(contains(twice.what(), "two networks of the name 'b'"));
}

TEST_CASE_FIXTURE(Fixture, "what a plan asks for is bounded") {
  ExecutionStep deep = step("s", {"a"});
  for (int i = 1; i < RunContext::kMaxDepth; i++) deep = steps("s", {deep});
  CHECK(run({deep}) == "a");
  const Error nested = error({steps("s", {deep})});
  CHECK(contains(nested.what(), "steps are nested more than 64 deep"));

  ExecutionStep bomb = step("s", {"a"});
  for (int i = 0; i < 8; i++) {
    bomb = side_by_side(steps("s", {bomb}));
    bomb.num_concurrent_instances = 100;
  }
  CHECK(contains(error({bomb}).what(), "the plan asks for more than 4096 threads"));
  ExecutionStep wide = side_by_side(steps("s", {steps("s", std::vector(200, step("s", {"a"})))}));
  wide.num_concurrent_instances = 1000;
  CHECK(contains(error({wide}).what(), "the plan asks for more than 65536 steps"));
}

TEST_CASE_FIXTURE(Fixture, "concurrent substeps and instances run at the same time") {
  for (const int instances : {0, 1, 3}) {
    CAPTURE(instances);
    const int threads = 2 * std::max(1, instances);
    Meeting meeting(threads);
    std::atomic<bool> met{true};
    const auto meet = [&](int, RunContext&) { met = met && meeting.wait(); };
    actions.act["a"] = meet;
    actions.act["b"] = meet;
    actions.threads.clear();
    ExecutionStep both = side_by_side(steps("o", {step("x", {"a"}), step("y", {"b"})}, 2));
    if (instances > 0) both.num_concurrent_instances = instances;
    run({both, step("z", {"c"})});
    CHECK(met);
    CHECK(actions.calls["a"] == threads);  // half of them in each of the two passes
    CHECK(actions.calls["b"] == threads);
    actions.calls.clear();
  }
  CHECK(actions.threads.count(std::this_thread::get_id()) == 1);  // by c
}

TEST_CASE_FIXTURE(Fixture, "one net in steps side by side: each has its own copy") {
  Meeting meeting(3);
  actions.act["a"] = [&](int, RunContext&) { CHECK(meeting.wait()); };
  ExecutionStep instances = side_by_side(steps("o", {step("x", {"a"})}));
  instances.num_concurrent_instances = 3;
  CHECK(run({instances}) == "a a a");
  actions.act.clear();
  // Without company nothing needs a thread, and instances of nets alone mean nothing.
  actions.threads.clear();
  ExecutionStep alone = step("o", {"a", "b"}, 2);
  alone.num_concurrent_instances = 3;
  CHECK(run({side_by_side(alone)}) == "a b a b");
  CHECK(run({side_by_side(steps("o", {step("x", {"a"})}, 2))}) == "a a");
  CHECK(actions.threads == std::set{std::this_thread::get_id()});
}

TEST_CASE_FIXTURE(Fixture, "substeps side by side stop at the end of a pass") {
  stop_at("a", 2);
  const auto pair = side_by_side(steps("o", {step("x", {"a"}), step("y", {"b"})}));
  const std::string log = run({until("stop", pair), step("z", {"c"})});
  CHECK(log.size() == 9);
  CHECK(log.back() == 'c');
  CHECK(actions.calls["a"] == 2);
  CHECK(actions.calls["b"] == 2);
}

TEST_CASE_FIXTURE(Fixture, "random numbers of a net go on within a plan, and copies draw others") {
  OperatorDef fill = op("UniformFill", {}, {"u"});
  fill.device_option.emplace().random_seed = 7;
  const std::vector<NetDef> nets = {net("fill", {fill})};
  std::set<float> drawn;
  std::vector<float> order;
  actions.act["a"] = [&](int, RunContext&) {
    order.push_back(fetch<float>("u")[0]);
    drawn.insert(order.back());
  };
  run({step("s", {"fill", "a"}, 2), steps("t", {step("x", {"fill", "a"})})}, nets);
  CHECK(drawn.size() == 3);
  const std::vector<float> first = order;
  order.clear();
  run({step("s", {"fill", "a", "fill", "a"}), step("t", {"fill", "a"})}, nets);
  CHECK(order == first);
  // Three at a time: the numbers are as distinct as those of one.
  std::vector<NetDef> apart;
  std::vector<ExecutionStep> threads;
  for (int i = 0; i < 3; i++) {
    threads.push_back(in_own_workspace(step("x", {"fill", "keep" + std::to_string(i)})));
    apart.push_back(
        net("keep" + std::to_string(i), {op("Copy", {"u"}, {"u" + std::to_string(i)})}));
    workspace.create_blob("u" + std::to_string(i));
  }
  workspace.remove_blob("u");
  apart.push_back(net("fill", {op("UniformFill", {}, {"u"})}));
  std::vector<float> values[2];
  for (auto& round : values) {
    workspace.set_random_seed(3);
    run({side_by_side(steps("o", threads, 2))}, apart);
    for (const char* name : {"u0", "u1", "u2"}) round.push_back(fetch<float>(name)[0]);
  }
  CHECK(values[0] == values[1]);
  CHECK(std::set<float>(values[0].begin(), values[0].end()).size() == 3);
  // Each run of a step in its own workspace draws others, too.
  drawn.clear();
  actions.act["a"] = [&](int, RunContext&) { drawn.insert(fetch<float>("u0")[0]); };
  run({steps("o", {in_own_workspace(step("x", {"fill", "keep0", "a"}))}, 3)}, apart);
  CHECK(drawn.size() == 3);
}

TEST_CASE_FIXTURE(Fixture, "copies of a seeded net draw other numbers than the net") {
  OperatorDef fill = op("UniformFill", {}, {"u"});
  fill.device_option.emplace().random_seed = 7;
  NetDef fills = net("fill", {fill});
  fills.op.push_back(acting("a").op[0]);
  std::mutex mutex;
  std::set<float> drawn;
  actions.act["a"] = [&](int number, RunContext&) {
    std::lock_guard lock(mutex);
    if (number <= 2) drawn.insert(fetch<float>("u")[0]);
  };
  // Before and after the report has its own copy of the same net.
  run({reporting("fill", 1000, step("s", {"fill"}))}, {fills});
  CHECK(drawn.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "reports run now and then, and once more at the end") {
  CHECK(run({reporting("r", 1000, step("s", {"a"}, 3)), step("t", {"b"})}) == "a a a r b");
  CHECK(run({steps("o", {reporting("r", 1000, step("s", {"a"})), step("t", {"b"})}, 2)}) ==
        "a r b a r b");
  CHECK(run({reporting("r", 1000, step("s", {"a"}, 0))}) == "r");
  // As often as they can, while the step runs; on another thread.
  std::atomic<int> reports{0};
  actions.act["r"] = [&](int number, RunContext&) { reports = number; };
  actions.calls.clear();
  actions.act["a"] = [&](int, RunContext&) {
    for (int i = 0; i < 10'000 && reports < 3; i++) std::this_thread::sleep_for(1ms);
    CHECK(reports >= 3);
  };
  actions.threads.clear();
  run({reporting("r", 0, step("s", {"a"}))});
  CHECK(actions.threads.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "run_every_ms takes a substep out of the order of its siblings") {
  CHECK(run({steps("o", {every_ms(1'000'000, step("x", {"r"}, 2)), step("y", {"a"})}, 3),
             step("z", {"b"})}) == "a a a r r b");
  CHECK(run({reporting("c", 1000,
                       steps("o", {every_ms(1'000'000, step("x", {"r"})), step("y", {"a"})}))}) ==
        "a c r");
  CHECK(run({steps("o", {every_ms(1'000, step("x", {"r"}))}, 2)}) == "r");
  // At the top it means nothing.
  CHECK(run({every_ms(1'000'000, step("x", {"a"}, 2)), step("z", {"b"})}) == "a a b");
  std::atomic<int> reports{0};
  actions.calls.clear();
  actions.act["r"] = [&](int number, RunContext&) { reports = number; };
  actions.act["a"] = [&](int, RunContext&) {
    for (int i = 0; i < 10'000 && reports < 3; i++) std::this_thread::sleep_for(1ms);
  };
  run({steps("o", {every_ms(1, step("x", {"r"})), step("y", {"a"})})});
  CHECK(reports >= 3);
}

TEST_CASE_FIXTURE(Fixture,
                  "a workspace inside: what exists outside is shared, what is new is not") {
  feed("seen", {7});
  feed("out", {0});
  const std::vector<NetDef> nets = {
      net("n", {op("Copy", {"seen"}, {"local"}), op("Copy", {"local"}, {"out"}),
                op("Relu", {"seen"}, {"seen"})}),
      net("make", {op("ConstantFill", {}, {"local"})}),
      net("read", {op("Copy", {"local"}, {"out"})})};
  run({in_own_workspace(step("s", {"n"}))}, nets);
  CHECK(fetch<float>("out") == std::vector<float>{7});
  CHECK(workspace.find_blob("local") == nullptr);
  CHECK(workspace.net_names().empty());
  // Substeps see the workspace of their step; one of their own sees it, too.
  run({in_own_workspace(steps("o", {step("x", {"make"}), in_own_workspace(step("y", {"read"}))}))},
      nets);
  CHECK(fetch<float>("out") == std::vector<float>{0});
  const Error missing =
      error({steps("o", {in_own_workspace(step("x", {"make"})), step("y", {"read"})})}, nets);
  CHECK(contains(missing.what(), "'local' (operator 0, Copy)"));
  // A blob outside that goes away and comes back is found again.
  workspace.create_blob("gone");
  actions.act["a"] = [&](int number, RunContext&) {
    if (number != 1) return;
    workspace.remove_blob("gone");
    feed("gone", {11});
  };
  actions.calls.clear();
  run({in_own_workspace(step("s", {"a", "copy"}, 2))},
      {net("copy", {op("Copy", {"gone"}, {"out"})})});
  CHECK(fetch<float>("out") == std::vector<float>{11});
}

TEST_CASE_FIXTURE(Fixture, "a workspace inside lasts for one run of its step") {
  Tensor zero(engine->allocator(), {1}, DataType::kInt64);
  *zero.mutable_data<int64_t>() = 0;
  workspace.create_blob("out")->set(zero);
  const std::vector<NetDef> nets = {net("n", {op("Iter", {}, {"k"}), op("Copy", {"k"}, {"out"})})};
  run({in_own_workspace(step("s", {"n"}, 3))}, nets);
  CHECK(fetch<int64_t>("out") == std::vector<int64_t>{3});
  run({steps("o", {in_own_workspace(step("s", {"n"}, 2))}, 4)}, nets);
  CHECK(fetch<int64_t>("out") == std::vector<int64_t>{2});
  ExecutionStep shared = in_own_workspace(side_by_side(steps("o", {step("s", {"n"}, 3)})));
  shared.num_concurrent_instances = 1;
  run({shared}, nets);
  CHECK(fetch<int64_t>("out") == std::vector<int64_t>{3});
}

TEST_CASE_FIXTURE(Fixture, "an error names net, operator, the user's line and the step") {
  feed("x", {1, 2});
  feed("w", {1, 2, 3});
  PlanDef plan = plan_of({steps("outer", {step("inner", {"a", "bad", "b"})}), step("t", {"c"})},
                         {net("bad", {op("Relu", {"x"}, {"y"}), op("Sum", {"y", "w"}, {"z"})})});
  const Error found = error_of([&] { run_plan(workspace, plan, {{"train.py:3", "train.py:4"}}); });
  CHECK(found.location().net == "bad");
  CHECK(found.location().op_index == 1);
  CHECK(found.location().step == "inner");
  CHECK(std::string(found.what()) ==
        "Operator 1 (Sum) of net 'bad': input 0 (A) 'y' has shape (2,) but input 1 (A) 'w' has "
        "(3,); they must be the same\n  created at train.py:4\n  in step 'inner'");
  CHECK(actions.text() == "a");
}

TEST_CASE_FIXTURE(Fixture, "the first error ends the siblings and the plan") {
  Meeting meeting(2);
  actions.act["a"] = [&](int number, RunContext&) {
    if (number == 1) CHECK(meeting.wait());
    if (number == 2) fail(Code::kInvalidArgument, "boom");
  };
  actions.act["b"] = [&](int number, RunContext& context) {
    CHECK(meeting.wait());
    wait_until_cancelled(number, context);
  };
  const Error found =
      error({side_by_side(steps("o", {step("x", {"a"}, 10), step("y", {"b"})})), step("z", {"c"})});
  CHECK(found.text() == "boom");
  CHECK(found.location().step == "x");
  CHECK(actions.calls["a"] == 2);
  CHECK(actions.calls["c"] == 0);
  // Steps that never end are ended, too, between two nets.
  actions.calls.clear();
  feed_flag("stop", false);
  actions.act["b"] = nullptr;
  actions.act["a"] = [&](int, RunContext&) { fail(Code::kInvalidArgument, "boom"); };
  const Error endless =
      error({side_by_side(steps("o", {until("stop", step("y", {"b"})), step("x", {"a"})}))});
  CHECK(endless.location().step == "x");
}

TEST_CASE_FIXTURE(Fixture, "errors and reports") {
  // A report runs once more after an error of its step, as after any other end.
  actions.act["a"] = [&](int, RunContext&) { fail(Code::kInvalidArgument, "boom"); };
  CHECK(error({reporting("r", 1000, step("s", {"a", "b"}))}).text() == "boom");
  CHECK(actions.text() == "a r");
  // One that fails ends its step.
  feed_flag("stop", false);
  actions.act["a"] = nullptr;
  actions.act["r"] = [&](int, RunContext&) { fail(Code::kInvalidArgument, "no report"); };
  const Error found = error({reporting("r", 0, until("stop", step("s", {"a"})))});
  CHECK(found.text() == "no report");
  CHECK(found.location().net == "r");
  CHECK(found.location().step == "s");
}

TEST_CASE_FIXTURE(Fixture, "an interrupt of the host ends a plan, wherever its steps are") {
  feed_flag("stop", false);
  std::atomic<bool> begun{false};
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> asked_elsewhere{false};
  engine->hooks().interrupted = [&] {
    asked_elsewhere = asked_elsewhere || std::this_thread::get_id() != caller;
    return begun.load();
  };
  const auto cancelled = [&](ExecutionStep def) {
    begun = false;
    actions.act["a"] = [&](int, RunContext&) { begun = true; };
    CHECK(error({std::move(def), step("z", {"c"})}).code() == Code::kCancelled);
    CHECK(actions.calls["c"] == 0);
    actions.text();
  };
  const auto endless = [&](const char* name) { return until("stop", step("s", {name})); };
  cancelled(endless("a"));
  cancelled(steps("o", {endless("a")}));
  cancelled(reporting("r", 1000, endless("a")));
  CHECK(actions.calls["r"] == 0);
  cancelled(side_by_side(steps("o", {endless("a"), endless("b")})));
  actions.act["b"] = wait_until_cancelled;
  cancelled(side_by_side(steps("o", {endless("a"), endless("b")})));
  cancelled(reporting("r", 1000, side_by_side(steps("o", {endless("a"), endless("b")}))));
  CHECK_FALSE(asked_elsewhere);
}

TEST_CASE_FIXTURE(Fixture, "a plan in the background") {
  feed_flag("stop", false);
  {
    Meeting meeting(2);
    actions.act["a"] = [&](int number, RunContext&) {
      if (number == 1) meeting.wait();
    };
    BackgroundPlan endless(workspace, plan_of({until("stop", step("s", {"a"}))}), {});
    CHECK(meeting.wait());
    CHECK_FALSE(endless.done());
    CHECK(error_of([&] { endless.succeeded(); }).code() == Code::kFailedPrecondition);
    endless.cancel();
    CHECK(endless.done());
    CHECK(error_of([&] { endless.succeeded(); }).code() == Code::kCancelled);
  }
  {
    BackgroundPlan forgotten(workspace, plan_of({until("stop", step("s", {"a"}))}), {});
  }
  BackgroundPlan good(workspace, plan_of({step("s", {"b"})}), {});
  while (!good.done()) std::this_thread::sleep_for(1ms);
  CHECK(good.succeeded());
  BackgroundPlan bad(workspace, plan_of({step("s", {"nothing"})}), {});
  while (!bad.done()) std::this_thread::sleep_for(1ms);
  CHECK(error_of([&] { bad.succeeded(); }).code() == Code::kNotFound);
}

TEST_CASE_FIXTURE(Fixture, "a plan leaves no memory behind") {
  const size_t before = engine->allocator()->used();
  for (int round = 0; round < 2; round++) {
    feed("x", std::vector<float>(1000, 1));
    ExecutionStep threads = side_by_side(steps(
        "o", {in_own_workspace(step("x", {"n"})), reporting("n", 1000, step("y", {"n"}))}, 3));
    threads.num_concurrent_instances = 2;
    run({threads}, {net("n", {op("Copy", {"x"}, {"y"})})});
    workspace.reset();
    CHECK(engine->allocator()->used() == before);
  }
}
