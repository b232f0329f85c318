// Read access to an operator's arguments: given values, else the declared defaults.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/messages.h"
#include "core/schema.h"

namespace caffe2 {

class Arguments {
 public:
  Arguments(const OperatorDef& def, const OperatorSchema& schema) : def_(def), schema_(schema) {}

  bool has(std::string_view name) const { return given(name) != nullptr; }
  int64_t integer(std::string_view name) const;
  int int32(std::string_view name) const;  // raises when the value does not fit
  float real(std::string_view name) const;
  bool boolean(std::string_view name) const { return integer(name) != 0; }
  std::string text(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<float> reals(std::string_view name) const;
  // nullptr when it was not given. Quoted ones have been made nets (unquote_nets).
  const NetDef* net(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  // The message itself, for arguments of several kinds; nullptr when it was not given.
  const Argument* given(std::string_view name) const;

 private:
  const ArgumentSchema& declared(std::string_view name) const;

  const OperatorDef& def_;
  const OperatorSchema& schema_;
};

}  // namespace caffe2
