// The Python module caffe2._native: the engine as caffe2/runtime uses it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string_view>

#include "bindings/arrays.h"
#include "bindings/databases.h"
#include "bindings/declared.h"
#include "bindings/host.h"
#include "bindings/models.h"
#include "bindings/prepared.h"
#include "bindings/reference.h"
#include "core/int8_tensor.h"
#include "core/near_names.h"
#include "core/plan.h"
#include "core/registry.h"
#include "core/serialize.h"
#include "core/wire.h"

namespace caffe2::bindings {
namespace {

// A value of the host language in a blob.
class PythonObject : public Object {
 public:
  explicit PythonObject(nb::object value) : value_(hold(std::move(value))) {}
  const char* kind() const override { return "a Python object"; }
  const nb::object& value() const { return *value_; }

 private:
  const HeldObject value_;
};

// The name of the array type that a tensor is fetched as.
const char* numpy_name(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return "float32";
    case DataType::kDouble:
      return "float64";
    case DataType::kByte:
      return "uint8";
    case DataType::kString:
      return "object";
    default:
      return type_name(type);
  }
}

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// Bytes outside of ASCII as \xNN.
std::string printable(std::string_view bytes) {
  std::string out;
  for (const char c : bytes.substr(0, 60)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      constexpr const char* kDigits = "0123456789abcdef";
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

// Names come back to Python as text. Those of nets in arguments are left out: only the engine reads
// them.
void require_text(const std::string& name, const char* what) {
  CAFFE2_ENFORCE(is_utf8(name), "the ", what, " is no UTF-8 text: ", printable(name));
}

void require_names(const OperatorDef& op) {
  require_text(op.type.value_or(""), "type of an operator");
  for (const std::string& name : op.input) require_text(name, "name of an input");
  for (const std::string& name : op.output) require_text(name, "name of an output");
}

void require_names(const NetDef& net) {
  require_text(net.name.value_or(""), "name of the net");
  for (const OperatorDef& op : net.op) require_names(op);
}

void require_names(const PlanDef& plan) {
  for (const NetDef& net : plan.network) require_names(net);
}

template <class Message>
Message parse_named(const nb::bytes& bytes, const ParseOptions& options = {}) {
  auto message = parse<Message>(view(bytes), options);
  require_names(message);
  return message;
}

void feed_array(Workspace& workspace, const std::string& name, const InputArray& array) {
  // In memory of its own: an operator may be reading what the blob holds now.
  Tensor tensor = to_tensor(array, workspace.engine());
  workspace.create_blob(name)->feed(std::move(tensor));
}

nb::object fetch(Workspace& workspace, const std::string& name) {
  const BlobValue value = workspace.get_blob(name)->get();
  if (value.is_tensor()) return to_array(value.tensor);
  if (auto text = value.as<Text>()) return nb::bytes(text->value.data(), text->value.size());
  if (auto object = value.as<PythonObject>()) return object->value();
  if (value.empty()) fail(Code::kFailedPrecondition, "blob '", name, "' holds nothing");
  // In the original's words: who fetches all blobs there are gets a text for these.
  const std::string text = concat(name, ", a C++ native class of type ", value.kind(), ".");
  return nb::bytes(text.data(), text.size());
}

// Elements, scale and zero point.
nb::tuple fetch_int8(Workspace& workspace, const std::string& name) {
  const auto found = workspace.get_blob(name)->get().as<Int8Tensor>();
  CAFFE2_ENFORCE(found, "blob '", name, "' holds no Int8 tensor");
  return nb::make_tuple(to_array(found->values), found->scale, found->zero_point);
}

void feed_int8(Workspace& workspace, const std::string& name, const InputArray& array, float scale,
               int32_t zero_point) {
  Tensor values = to_tensor(array, workspace.engine());
  CAFFE2_ENFORCE(values.type() == DataType::kUInt8 || values.type() == DataType::kInt32,
                 "an Int8 tensor has elements of type uint8, or int32 for biases, not ",
                 type_name(values.type()));
  CAFFE2_ENFORCE(scale > 0, "an Int8 tensor has a scale above 0, not ", scale);
  workspace.create_blob(name)->set(
      std::make_shared<Int8Tensor>(std::move(values), scale, zero_point));
}

nb::object view_blob(Workspace& workspace, const std::string& name) {
  const std::shared_ptr<Blob> blob = workspace.get_blob(name);
  BlobValue value = blob->get_shared();
  CAFFE2_ENFORCE(value.is_tensor(), "blob '", name, "' holds no tensor");
  if (value.tensor.storage()->lent()) {  // nobody writes into that
    value.tensor = value.tensor.copy();
    blob->set(value);
  }
  return view_array(value.tensor);
}

// Its end may wait for the lock of the interpreter. At the end of the process it is cancelled with
// the calls, and one that goes on nevertheless is left alone.
class PythonBackgroundPlan {
 public:
  PythonBackgroundPlan(Workspace& workspace, PlanDef def, PlanSites sites) {
    nb::gil_scoped_release release;
    plan_ = std::make_unique<BackgroundPlan>(
        workspace, std::move(def), std::move(sites), [] { return Calls::instance().closing(); },
        Calls::instance().count());
  }
  ~PythonBackgroundPlan() {
    if (Calls::instance().closing() && !plan_->done()) {
      (void)plan_.release();
    } else {
      cancel();
    }
  }
  bool done() const { return plan_->done(); }
  bool succeeded() const { return plan_->succeeded(); }
  void cancel() {
    nb::gil_scoped_release release;
    plan_->cancel();
  }

 private:
  std::unique_ptr<BackgroundPlan> plan_;
};

// Tells Python of an operator that waits for long. Called on any thread, without the GIL.
void report_stall(const HeldObject& report, const std::string& text) {
  if (Calls::instance().closing()) return;
  nb::gil_scoped_acquire gil;
  try {
    (*report)(nb::bytes(text.data(), text.size()));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("a report of a stall");
  }
}

void bind_error(nb::module_& m) {
  static PyObject* type = PyErr_NewExceptionWithDoc(
      "caffe2._native.EngineError", "An error of the engine, and where it happened.",
      PyExc_RuntimeError, nullptr);
  m.attr("EngineError") = nb::borrow(type);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      // A run that the user interrupted: the interrupt itself is what is raised.
      if (error.code() == Code::kCancelled && PyErr_Occurred() != nullptr) return;
      const auto cause = std::static_pointer_cast<const nb::object>(error.cause());
      if (cause && PyObject_IsInstance(cause->ptr(), PyExc_Exception) == 0) {
        // KeyboardInterrupt, SystemExit: no error of the operator.
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(cause->ptr())), cause->ptr());
        return;
      }
      const nb::bytes text(error.what(), std::strlen(error.what()));
      nb::object instance = nb::borrow(type)(text.attr("decode")("utf-8", "replace"));
      if (cause) PyException_SetCause(instance.ptr(), cause->inc_ref().ptr());
      instance.attr("code") = code_name(error.code());
      instance.attr("operator") = error.location().op_type;
      instance.attr("index") = error.location().op_index;
      instance.attr("net") = error.location().net;
      instance.attr("site") = error.location().site;
      instance.attr("step") = error.location().step;
      PyErr_SetObject(type, instance.ptr());
    }
  });
}

void check_threads(int threads) {
  CAFFE2_ENFORCE(threads >= 0 && threads <= 1024, "threads = ", threads,
                 " is not in 0 (all cores) to 1024");
}

void bind_engine(nb::module_& m) {
  nb::class_<Engine>(m, "Engine")
      .def(
          "__init__",
          [](Engine* self, int threads, std::string isa, size_t memory_limit, std::string kernels,
             nb::object on_stall, nb::object print, nb::object open_database) {
            check_threads(threads);
            new (self) Engine({threads, std::move(isa), memory_limit, std::move(kernels)});
            self->hooks().interrupted = [] {
              if (Calls::instance().closing()) return true;
              nb::gil_scoped_acquire gil;
              return PyErr_CheckSignals() != 0;
            };
            self->hooks().open_database = database_opener(std::move(open_database));
            if (!print.is_none()) {
              self->hooks().print = [held = hold(std::move(print))](const std::string& text) {
                in_python([&] { (*held)(nb::bytes(text.data(), text.size())); });
              };
            }
            if (on_stall.is_none()) return;
            self->hooks().on_stall = [report = hold(std::move(on_stall))](const std::string& text) {
              report_stall(report, text);
            };
          },
          nb::arg("threads") = 0, nb::arg("isa") = "auto", nb::arg("memory_limit") = 0,
          nb::arg("kernels") = "", nb::arg("on_stall") = nb::none(), nb::arg("print") = nb::none(),
          nb::arg("open_database") = nb::none())
      .def_prop_rw(
          "stall_seconds", [](Engine& e) { return e.hooks().stall_seconds.load(); },
          [](Engine& e, double seconds) { e.hooks().stall_seconds = seconds; })
      .def_prop_rw(
          "threads", [](Engine& e) { return e.pool().threads(); },
          [](Engine& e, int threads) {
            check_threads(threads);
            Calls::instance().run([&] { e.pool().resize(threads); });
          })
      .def_prop_ro("isa", [](Engine& e) { return kernels::isa_name(e.isa()); })
      .def_prop_ro("memory_used", [](Engine& e) { return e.allocator()->used(); })
      .def_prop_ro("memory_peak", [](Engine& e) { return e.allocator()->peak(); })
      .def_prop_rw(
          "memory_limit", [](Engine& e) { return e.allocator()->limit(); },
          [](Engine& e, size_t bytes) { e.allocator()->set_limit(bytes); })
      .def_prop_ro("allocations", [](Engine& e) { return e.allocator()->calls(); })
      .def("fail_at_allocation", [](Engine& e, int64_t n) { e.allocator()->fail_at_call(n); });
}

void bind_workspace(nb::module_& m) {
  nb::class_<PreparedRun>(m, "PreparedRun").def("run", &PreparedRun::run, nb::arg("arrays"));
  nb::class_<Workspace>(m, "Workspace", nb::is_weak_referenceable())
      .def(
          "__init__",
          [](Workspace* self, std::shared_ptr<Engine> engine, Workspace* parent) {
            if (parent != nullptr) {
              new (self) Workspace(parent, parent->next_seed());
            } else {
              new (self) Workspace(std::move(engine));
            }
          },
          nb::arg("engine"), nb::arg("parent").none() = nb::none(), nb::keep_alive<1, 3>())
      .def("blobs", &Workspace::blob_names)
      .def("has_blob", [](Workspace& w, const std::string& n) { return w.find_blob(n) != nullptr; })
      .def("create_blob", [](Workspace& w, const std::string& n) { w.create_blob(n); })
      .def("reset_blob", [](Workspace& w, const std::string& n) { w.get_blob(n)->clear(); })
      .def("delete_blob", [](Workspace& w, const std::string& n) { return w.remove_blob(n); })
      .def("share_blob", [](Workspace& w, Workspace& from,
                            const std::string& name) { w.forward_blob(name, from.get_blob(name)); })
      .def("blob_kind",
           [](Workspace& w, const std::string& n) { return w.get_blob(n)->get().kind(); })
      .def("reset", &Workspace::reset)
      .def("feed", feed_array, nb::arg("name"), nb::arg("value"))
      .def("feed_text",
           [](Workspace& w, const std::string& name, const nb::bytes& value) {
             w.create_blob(name)->set(std::make_shared<Text>(std::string(view(value))));
           })
      .def("feed_strings",
           [](Workspace& w, const std::string& name, const nb::object& array) {
             Tensor tensor = to_string_tensor(array, w.engine());
             w.create_blob(name)->set(std::move(tensor));
           })
      .def("feed_object",
           [](Workspace& w, const std::string& name, nb::object value) {
             w.create_blob(name)->set(std::make_shared<PythonObject>(std::move(value)));
           })
      .def("fetch", fetch)
      .def("fetch_int8", fetch_int8)
      .def("feed_int8", feed_int8, nb::arg("name"), nb::arg("values"), nb::arg("scale"),
           nb::arg("zero_point"))
      .def("view", view_blob)
      .def("tensor_spec",
           [](Workspace& w, const std::string& name) -> nb::object {
             const BlobValue value = w.get_blob(name)->get();
             if (!value.is_tensor()) return nb::none();
             nb::list shape;
             for (const int64_t dim : value.tensor.shape()) shape.append(dim);
             return nb::make_tuple(shape, numpy_name(value.tensor.type()));
           })
      .def("serialize",
           [](Workspace& w, const std::string& name) {
             const std::string bytes = serialize_blob(name, w.get_blob(name)->get());
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("deserialize",
           [](Workspace& w, const std::string& name, const nb::bytes& bytes) {
             BlobValue value = deserialize_blob(view(bytes), w.engine());
             w.create_blob(name)->set(std::move(value));
           })
      .def(
          "run_operator",
          [](Workspace& w, const nb::bytes& def, std::string site) {
            Calls::instance().run(
                [&] { w.run_operator_once(parse_named<OperatorDef>(def), std::move(site)); });
          },
          nb::arg("op_def"), nb::arg("site") = "")
      .def(
          "create_net",
          [](Workspace& w, const nb::bytes& def, std::vector<std::string> sites, bool overwrite,
             bool hide_intermediates, bool own_inputs) {
            Calls::instance().run([&] {
              w.create_net(parse_named<NetDef>(def), std::move(sites), overwrite,
                           {hide_intermediates, own_inputs});
            });
          },
          nb::arg("net_def"), nb::arg("sites") = std::vector<std::string>(),
          nb::arg("overwrite") = false, nb::arg("hide_intermediates") = false,
          nb::arg("own_inputs") = false)
      .def(
          "run_net",
          [](Workspace& w, const std::string& name) {
            Calls::instance().run([&] { w.get_net(name)->run(); });
          },
          nb::arg("name"))
      .def("cancel_net", [](Workspace& w, const std::string& name) { w.get_net(name)->cancel(); })
      .def(
          "prepare",
          [](Workspace& w, const std::string& net, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs) {
            return new PreparedRun(w, net, inputs, outputs);
          },
          nb::arg("net"), nb::arg("inputs"), nb::arg("outputs"), nb::keep_alive<0, 1>(),
          nb::rv_policy::take_ownership)
      .def(
          "observe_net",
          [](Workspace& w, const std::string& name, nb::object observer) {
            const auto net = w.get_net(name);
            if (observer.is_none()) return net->observe(nullptr);
            net->observe([held = hold(std::move(observer))](int op, bool done) {
              in_python([&] { (*held)(op, done); });
            });
          },
          nb::arg("name"), nb::arg("observer").none())
      .def(
          "time_operators",
          [](Workspace& w, const std::string& name, int runs) {
            std::vector<double> times;
            Calls::instance().run([&] { times = w.get_net(name)->time_operators(runs); });
            return times;
          },
          nb::arg("name"), nb::arg("runs"))
      .def(
          "run_net_once",
          [](Workspace& w, const nb::bytes& def, std::vector<std::string> sites) {
            Calls::instance().run([&] {
              ParseOptions options;
              options.borrow = true;  // the bytes outlive the net
              w.run_net_once(parse_named<NetDef>(def, options), std::move(sites));
            });
          },
          nb::arg("net_def"), nb::arg("sites") = std::vector<std::string>())
      .def(
          "run_plan",
          [](Workspace& w, const nb::bytes& def, const PlanSites& sites) {
            Calls::instance().run([&] { run_plan(w, parse_named<PlanDef>(def), sites); });
          },
          nb::arg("plan_def"), nb::arg("sites") = PlanSites())
      .def("delete_net", [](Workspace& w, const std::string& n) { return w.remove_net(n); })
      .def("nets", &Workspace::net_names)
      .def("net_def",
           [](Workspace& w, const std::string& name) {
             const std::string bytes = serialize(w.get_net(name)->def());
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("set_reference",
           [](Workspace& w, nb::object callable) {
             w.set_reference_factory(reference_factory(std::move(callable)));
           })
      .def_prop_rw("root_folder", &Workspace::root_folder, &Workspace::set_root_folder)
      .def("allow_files",
           [](Workspace& w, bool allowed) {
             w.allow(allowed ? w.allowed() | kTouchesFiles : w.allowed() & ~kTouchesFiles);
           })
      .def_prop_rw("random_seed", &Workspace::random_seed, &Workspace::set_random_seed);
}

void bind_plans(nb::module_& m) {
  nb::class_<PythonBackgroundPlan>(m, "BackgroundPlan")
      .def(
          "__init__",
          [](PythonBackgroundPlan* self, Workspace& workspace, const nb::bytes& def,
             PlanSites sites) {
            new (self) PythonBackgroundPlan(workspace, parse_named<PlanDef>(def), std::move(sites));
          },
          nb::arg("workspace"), nb::arg("plan_def"), nb::arg("sites") = PlanSites(),
          nb::keep_alive<1, 2>())
      .def("is_done", &PythonBackgroundPlan::done)
      .def("is_succeeded", &PythonBackgroundPlan::succeeded)
      .def("cancel", &PythonBackgroundPlan::cancel);
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "The native engine. Use caffe2.runtime or caffe2.python instead of this module.";
  nb::set_leak_warnings(false);
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function([] { Calls::instance().close(); }));
  bind_error(m);
  bind_engine(m);
  bind_workspace(m);
  bind_plans(m);
  bind_models(m);
  m.def("set_declarations", set_declarations, nb::arg("find"));
  bind_databases(m);
  m.def("operator_types", [] {
    std::vector<std::string> names;
    for (int i = 0; i < kOperatorSchemaCount; i++) names.emplace_back(kOperatorSchemas[i].name);
    return names;
  });
  m.def("registered_kernels",
        [](const std::string& type) { return KernelRegistry::builtin().describe(type); });
  m.def("instruction_sets", [] {
    std::vector<std::string> names;
    for (kernels::Isa isa : kernels::kAllIsas) {
      if (kernels::supported(isa)) names.emplace_back(kernels::isa_name(isa));
    }
    return names;
  });
}

}  // namespace caffe2::bindings
