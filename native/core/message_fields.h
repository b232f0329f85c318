// The fields of every message, in the order of their numbers: the one description from which
// messages.cc reads, measures and writes them.
//
// A visitor is called with (number, name, member) for each field.
#pragma once
#include <concepts>
#include <type_traits>

#include "core/messages.h"

namespace caffe2 {

// T, const or not: readers change what they visit, writers do not.
template <class M, class T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

template <class Visitor, Is<DeviceOption> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "device_type", m.device_type);
  visit(2, "device_id", m.device_id);
  visit(3, "random_seed", m.random_seed);
  visit(4, "node_name", m.node_name);
  visit(5, "numa_node_id", m.numa_node_id);
  visit(6, "extra_info", m.extra_info);
}

template <class Visitor, Is<TensorSegment> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "begin", m.begin);
  visit(2, "end", m.end);
}

template <class Visitor, Is<TensorProto> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "dims", m.dims);
  visit(2, "data_type", m.data_type);
  visit(3, "float_data", m.float_data);
  visit(4, "int32_data", m.int32_data);
  visit(5, "byte_data", m.byte_data);
  visit(6, "string_data", m.string_data);
  visit(7, "name", m.name);
  visit(8, "device_detail", m.device_detail);
  visit(9, "double_data", m.double_data);
  visit(10, "int64_data", m.int64_data);
  visit(11, "segment", m.segment);
  visit(13, "raw_data", m.raw_data);
  visit(15, "data_format", m.data_format);
}

template <class Visitor, Is<QTensorProto> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "dims", m.dims);
  visit(2, "precision", m.precision);
  visit(3, "scale", m.scale);
  visit(4, "bias", m.bias);
  visit(5, "is_signed", m.is_signed);
  visit(6, "data", m.data);
  visit(7, "name", m.name);
  visit(8, "data_type", m.data_type);
  visit(9, "scales", m.scales);
  visit(10, "biases", m.biases);
  visit(11, "axis", m.axis);
  visit(12, "is_multiparam", m.is_multiparam);
}

template <class Visitor, Is<TensorProtos> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "protos", m.protos);
}

template <class Visitor, Is<BlobProto> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "name", m.name);
  visit(2, "type", m.type);
  visit(3, "tensor", m.tensor);
  visit(4, "content", m.content);
  visit(5, "qtensor", m.qtensor);
  visit(6, "content_num_chunks", m.content_num_chunks);
  visit(7, "content_chunk_id", m.content_chunk_id);
}

template <class Visitor, Is<Argument> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "name", m.name);
  visit(2, "f", m.f);
  visit(3, "i", m.i);
  visit(4, "s", m.s);
  visit(5, "floats", m.floats);
  visit(6, "ints", m.ints);
  visit(7, "strings", m.strings);
  visit(8, "n", m.n);
  visit(9, "nets", m.nets);
  visit(10, "t", m.t);
  visit(11, "tensors", m.tensors);
  visit(12, "qtensors", m.qtensors);
}

template <class Visitor, Is<OperatorDef> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "input", m.input);
  visit(2, "output", m.output);
  visit(3, "name", m.name);
  visit(4, "type", m.type);
  visit(5, "arg", m.arg);
  visit(6, "device_option", m.device_option);
  visit(7, "engine", m.engine);
  visit(8, "control_input", m.control_input);
  visit(9, "is_gradient_op", m.is_gradient_op);
  visit(10, "debug_info", m.debug_info);
  visit(11, "domain", m.domain);
  visit(12, "op_version", m.op_version);
}

template <class Visitor, Is<MapFieldEntry> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "key", m.key);
  visit(2, "val", m.val);
}

template <class Visitor, Is<BackendOptions> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "backend_name", m.backend_name);
  visit(2, "option", m.option);
}

template <class Visitor, Is<PartitionInfo> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "name", m.name);
  visit(2, "device_id", m.device_id);
  visit(3, "extra_info", m.extra_info);
  visit(4, "backend_options", m.backend_options);
}

template <class Visitor, Is<NetDef> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "name", m.name);
  visit(2, "op", m.op);
  visit(3, "type", m.type);
  visit(4, "num_workers", m.num_workers);
  visit(5, "device_option", m.device_option);
  visit(6, "arg", m.arg);
  visit(7, "external_input", m.external_input);
  visit(8, "external_output", m.external_output);
  visit(9, "partition_info", m.partition_info);
  visit(1000, "metadata", m.metadata);
}

template <class Visitor, Is<ModelDef> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "name", m.name);
  visit(2, "net", m.net);
  visit(3, "metadata", m.metadata);
}

template <class Visitor, Is<ExecutionStep> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "name", m.name);
  visit(2, "substep", m.substep);
  visit(3, "network", m.network);
  visit(4, "num_iter", m.num_iter);
  visit(5, "criteria_network", m.criteria_network);
  visit(6, "concurrent_substeps", m.concurrent_substeps);
  visit(7, "report_net", m.report_net);
  visit(8, "report_interval", m.report_interval);
  visit(9, "should_stop_blob", m.should_stop_blob);
  visit(10, "only_once", m.only_once);
  visit(11, "run_every_ms", m.run_every_ms);
  visit(12, "create_workspace", m.create_workspace);
  visit(13, "num_concurrent_instances", m.num_concurrent_instances);
}

template <class Visitor, Is<PlanDef> M>
void visit_fields(M& m, Visitor& visit) {
  visit(1, "name", m.name);
  visit(2, "network", m.network);
  visit(3, "execution_step", m.execution_step);
}

}  // namespace caffe2
