// What the engine holds and asks of the interpreter.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/fork.h"

namespace caffe2::bindings {

namespace nb = nanobind;

// Calls of the engine that run without the GIL. At the end of the process they are cancelled and
// waited for while the interpreter is still whole; their threads, daemons all, then wait for the
// end of the process instead of coming back into an interpreter that is being taken down.
class Calls {
 public:
  static Calls& instance() {
    static auto* calls = new Calls;  // never destroyed: threads wait in it
    return *calls;
  }

  bool closing() const { return closing_; }

  // With the GIL held. Runs `call` without it.
  template <class Call>
  std::invoke_result_t<Call> run(const Call& call) {
    nb::gil_scoped_release release;
    enter();
    struct Leave {
      Calls& calls;
      ~Leave() { calls.leave(); }
    } leave{*this};
    return call();
  }

  // Counts, until it goes away, something of a thread that never comes back to the interpreter.
  std::shared_ptr<void> count() {
    enter();
    return std::shared_ptr<void>(this, [](void* calls) { static_cast<Calls*>(calls)->subtract(); });
  }

  // By the interpreter's atexit, with the GIL held.
  void close() {
    closer_ = std::this_thread::get_id();
    closing_ = true;
    nb::gil_scoped_release release;
    std::unique_lock lock(mutex_.plain());
    // An operator that takes longer than this is left to the end of the process.
    done_.get().wait_for(lock, std::chrono::seconds(5), [&] { return active() <= 0; });
  }

 private:
  void enter() {
    std::unique_lock lock(mutex_.plain());
    if (closing_) stay(lock);
    active()++;
  }

  void leave() {
    subtract();
    if (!closing_) return;
    std::unique_lock lock(mutex_.plain());
    stay(lock);
  }

  void subtract() {
    std::lock_guard lock(mutex_);
    if (--active() == 0) done_.get().notify_all();
  }

  // In the child of a fork, the calls of other threads are gone.
  int& active() {
    if (born_ != fork_count()) {
      born_ = fork_count();
      active_ = 0;
    }
    return active_;
  }

  void stay(std::unique_lock<std::mutex>& lock) {
    if (std::this_thread::get_id() == closer_) return;
    never_.get().wait(lock, [] { return false; });
  }

  ForkMutex mutex_;
  ForkCondition done_, never_;
  int active_ = 0, born_ = fork_count();
  std::atomic<bool> closing_{false};
  std::thread::id closer_;
};

// A Python object that may be copied and let go of on any thread, without the GIL. What is left
// at the end of the interpreter stays where it is.
using HeldObject = std::shared_ptr<const nb::object>;

inline HeldObject hold(nb::object object) {
  return HeldObject(new nb::object(std::move(object)), [](const nb::object* held) {
    if (!nb::is_alive() || Calls::instance().closing()) return;
    nb::gil_scoped_acquire gil;
    delete held;
  });
}

// Runs `call` with the GIL; what Python raises in it becomes an error of the engine.
template <class Call>
void in_python(const Call& call) {
  nb::gil_scoped_acquire gil;
  try {
    call();
  } catch (const nb::python_error& error) {
    // Its destructor needs the interpreter: turned into an engine error while we hold it.
    const std::string kind = nb::cast<std::string>(error.type().attr("__name__"));
    throw Error(Code::kInvalidArgument, kind + ": " + nb::cast<std::string>(nb::str(error.value())),
                {}, hold(nb::borrow(error.value())));
  }
}

}  // namespace caffe2::bindings
