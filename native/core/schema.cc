#include "core/schema.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <utility>
#include <vector>

#include "core/arguments.h"
#include "core/error.h"
#include "core/messages.h"
#include "core/near_names.h"

namespace caffe2 {

std::string quoted(std::string_view name) {
  constexpr size_t kMost = 200;
  if (name.size() <= kMost) return "'" + std::string(name) + "'";
  size_t end = kMost;
  while (end > 0 && (name[end] & 0xc0) == 0x80) end--;  // not inside a character
  return "'" + std::string(name.substr(0, end)) + "...' (" + std::to_string(name.size()) +
         " bytes)";
}

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char* end = p + text.size();
  while (p < end) {
    const int extra = *p < 0x80                 ? 0
                      : *p >= 0xc2 && *p < 0xe0 ? 1
                      : *p >= 0xe0 && *p < 0xf0 ? 2
                      : *p >= 0xf0 && *p < 0xf5 ? 3
                                                : -1;
    if (extra < 0 || end - p <= extra) return false;
    // The second byte excludes longer forms than needed, surrogates and what is beyond U+10FFFF.
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] >= 0xa0) ||
        (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] >= 0x90)) {
      return false;
    }
    for (int i = 1; i <= extra; i++) {
      if ((p[i] & 0xc0) != 0x80) return false;
    }
    p += extra + 1;
  }
  return true;
}

int edit_distance(std::string_view a, std::string_view b) {
  // By rows: of the last two letters of a, and of this one.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); i++) {
    before.swap(last);
    last.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); j++) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

// A '#' in a declared name stands for any number.
static bool is_named(std::string_view name, std::string_view declared) {
  const size_t mark = declared.find('#');
  if (mark == std::string_view::npos) return name == declared;
  const size_t end = name.find_first_not_of("0123456789", mark);
  return end != std::string_view::npos && end > mark &&
         name.substr(0, mark) == declared.substr(0, mark) &&
         name.substr(end) == declared.substr(mark + 1);
}

const ArgumentSchema* OperatorSchema::find_argument(std::string_view wanted) const {
  for (int i = 0; i < n_args; i++) {
    if (is_named(wanted, args[i].name)) return &args[i];
  }
  return nullptr;
}

const char* OperatorSchema::input_name(int i) const {
  return n_input_names == 0 ? "" : input_names[std::min(i, n_input_names - 1)];
}

uint32_t OperatorSchema::type_mask(int i) const {
  return n_input_names == 0 ? 0 : type_masks[std::min(i, n_input_names - 1)];
}

static SchemaSource& schema_source() {
  static SchemaSource source;
  return source;
}

void set_schema_source(SchemaSource source) { schema_source() = std::move(source); }

const OperatorSchema* find_schema(std::string_view type) {
  const OperatorSchema* end = kOperatorSchemas + kOperatorSchemaCount;
  const OperatorSchema* it = std::lower_bound(
      kOperatorSchemas, end, type,
      [](const OperatorSchema& s, std::string_view name) { return s.name < name; });
  if (it != end && type == it->name) return it;
  return schema_source() ? schema_source()(type) : nullptr;
}

uint32_t touched_by(const OperatorDef& def, const OperatorSchema& schema) {
  if (schema.touches_if == nullptr) return schema.touches;
  return Arguments(def, schema).boolean(schema.touches_if) ? schema.touches : 0;
}

std::string near_operators(std::string_view type) {
  std::vector<const char*> names;
  for (int i = 0; i < kOperatorSchemaCount; i++) names.push_back(kOperatorSchemas[i].name);
  return near_names(type, names);
}

namespace {

std::string count_text(int min, int max) {
  if (min == max) return std::to_string(min);
  if (max == INT_MAX) return std::to_string(min) + " or more";
  return std::to_string(min) + " to " + std::to_string(max);
}

void verify_count(const char* what, int given, int min, int max) {
  CAFFE2_ENFORCE(given >= min && given <= max, "it has ", given, " ", what,
                 "(s); allowed: ", count_text(min, max));
}

// A pair of two names that stand for many goes on: (1, 0) is also (2, 1), (3, 2), ...
bool contains(const OperatorSchema& schema, const uint8_t (*pairs)[2], int n, int input,
              int output) {
  const bool many = schema.max_inputs == INT_MAX && schema.max_outputs == INT_MAX;
  for (int i = 0; i < n; i++) {
    const int step = input - pairs[i][0];
    if (output - pairs[i][1] != step) continue;
    if (step == 0) return true;
    if (step > 0 && many && pairs[i][0] >= schema.n_input_names - 1 &&
        pairs[i][1] >= schema.n_output_names - 1) {
      return true;
    }
  }
  return false;
}

void verify_inplace(const OperatorDef& def, const OperatorSchema& schema) {
  for (int o = 0; o < static_cast<int>(def.output.size()); o++) {
    for (int other = 0; other < o; other++) {
      CAFFE2_ENFORCE(def.output[o] != def.output[other], "outputs ", other, " and ", o,
                     " are the same blob '", def.output[o], "'");
    }
    for (int i = 0; i < static_cast<int>(def.input.size()); i++) {
      const bool enforced = contains(schema, schema.enforced_inplace, schema.n_enforced, i, o);
      if (def.input[i] != def.output[o]) {
        CAFFE2_ENFORCE(!enforced, "output ", o, " must be the blob of input ", i, " ('",
                       def.input[i], "'), but is '", def.output[o], "'");
      } else {
        CAFFE2_ENFORCE(enforced || schema.allows_inplace(i, o), "blob '", def.output[o],
                       "' is both input ", i, " and output ", o,
                       ", and this operator cannot run in-place there");
      }
    }
  }
}

const char* kind_text(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::kInt:
      return "an integer";
    case ArgumentKind::kFloat:
      return "a number";
    case ArgumentKind::kBool:
      return "a boolean (0 or 1)";
    case ArgumentKind::kString:
      return "a string";
    case ArgumentKind::kInts:
      return "a list of integers";
    case ArgumentKind::kFloats:
      return "a list of numbers";
    case ArgumentKind::kStrings:
      return "a list of strings";
    case ArgumentKind::kTensor:
      return "a tensor";
    case ArgumentKind::kNet:
      return "a net";
    case ArgumentKind::kNets:
      return "a list of nets";
    case ArgumentKind::kAny:
      return "a number or a string";
    case ArgumentKind::kAnys:
      return "a list of numbers or of strings";
  }
  return "a value";
}

bool has_kind(const Argument& arg, ArgumentKind kind) {
  const bool empty = !arg.i && !arg.f && !arg.s && !arg.t && !arg.n && arg.nets.empty();
  // The original takes a single number for an empty list, and saved nets have such ones.
  const bool number = !arg.s && !arg.t && !arg.n && arg.nets.empty();
  const bool no_ints = arg.ints.empty(), no_floats = arg.floats.empty(),
             no_strings = arg.strings.empty();
  switch (kind) {
    case ArgumentKind::kInt:
      return arg.i || (arg.f && std::nearbyint(*arg.f) == *arg.f && std::fabs(*arg.f) < 1e15f);
    case ArgumentKind::kFloat:
      return arg.f || arg.i;
    case ArgumentKind::kBool:
      return arg.i && (*arg.i == 0 || *arg.i == 1);
    case ArgumentKind::kString:
      return arg.s.has_value();
    case ArgumentKind::kInts:
      return number && no_floats && no_strings;
    case ArgumentKind::kFloats:
      return number && (no_floats || no_ints) && no_strings;
    case ArgumentKind::kStrings:
      return empty && no_ints && no_floats;
    case ArgumentKind::kTensor:
      return arg.t != nullptr;
    case ArgumentKind::kNet:
      return arg.n != nullptr || arg.s;  // or quoted text
    case ArgumentKind::kNets:
      return !arg.i && !arg.f && !arg.s;
    case ArgumentKind::kAny:
      return arg.i || arg.f || arg.s;
    case ArgumentKind::kAnys:
      return empty && no_ints + no_floats + no_strings >= 2;
  }
  return false;
}

// Whole numbers are written as such.
std::string number_text(double value) {
  if (std::nearbyint(value) == value && std::fabs(value) < 9e18) {
    return std::to_string(static_cast<int64_t>(value));
  }
  return concat(value);
}

template <class T>
void verify_range(const ArgumentSchema& schema, T value) {
  const double number = static_cast<double>(value);
  if (schema.has_min) {
    CAFFE2_ENFORCE(number >= schema.min, "argument '", schema.name, "' = ", value,
                   " is below the least allowed value ", number_text(schema.min));
  }
  if (schema.has_max) {
    CAFFE2_ENFORCE(number <= schema.max, "argument '", schema.name, "' = ", value,
                   " is above the largest allowed value ", number_text(schema.max));
  }
}

bool is_choice(std::string_view choices, std::string_view value) {
  while (!choices.empty()) {
    const size_t blank = choices.find(' ');
    if (choices.substr(0, blank) == value) return true;
    choices = blank == std::string_view::npos ? "" : choices.substr(blank + 1);
  }
  return false;
}

void verify_argument(const Argument& arg, const ArgumentSchema& schema) {
  CAFFE2_ENFORCE(has_kind(arg, schema.kind), "argument '", schema.name, "' must be ",
                 kind_text(schema.kind));
  if (schema.kind == ArgumentKind::kInt || schema.kind == ArgumentKind::kFloat) {
    if (arg.i) {
      verify_range(schema, *arg.i);
    } else {
      verify_range(schema, *arg.f);
    }
  }
  if (schema.has_min || schema.has_max) {
    for (const int64_t value : arg.ints) verify_range(schema, value);
    for (size_t i = 0; i < arg.floats.size(); i++) verify_range(schema, arg.floats[i]);
  }
  if (schema.choices != nullptr && arg.s) {
    CAFFE2_ENFORCE(is_choice(schema.choices, *arg.s), "argument '", schema.name, "' = '", *arg.s,
                   "' is not one of: ", schema.choices);
  }
}

}  // namespace

bool OperatorSchema::allows_inplace(int input, int output) const {
  return n_inplace < 0 || contains(*this, inplace, n_inplace, input, output);
}

void verify(const OperatorDef& def, const OperatorSchema& schema) {
  verify_count("input", static_cast<int>(def.input.size()), schema.min_inputs, schema.max_inputs);
  verify_count("output", static_cast<int>(def.output.size()), schema.min_outputs,
               schema.max_outputs);
  verify_inplace(def, schema);
  for (size_t i = 0; i < def.arg.size(); i++) {
    const Argument& arg = def.arg[i];
    const ArgumentSchema* declared = arg.name ? schema.find_argument(*arg.name) : nullptr;
    if (declared == nullptr) continue;
    verify_argument(arg, *declared);
    for (size_t k = 0; k < i; k++) {
      CAFFE2_ENFORCE(def.arg[k].name != arg.name || serialize(def.arg[k]) == serialize(arg),
                     "argument '", declared->name, "' is given twice with different contents");
    }
  }
  for (int i = 0; i < schema.n_args; i++) {
    const ArgumentSchema& wanted = schema.args[i];
    if (!wanted.required) continue;
    const bool given = std::any_of(def.arg.begin(), def.arg.end(), [&](const Argument& arg) {
      return arg.name && *arg.name == wanted.name;
    });
    CAFFE2_ENFORCE(given, "argument '", wanted.name, "' is required");
  }
}

}  // namespace caffe2
