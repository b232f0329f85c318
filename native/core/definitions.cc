#include "core/definitions.h"

#include "core/cancellation.h"
#include "core/error.h"
#include "core/schema.h"
#include "core/text.h"

namespace caffe2 {

namespace {

NetDef unquoted(const Argument& arg) {
  try {
    return parse_net_text(*arg.s);
  } catch (const Error& error) {
    fail(error.code(), "argument '", *arg.name, "': ", error.text());
  }
}

}  // namespace

void unquote_nets(OperatorDef& op, int depth) {
  const OperatorSchema* schema = find_schema(op.type.value_or(""));
  for (Argument& arg : op.arg) {
    if (arg.n || arg.s.value_or("").empty() || !arg.name || schema == nullptr) continue;
    const ArgumentSchema* declared = schema->find_argument(*arg.name);
    if (declared == nullptr || declared->kind != ArgumentKind::kNet) continue;
    arg.n = unquoted(arg);
    arg.s.reset();
  }
  for_each_net(op, [depth](NetDef& net) {
    if (depth >= RunContext::kMaxDepth) {
      fail(Code::kInvalidArgument, "nets are nested more than ", RunContext::kMaxDepth, " deep");
    }
    for (OperatorDef& inner : net.op) unquote_nets(inner, depth + 1);
  });
}

}  // namespace caffe2
