# mypy: ignore-errors
from caffe2.proto import caffe2_pb2 as _caffe2_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BlobsMap(_message.Message):
    __slots__ = ["key", "value"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Iterable[str]] = ...) -> None: ...

class MetaNetDef(_message.Message):
    __slots__ = ["aotConfig", "applicationSpecificInfo", "blobs", "blobsOrder", "modelInfo", "nets", "plans", "preLoadBlobs", "requestOnlyEmbeddings", "tensorBoundShapes"]
    AOTCONFIG_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONSPECIFICINFO_FIELD_NUMBER: _ClassVar[int]
    BLOBSORDER_FIELD_NUMBER: _ClassVar[int]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    MODELINFO_FIELD_NUMBER: _ClassVar[int]
    NETS_FIELD_NUMBER: _ClassVar[int]
    PLANS_FIELD_NUMBER: _ClassVar[int]
    PRELOADBLOBS_FIELD_NUMBER: _ClassVar[int]
    REQUESTONLYEMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    TENSORBOUNDSHAPES_FIELD_NUMBER: _ClassVar[int]
    aotConfig: _caffe2_pb2.AOTConfig
    applicationSpecificInfo: _containers.RepeatedCompositeFieldContainer[StringMap]
    blobs: _containers.RepeatedCompositeFieldContainer[BlobsMap]
    blobsOrder: _containers.RepeatedScalarFieldContainer[str]
    modelInfo: ModelInfo
    nets: _containers.RepeatedCompositeFieldContainer[NetsMap]
    plans: _containers.RepeatedCompositeFieldContainer[PlansMap]
    preLoadBlobs: _containers.RepeatedScalarFieldContainer[str]
    requestOnlyEmbeddings: _containers.RepeatedScalarFieldContainer[str]
    tensorBoundShapes: _caffe2_pb2.TensorBoundShapes
    def __init__(self, blobs: _Optional[_Iterable[_Union[BlobsMap, _Mapping]]] = ..., nets: _Optional[_Iterable[_Union[NetsMap, _Mapping]]] = ..., modelInfo: _Optional[_Union[ModelInfo, _Mapping]] = ..., plans: _Optional[_Iterable[_Union[PlansMap, _Mapping]]] = ..., applicationSpecificInfo: _Optional[_Iterable[_Union[StringMap, _Mapping]]] = ..., blobsOrder: _Optional[_Iterable[str]] = ..., preLoadBlobs: _Optional[_Iterable[str]] = ..., tensorBoundShapes: _Optional[_Union[_caffe2_pb2.TensorBoundShapes, _Mapping]] = ..., requestOnlyEmbeddings: _Optional[_Iterable[str]] = ..., aotConfig: _Optional[_Union[_caffe2_pb2.AOTConfig, _Mapping]] = ...) -> None: ...

class ModelInfo(_message.Message):
    __slots__ = ["modelClass", "modelId", "predictorType", "project", "version"]
    MODELCLASS_FIELD_NUMBER: _ClassVar[int]
    MODELID_FIELD_NUMBER: _ClassVar[int]
    PREDICTORTYPE_FIELD_NUMBER: _ClassVar[int]
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    modelClass: str
    modelId: str
    predictorType: str
    project: str
    version: str
    def __init__(self, project: _Optional[str] = ..., modelClass: _Optional[str] = ..., version: _Optional[str] = ..., predictorType: _Optional[str] = ..., modelId: _Optional[str] = ...) -> None: ...

class NetsMap(_message.Message):
    __slots__ = ["key", "value"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _caffe2_pb2.NetDef
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_caffe2_pb2.NetDef, _Mapping]] = ...) -> None: ...

class PlansMap(_message.Message):
    __slots__ = ["key", "value"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _caffe2_pb2.PlanDef
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_caffe2_pb2.PlanDef, _Mapping]] = ...) -> None: ...

class StringMap(_message.Message):
    __slots__ = ["key", "value"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
