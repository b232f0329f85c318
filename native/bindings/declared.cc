#include "bindings/declared.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <climits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/host.h"
#include "core/schema.h"

namespace caffe2::bindings {

namespace {

// The declared names of inputs or outputs.
struct Names {
  explicit Names(const nb::object& declared)
      : texts(nb::cast<std::vector<std::string>>(declared.attr("names"))),
        least(nb::cast<int>(declared.attr("least"))),
        most(declared.attr("most").is_none() ? INT_MAX : nb::cast<int>(declared.attr("most"))) {
    for (const std::string& text : texts) pointers.push_back(text.c_str());
  }

  const std::vector<std::string> texts;
  const int least, most;
  std::vector<const char*> pointers;
};

// In-place pairs (input, output).
struct Pairs {
  explicit Pairs(const nb::object& declared) {
    const auto pairs = nb::cast<std::vector<std::pair<uint8_t, uint8_t>>>(nb::list(declared));
    count = static_cast<int>(pairs.size());
    values.reset(new uint8_t[pairs.size()][2]);
    for (int i = 0; i < count; i++) {
      values[i][0] = pairs[i].first;
      values[i][1] = pairs[i].second;
    }
  }

  int count;
  std::unique_ptr<uint8_t[][2]> values;
};

Kind kind_of(const std::string& text) {
  const std::pair<const char*, Kind> kinds[] = {{"pure", Kind::kPure},
                                                {"random", Kind::kRandom},
                                                {"stateful", Kind::kStateful},
                                                {"control", Kind::kControl}};
  for (const auto& [name, kind] : kinds) {
    if (text == name) return kind;
  }
  return Kind::kIo;
}

uint32_t touches_of(const nb::object& declared) {
  uint32_t touches = 0;
  for (nb::handle item : declared) {
    const auto name = nb::cast<std::string>(item);
    touches |= name == "files" ? kTouchesFiles : name == "code" ? kTouchesCode : kTouchesNetwork;
  }
  return touches;
}

// A Declaration in the engine's terms, and what that points to.
class Declared {
 public:
  explicit Declared(const nb::object& declaration)
      : name_(nb::cast<std::string>(declaration.attr("name"))),
        inputs_(declaration.attr("inputs")),
        outputs_(declaration.attr("outputs")),
        any_type_(inputs_.texts.size(), 0),
        inplace_(declaration.attr("inplace")),
        enforced_(declaration.attr("enforced_inplace")) {
    schema.name = name_.c_str();
    schema.kind = kind_of(nb::cast<std::string>(declaration.attr("kind")));
    schema.min_inputs = inputs_.least;
    schema.max_inputs = inputs_.most;
    schema.min_outputs = outputs_.least;
    schema.max_outputs = outputs_.most;
    schema.input_names = inputs_.pointers.data();
    schema.n_input_names = static_cast<int>(inputs_.pointers.size());
    schema.output_names = outputs_.pointers.data();
    schema.n_output_names = static_cast<int>(outputs_.pointers.size());
    schema.type_masks = any_type_.data();
    schema.inplace = inplace_.values.get();
    schema.n_inplace = nb::cast<bool>(declaration.attr("inplace_any")) ? -1 : inplace_.count;
    schema.enforced_inplace = enforced_.values.get();
    schema.n_enforced = enforced_.count;
    schema.native = nb::cast<bool>(declaration.attr("native"));
    schema.blocks = nb::cast<bool>(declaration.attr("blocks"));
    schema.touches = touches_of(declaration.attr("touches"));
  }
  Declared(const Declared&) = delete;

  OperatorSchema schema{};

 private:
  const std::string name_;
  const Names inputs_, outputs_;
  const std::vector<uint32_t> any_type_;
  const Pairs inplace_, enforced_;
};

}  // namespace

void set_declarations(nb::object find) {
  // Nets hold pointers to schemas, so these stay until the process ends. Guarded by the GIL.
  static auto* known = new std::map<std::string, Declared, std::less<>>;
  set_schema_source([held = hold(std::move(find))](std::string_view type) {
    const OperatorSchema* schema = nullptr;
    in_python([&] {
      auto it = known->find(type);
      if (it == known->end()) {
        const nb::object declaration = (*held)(nb::bytes(type.data(), type.size()));
        if (declaration.is_none()) return;
        it = known->try_emplace(std::string(type), declaration).first;
      }
      schema = &it->second.schema;
    });
    return schema;
  });
}

}  // namespace caffe2::bindings
