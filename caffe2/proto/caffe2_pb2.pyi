# mypy: ignore-errors
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
PROTO_COMPILE_TIME_MAX_DEVICE_TYPES: DeviceTypeProto
PROTO_CPU: DeviceTypeProto
PROTO_CUDA: DeviceTypeProto
PROTO_FPGA: DeviceTypeProto
PROTO_HIP: DeviceTypeProto
PROTO_IDEEP: DeviceTypeProto
PROTO_MKLDNN: DeviceTypeProto
PROTO_MLC: DeviceTypeProto
PROTO_OPENCL: DeviceTypeProto
PROTO_OPENGL: DeviceTypeProto
PROTO_ORT: DeviceTypeProto
PROTO_XLA: DeviceTypeProto

class AOTConfig(_message.Message):
    __slots__ = ["in_batch_broadcast", "max_batch_size", "max_seq_size", "onnxifi_blacklist_ops", "onnxifi_min_ops"]
    IN_BATCH_BROADCAST_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_SIZE_FIELD_NUMBER: _ClassVar[int]
    ONNXIFI_BLACKLIST_OPS_FIELD_NUMBER: _ClassVar[int]
    ONNXIFI_MIN_OPS_FIELD_NUMBER: _ClassVar[int]
    in_batch_broadcast: bool
    max_batch_size: int
    max_seq_size: int
    onnxifi_blacklist_ops: str
    onnxifi_min_ops: int
    def __init__(self, max_batch_size: _Optional[int] = ..., max_seq_size: _Optional[int] = ..., in_batch_broadcast: bool = ..., onnxifi_blacklist_ops: _Optional[str] = ..., onnxifi_min_ops: _Optional[int] = ...) -> None: ...

class Argument(_message.Message):
    __slots__ = ["f", "floats", "i", "ints", "n", "name", "nets", "qtensors", "s", "strings", "t", "tensors"]
    FLOATS_FIELD_NUMBER: _ClassVar[int]
    F_FIELD_NUMBER: _ClassVar[int]
    INTS_FIELD_NUMBER: _ClassVar[int]
    I_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NETS_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    QTENSORS_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    S_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    f: float
    floats: _containers.RepeatedScalarFieldContainer[float]
    i: int
    ints: _containers.RepeatedScalarFieldContainer[int]
    n: NetDef
    name: str
    nets: _containers.RepeatedCompositeFieldContainer[NetDef]
    qtensors: _containers.RepeatedCompositeFieldContainer[QTensorProto]
    s: bytes
    strings: _containers.RepeatedScalarFieldContainer[bytes]
    t: TensorProto
    tensors: _containers.RepeatedCompositeFieldContainer[TensorProto]
    def __init__(self, name: _Optional[str] = ..., f: _Optional[float] = ..., i: _Optional[int] = ..., s: _Optional[bytes] = ..., floats: _Optional[_Iterable[float]] = ..., ints: _Optional[_Iterable[int]] = ..., strings: _Optional[_Iterable[bytes]] = ..., n: _Optional[_Union[NetDef, _Mapping]] = ..., nets: _Optional[_Iterable[_Union[NetDef, _Mapping]]] = ..., t: _Optional[_Union[TensorProto, _Mapping]] = ..., tensors: _Optional[_Iterable[_Union[TensorProto, _Mapping]]] = ..., qtensors: _Optional[_Iterable[_Union[QTensorProto, _Mapping]]] = ...) -> None: ...

class BackendOptions(_message.Message):
    __slots__ = ["backend_name", "option"]
    BACKEND_NAME_FIELD_NUMBER: _ClassVar[int]
    OPTION_FIELD_NUMBER: _ClassVar[int]
    backend_name: str
    option: _containers.RepeatedCompositeFieldContainer[MapFieldEntry]
    def __init__(self, backend_name: _Optional[str] = ..., option: _Optional[_Iterable[_Union[MapFieldEntry, _Mapping]]] = ...) -> None: ...

class BlobProto(_message.Message):
    __slots__ = ["content", "content_chunk_id", "content_num_chunks", "name", "qtensor", "tensor", "type"]
    CONTENT_CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_NUM_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QTENSOR_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    content_chunk_id: int
    content_num_chunks: int
    name: str
    qtensor: QTensorProto
    tensor: TensorProto
    type: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., tensor: _Optional[_Union[TensorProto, _Mapping]] = ..., content: _Optional[bytes] = ..., qtensor: _Optional[_Union[QTensorProto, _Mapping]] = ..., content_num_chunks: _Optional[int] = ..., content_chunk_id: _Optional[int] = ...) -> None: ...

class BlobSerializationOptions(_message.Message):
    __slots__ = ["blob_name_regex", "chunk_size", "float_format"]
    class FloatFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BLOB_NAME_REGEX_FIELD_NUMBER: _ClassVar[int]
    CHUNK_SIZE_FIELD_NUMBER: _ClassVar[int]
    FLOAT_BFLOAT16: BlobSerializationOptions.FloatFormat
    FLOAT_DEFAULT: BlobSerializationOptions.FloatFormat
    FLOAT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    FLOAT_PROTOBUF: BlobSerializationOptions.FloatFormat
    blob_name_regex: str
    chunk_size: int
    float_format: BlobSerializationOptions.FloatFormat
    def __init__(self, blob_name_regex: _Optional[str] = ..., chunk_size: _Optional[int] = ..., float_format: _Optional[_Union[BlobSerializationOptions.FloatFormat, str]] = ...) -> None: ...

class DBReaderProto(_message.Message):
    __slots__ = ["db_type", "key", "name", "source"]
    DB_TYPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    db_type: str
    key: str
    name: str
    source: str
    def __init__(self, name: _Optional[str] = ..., source: _Optional[str] = ..., db_type: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class DeviceOption(_message.Message):
    __slots__ = ["device_id", "device_type", "extra_info", "node_name", "numa_node_id", "random_seed"]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TYPE_FIELD_NUMBER: _ClassVar[int]
    EXTRA_INFO_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SEED_FIELD_NUMBER: _ClassVar[int]
    device_id: int
    device_type: int
    extra_info: _containers.RepeatedScalarFieldContainer[str]
    node_name: str
    numa_node_id: int
    random_seed: int
    def __init__(self, device_type: _Optional[int] = ..., device_id: _Optional[int] = ..., random_seed: _Optional[int] = ..., node_name: _Optional[str] = ..., numa_node_id: _Optional[int] = ..., extra_info: _Optional[_Iterable[str]] = ...) -> None: ...

class ExecutionStep(_message.Message):
    __slots__ = ["concurrent_substeps", "create_workspace", "criteria_network", "name", "network", "num_concurrent_instances", "num_iter", "only_once", "report_interval", "report_net", "run_every_ms", "should_stop_blob", "substep"]
    CONCURRENT_SUBSTEPS_FIELD_NUMBER: _ClassVar[int]
    CREATE_WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    CRITERIA_NETWORK_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    NUM_CONCURRENT_INSTANCES_FIELD_NUMBER: _ClassVar[int]
    NUM_ITER_FIELD_NUMBER: _ClassVar[int]
    ONLY_ONCE_FIELD_NUMBER: _ClassVar[int]
    REPORT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    REPORT_NET_FIELD_NUMBER: _ClassVar[int]
    RUN_EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    SHOULD_STOP_BLOB_FIELD_NUMBER: _ClassVar[int]
    SUBSTEP_FIELD_NUMBER: _ClassVar[int]
    concurrent_substeps: bool
    create_workspace: bool
    criteria_network: str
    name: str
    network: _containers.RepeatedScalarFieldContainer[str]
    num_concurrent_instances: int
    num_iter: int
    only_once: bool
    report_interval: int
    report_net: str
    run_every_ms: int
    should_stop_blob: str
    substep: _containers.RepeatedCompositeFieldContainer[ExecutionStep]
    def __init__(self, name: _Optional[str] = ..., substep: _Optional[_Iterable[_Union[ExecutionStep, _Mapping]]] = ..., network: _Optional[_Iterable[str]] = ..., num_iter: _Optional[int] = ..., criteria_network: _Optional[str] = ..., concurrent_substeps: bool = ..., report_net: _Optional[str] = ..., report_interval: _Optional[int] = ..., should_stop_blob: _Optional[str] = ..., only_once: bool = ..., run_every_ms: _Optional[int] = ..., create_workspace: bool = ..., num_concurrent_instances: _Optional[int] = ...) -> None: ...

class MapFieldEntry(_message.Message):
    __slots__ = ["key", "val"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VAL_FIELD_NUMBER: _ClassVar[int]
    key: str
    val: str
    def __init__(self, key: _Optional[str] = ..., val: _Optional[str] = ...) -> None: ...

class ModelDef(_message.Message):
    __slots__ = ["metadata", "name", "net"]
    class MetadataEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    METADATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NET_FIELD_NUMBER: _ClassVar[int]
    metadata: _containers.ScalarMap[str, str]
    name: str
    net: _containers.RepeatedCompositeFieldContainer[NetDef]
    def __init__(self, name: _Optional[str] = ..., net: _Optional[_Iterable[_Union[NetDef, _Mapping]]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class NetDef(_message.Message):
    __slots__ = ["arg", "device_option", "external_input", "external_output", "metadata", "name", "num_workers", "op", "partition_info", "type"]
    class MetadataEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ARG_FIELD_NUMBER: _ClassVar[int]
    DEVICE_OPTION_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_INPUT_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    PARTITION_INFO_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    arg: _containers.RepeatedCompositeFieldContainer[Argument]
    device_option: DeviceOption
    external_input: _containers.RepeatedScalarFieldContainer[str]
    external_output: _containers.RepeatedScalarFieldContainer[str]
    metadata: _containers.ScalarMap[str, str]
    name: str
    num_workers: int
    op: _containers.RepeatedCompositeFieldContainer[OperatorDef]
    partition_info: _containers.RepeatedCompositeFieldContainer[PartitionInfo]
    type: str
    def __init__(self, name: _Optional[str] = ..., op: _Optional[_Iterable[_Union[OperatorDef, _Mapping]]] = ..., type: _Optional[str] = ..., num_workers: _Optional[int] = ..., device_option: _Optional[_Union[DeviceOption, _Mapping]] = ..., arg: _Optional[_Iterable[_Union[Argument, _Mapping]]] = ..., external_input: _Optional[_Iterable[str]] = ..., external_output: _Optional[_Iterable[str]] = ..., partition_info: _Optional[_Iterable[_Union[PartitionInfo, _Mapping]]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class OperatorDef(_message.Message):
    __slots__ = ["arg", "control_input", "debug_info", "device_option", "domain", "engine", "input", "is_gradient_op", "name", "op_version", "output", "type"]
    ARG_FIELD_NUMBER: _ClassVar[int]
    CONTROL_INPUT_FIELD_NUMBER: _ClassVar[int]
    DEBUG_INFO_FIELD_NUMBER: _ClassVar[int]
    DEVICE_OPTION_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    IS_GRADIENT_OP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OP_VERSION_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    arg: _containers.RepeatedCompositeFieldContainer[Argument]
    control_input: _containers.RepeatedScalarFieldContainer[str]
    debug_info: str
    device_option: DeviceOption
    domain: str
    engine: str
    input: _containers.RepeatedScalarFieldContainer[str]
    is_gradient_op: bool
    name: str
    op_version: int
    output: _containers.RepeatedScalarFieldContainer[str]
    type: str
    def __init__(self, input: _Optional[_Iterable[str]] = ..., output: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., type: _Optional[str] = ..., arg: _Optional[_Iterable[_Union[Argument, _Mapping]]] = ..., device_option: _Optional[_Union[DeviceOption, _Mapping]] = ..., engine: _Optional[str] = ..., control_input: _Optional[_Iterable[str]] = ..., is_gradient_op: bool = ..., debug_info: _Optional[str] = ..., domain: _Optional[str] = ..., op_version: _Optional[int] = ...) -> None: ...

class PartitionInfo(_message.Message):
    __slots__ = ["backend_options", "device_id", "extra_info", "name"]
    BACKEND_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    EXTRA_INFO_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    backend_options: _containers.RepeatedCompositeFieldContainer[BackendOptions]
    device_id: _containers.RepeatedScalarFieldContainer[int]
    extra_info: str
    name: str
    def __init__(self, name: _Optional[str] = ..., device_id: _Optional[_Iterable[int]] = ..., extra_info: _Optional[str] = ..., backend_options: _Optional[_Iterable[_Union[BackendOptions, _Mapping]]] = ...) -> None: ...

class PlanDef(_message.Message):
    __slots__ = ["execution_step", "name", "network"]
    EXECUTION_STEP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    execution_step: _containers.RepeatedCompositeFieldContainer[ExecutionStep]
    name: str
    network: _containers.RepeatedCompositeFieldContainer[NetDef]
    def __init__(self, name: _Optional[str] = ..., network: _Optional[_Iterable[_Union[NetDef, _Mapping]]] = ..., execution_step: _Optional[_Iterable[_Union[ExecutionStep, _Mapping]]] = ...) -> None: ...

class QTensorProto(_message.Message):
    __slots__ = ["axis", "bias", "biases", "data", "data_type", "dims", "is_multiparam", "is_signed", "name", "precision", "scale", "scales"]
    AXIS_FIELD_NUMBER: _ClassVar[int]
    BIASES_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    IS_MULTIPARAM_FIELD_NUMBER: _ClassVar[int]
    IS_SIGNED_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SCALES_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    axis: int
    bias: float
    biases: _containers.RepeatedScalarFieldContainer[float]
    data: _containers.RepeatedScalarFieldContainer[int]
    data_type: TensorProto.DataType
    dims: _containers.RepeatedScalarFieldContainer[int]
    is_multiparam: bool
    is_signed: bool
    name: str
    precision: int
    scale: float
    scales: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, dims: _Optional[_Iterable[int]] = ..., precision: _Optional[int] = ..., scale: _Optional[float] = ..., bias: _Optional[float] = ..., is_signed: bool = ..., data: _Optional[_Iterable[int]] = ..., name: _Optional[str] = ..., data_type: _Optional[_Union[TensorProto.DataType, str]] = ..., scales: _Optional[_Iterable[float]] = ..., biases: _Optional[_Iterable[float]] = ..., axis: _Optional[int] = ..., is_multiparam: bool = ...) -> None: ...

class SerializationOptions(_message.Message):
    __slots__ = ["options"]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    options: _containers.RepeatedCompositeFieldContainer[BlobSerializationOptions]
    def __init__(self, options: _Optional[_Iterable[_Union[BlobSerializationOptions, _Mapping]]] = ...) -> None: ...

class TensorBoundShape(_message.Message):
    __slots__ = ["dim_type", "name", "shape", "shape_is_final"]
    class DimType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BATCH: TensorBoundShape.DimType
    BATCH_OF_FEATURE_MAX: TensorBoundShape.DimType
    BATCH_OF_FEATURE_MAX_DEFAULT: TensorBoundShape.DimType
    CONSTANT: TensorBoundShape.DimType
    DIM_TYPE_FIELD_NUMBER: _ClassVar[int]
    FEATURE_MAX: TensorBoundShape.DimType
    FEATURE_MAX_DEFAULT: TensorBoundShape.DimType
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_IS_FINAL_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN: TensorBoundShape.DimType
    dim_type: _containers.RepeatedScalarFieldContainer[TensorBoundShape.DimType]
    name: str
    shape: TensorShape
    shape_is_final: bool
    def __init__(self, shape: _Optional[_Union[TensorShape, _Mapping]] = ..., dim_type: _Optional[_Iterable[_Union[TensorBoundShape.DimType, str]]] = ..., name: _Optional[str] = ..., shape_is_final: bool = ...) -> None: ...

class TensorBoundShapes(_message.Message):
    __slots__ = ["max_batch_size", "max_feature_len", "shapes"]
    MAX_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_FEATURE_LEN_FIELD_NUMBER: _ClassVar[int]
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    max_batch_size: int
    max_feature_len: int
    shapes: _containers.RepeatedCompositeFieldContainer[TensorBoundShape]
    def __init__(self, shapes: _Optional[_Iterable[_Union[TensorBoundShape, _Mapping]]] = ..., max_batch_size: _Optional[int] = ..., max_feature_len: _Optional[int] = ...) -> None: ...

class TensorProto(_message.Message):
    __slots__ = ["byte_data", "data_format", "data_type", "device_detail", "dims", "double_data", "float_data", "int32_data", "int64_data", "name", "raw_data", "segment", "string_data"]
    class DataType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class SerializationFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class Segment(_message.Message):
        __slots__ = ["begin", "end"]
        BEGIN_FIELD_NUMBER: _ClassVar[int]
        END_FIELD_NUMBER: _ClassVar[int]
        begin: int
        end: int
        def __init__(self, begin: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...
    BOOL: TensorProto.DataType
    BYTE: TensorProto.DataType
    BYTE_DATA_FIELD_NUMBER: _ClassVar[int]
    DATA_FORMAT_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_DETAIL_FIELD_NUMBER: _ClassVar[int]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    DOUBLE: TensorProto.DataType
    DOUBLE_DATA_FIELD_NUMBER: _ClassVar[int]
    FLOAT: TensorProto.DataType
    FLOAT16: TensorProto.DataType
    FLOAT_DATA_FIELD_NUMBER: _ClassVar[int]
    FMT_BFLOAT16: TensorProto.SerializationFormat
    FMT_PROTOBUF: TensorProto.SerializationFormat
    INT16: TensorProto.DataType
    INT32: TensorProto.DataType
    INT32_DATA_FIELD_NUMBER: _ClassVar[int]
    INT64: TensorProto.DataType
    INT64_DATA_FIELD_NUMBER: _ClassVar[int]
    INT8: TensorProto.DataType
    NAME_FIELD_NUMBER: _ClassVar[int]
    RAW_DATA_FIELD_NUMBER: _ClassVar[int]
    REBATCHING_BUFFER: TensorProto.DataType
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    STRING: TensorProto.DataType
    STRING_DATA_FIELD_NUMBER: _ClassVar[int]
    UINT16: TensorProto.DataType
    UINT8: TensorProto.DataType
    UNDEFINED: TensorProto.DataType
    ZERO_COLLISION_HASH: TensorProto.DataType
    byte_data: bytes
    data_format: int
    data_type: TensorProto.DataType
    device_detail: DeviceOption
    dims: _containers.RepeatedScalarFieldContainer[int]
    double_data: _containers.RepeatedScalarFieldContainer[float]
    float_data: _containers.RepeatedScalarFieldContainer[float]
    int32_data: _containers.RepeatedScalarFieldContainer[int]
    int64_data: _containers.RepeatedScalarFieldContainer[int]
    name: str
    raw_data: bytes
    segment: TensorProto.Segment
    string_data: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, dims: _Optional[_Iterable[int]] = ..., data_type: _Optional[_Union[TensorProto.DataType, str]] = ..., data_format: _Optional[int] = ..., float_data: _Optional[_Iterable[float]] = ..., int32_data: _Optional[_Iterable[int]] = ..., byte_data: _Optional[bytes] = ..., string_data: _Optional[_Iterable[bytes]] = ..., double_data: _Optional[_Iterable[float]] = ..., int64_data: _Optional[_Iterable[int]] = ..., raw_data: _Optional[bytes] = ..., name: _Optional[str] = ..., device_detail: _Optional[_Union[DeviceOption, _Mapping]] = ..., segment: _Optional[_Union[TensorProto.Segment, _Mapping]] = ...) -> None: ...

class TensorProtos(_message.Message):
    __slots__ = ["protos"]
    PROTOS_FIELD_NUMBER: _ClassVar[int]
    protos: _containers.RepeatedCompositeFieldContainer[TensorProto]
    def __init__(self, protos: _Optional[_Iterable[_Union[TensorProto, _Mapping]]] = ...) -> None: ...

class TensorShape(_message.Message):
    __slots__ = ["data_type", "dims", "name", "unknown_dims", "unknown_shape"]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_DIMS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_SHAPE_FIELD_NUMBER: _ClassVar[int]
    data_type: TensorProto.DataType
    dims: _containers.RepeatedScalarFieldContainer[int]
    name: str
    unknown_dims: _containers.RepeatedScalarFieldContainer[int]
    unknown_shape: bool
    def __init__(self, dims: _Optional[_Iterable[int]] = ..., data_type: _Optional[_Union[TensorProto.DataType, str]] = ..., unknown_dims: _Optional[_Iterable[int]] = ..., unknown_shape: bool = ..., name: _Optional[str] = ...) -> None: ...

class TensorShapes(_message.Message):
    __slots__ = ["shapes"]
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    shapes: _containers.RepeatedCompositeFieldContainer[TensorShape]
    def __init__(self, shapes: _Optional[_Iterable[_Union[TensorShape, _Mapping]]] = ...) -> None: ...

class DeviceTypeProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
COMPILE_TIME_MAX_DEVICE_TYPES: DeviceTypeProto
CPU: DeviceTypeProto
CUDA: DeviceTypeProto
FPGA: DeviceTypeProto
HIP: DeviceTypeProto
IDEEP: DeviceTypeProto
MKLDNN: DeviceTypeProto
MLC: DeviceTypeProto
OPENCL: DeviceTypeProto
OPENGL: DeviceTypeProto
ORT: DeviceTypeProto
XLA: DeviceTypeProto
