// What the engine knows of each operator: the table generated from the declarations of caffe2/ops.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace caffe2 {

struct OperatorDef;

// kAny: an integer, a number or a string, as given; kAnys: a list of them.
enum class ArgumentKind {
  kInt,
  kFloat,
  kBool,
  kString,
  kInts,
  kFloats,
  kStrings,
  kTensor,
  kNet,
  kNets,
  kAny,
  kAnys
};
enum class Kind { kPure, kRandom, kStateful, kControl, kIo };

// kTouchesCode: runs code of the host.
enum Touches : uint32_t { kTouchesFiles = 1, kTouchesNetwork = 2, kTouchesCode = 4 };
inline constexpr uint32_t kTouchesAll = kTouchesFiles | kTouchesNetwork | kTouchesCode;

struct ArgumentSchema {
  const char* name;
  ArgumentKind kind;
  bool required;
  bool has_min, has_max;
  double min, max;
  const char* choices;  // separated by blanks, or nullptr
  int64_t default_int;
  double default_float;
  const char* default_string;  // nullptr: empty
  const int64_t* default_ints;
  int n_default_ints;
  const double* default_floats;
  int n_default_floats;
};

struct OperatorSchema {
  const char* name;
  Kind kind;
  int min_inputs, max_inputs;  // INT_MAX: any number
  int min_outputs, max_outputs;
  const char* const* input_names;  // the last one repeats when there may be more
  int n_input_names;
  const char* const* output_names;
  int n_output_names;
  const uint32_t* type_masks;  // per input name, bit = DataType number; 0: any
  const uint8_t (*inplace)[2];
  int n_inplace;  // -1: any pair
  const uint8_t (*enforced_inplace)[2];
  int n_enforced;
  const ArgumentSchema* args;
  int n_args;
  bool native;  // has a C++ kernel
  bool blocks;  // may wait for another operator
  uint32_t touches;
  const char* touches_if;  // only where this argument is set; nullptr: always

  const ArgumentSchema* find_argument(std::string_view name) const;
  const char* input_name(int i) const;
  uint32_t type_mask(int i) const;
  bool allows_inplace(int input, int output) const;
};

extern const OperatorSchema kOperatorSchemas[];  // sorted by name
extern const int kOperatorSchemaCount;

const OperatorSchema* find_schema(std::string_view type);  // nullptr when unknown

// Where find_schema looks for a type that the table lacks: operators that the host has declared
// since the build. What it finds stays for ever. To be set before any engine is made.
using SchemaSource = std::function<const OperatorSchema*(std::string_view type)>;
void set_schema_source(SchemaSource source);

std::string near_operators(std::string_view type);  // ". Did you mean ...?" or ""

// What an operator may touch outside of its workspace: a set of Touches.
uint32_t touched_by(const OperatorDef& def, const OperatorSchema& schema);

// Counts, in-place rules, argument types and ranges. Raises Error(kInvalidArgument).
void verify(const OperatorDef& def, const OperatorSchema& schema);

}  // namespace caffe2
