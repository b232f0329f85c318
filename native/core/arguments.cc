#include "core/arguments.h"

#include <cmath>
#include <limits>

#include "core/error.h"

namespace caffe2 {

const Argument* Arguments::given(std::string_view name) const {
  for (const Argument& arg : def_.arg) {
    if (arg.name && *arg.name == name) return &arg;
  }
  return nullptr;
}

const ArgumentSchema& Arguments::declared(std::string_view name) const {
  if (const ArgumentSchema* schema = schema_.find_argument(name)) return *schema;
  fail(Code::kInternal, "a kernel asks for argument '", name, "', which nobody declared");
}

int64_t Arguments::integer(std::string_view name) const {
  const ArgumentSchema& schema = declared(name);
  const Argument* arg = given(name);
  if (arg == nullptr) return schema.default_int;
  return arg->i ? *arg->i : static_cast<int64_t>(arg->f.value_or(0));
}

int Arguments::int32(std::string_view name) const {
  const int64_t value = integer(name);
  CAFFE2_ENFORCE(
      value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max(),
      "argument '", name, "' = ", value, " does not fit in 32 bits");
  return static_cast<int>(value);
}

float Arguments::real(std::string_view name) const {
  const ArgumentSchema& schema = declared(name);
  const Argument* arg = given(name);
  if (arg == nullptr) return static_cast<float>(schema.default_float);
  return arg->f ? *arg->f : static_cast<float>(arg->i.value_or(0));
}

std::string Arguments::text(std::string_view name) const {
  const ArgumentSchema& schema = declared(name);
  const Argument* arg = given(name);
  if (arg != nullptr) return std::string(arg->s.value_or(""));
  return schema.default_string != nullptr ? schema.default_string : "";
}

std::vector<int64_t> Arguments::integers(std::string_view name) const {
  const ArgumentSchema& schema = declared(name);
  const Argument* arg = given(name);
  if (arg != nullptr) return {arg->ints.begin(), arg->ints.end()};
  return {schema.default_ints, schema.default_ints + schema.n_default_ints};
}

std::vector<float> Arguments::reals(std::string_view name) const {
  const ArgumentSchema& schema = declared(name);
  const Argument* arg = given(name);
  std::vector<float> out;
  if (arg == nullptr) {
    out.assign(schema.default_floats, schema.default_floats + schema.n_default_floats);
  } else if (!arg->floats.empty()) {
    out = arg->floats.values();
  } else {
    out.assign(arg->ints.begin(), arg->ints.end());
  }
  return out;
}

const NetDef* Arguments::net(std::string_view name) const {
  declared(name);
  const Argument* arg = given(name);
  return arg != nullptr && arg->n ? &*arg->n : nullptr;
}

std::vector<std::string> Arguments::texts(std::string_view name) const {
  declared(name);
  const Argument* arg = given(name);
  return arg != nullptr ? arg->strings : std::vector<std::string>();
}

}  // namespace caffe2
