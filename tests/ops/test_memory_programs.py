"""Memory that runs out under operators with contracts of their own: files, queues, nets, Int8."""

import struct
from typing import NamedTuple

import numpy as np
import pytest
from google.protobuf import text_format
from operator_cases import CASES
from test_recorded_int8 import OUTPUTS, PICTURE, RECORDED, TENTH

from caffe2 import _native, ops
from caffe2.proto import caffe2_pb2
from caffe2.python import core
from caffe2.runtime.engine import new_workspace

SENTINEL = np.array([3.25, -1.5], dtype=np.float32)
FED = {
    "x": np.arange(6, dtype=np.float32).reshape(2, 3),
    "y": SENTINEL,
    "z": SENTINEL,
    "yes": np.array([True]),
    "no": np.array([False]),
    "n": np.array([3], np.int64),
    "n32": np.array([3], np.int32),
    "one32": np.array([1], np.int32),
    "one": np.array([1], np.int64),
    "steps_x": np.arange(6, dtype=np.float32).reshape(3, 2, 1),
    "h0": np.ones((2, 1), np.float32),
    "t": np.array([1], np.int32),
    "ids": np.array([1, 2, 3], np.int64),
    "lengths": np.array([2, 0, 1], np.int32),
    "indices": np.array([0, 1], np.int64),
    "weights": np.ones((2, 3), np.float32),
    "sums": np.array([1, 3, 6], np.float32),
    "scalar": np.float32(1).reshape(()),
    "next": np.array(0, np.int32),
    "rois": np.float32([[0, 0, 0, 3, 3]]),
}
FILE = {"db": "file", "db_type": "minidb"}


def make(type, inputs=(), outputs=(), **args):
    return core.CreateOperator(type, list(inputs), list(outputs), **args)


def net(*operators):
    return caffe2_pb2.NetDef(op=operators)


class Program(NamedTuple):
    """The last operator is the one whose memory runs out; `keeps`: blobs that it writes whole."""

    operators: list
    keeps: tuple = ()
    int8: tuple = ()

    def __repr__(self):
        return self.operators[-1].type


MUTEX = make("CreateMutex", [], ["mutex"])
FLAG = make("CreateAtomicBool", [], ["flag"])
COUNTER = make("CreateCounter", [], ["counter"], init_count=2)
QUEUE = make("CreateBlobsQueue", [], ["queue"], capacity=2)
FULL = [QUEUE, make("EnqueueBlobs", ["queue", "x"], ["x"])]
SCOPE = make("CreateScope", [], ["scope"])
SAVE = make("Save", ["x", "n"], [], **FILE)
READER = make("CreateDB", [], ["reader"], db="data", db_type="minidb")
DOUBLE = make("Scale", ["x"], ["y"], scale=2.0)
LOOP = caffe2_pb2.NetDef(
    op=[make("Scale", ["before"], ["after"], scale=2.0)],
    external_input=["turn", "on", "before"],
    external_output=["on", "after", "after"],
)

CURSOR = make("CreateTreeCursor", [], ["cursor"], fields=["f"])
OFFSETS = make("ComputeOffset", ["cursor", "x"], ["offsets"])
PACK = make("PackRecords", ["x"], ["packed"], fields=["f"])
VECTOR = make("CreateTensorVector", [], ["vector"])
COLLECT = make("CollectTensor", ["vector", "x"], ["vector"], num_to_collect=2)
BATCHES = make("CreateRebatchingQueue", [], ["batches"], num_blobs=1, capacity=4)
TIMER = make("TimerBegin", [], ["timer"], counter_name="memory")
STATS = make("StatRegistryCreate", [], ["stats"])
PUT = make("AveragePut", ["scalar"], [], stat_name="memory")
MAP = make("CreateMap", [], ["map"], key_dtype=10, value_dtype=10)
TABLE = make("CreateTextFileReader", [], ["table"], filename="table", field_types=[4, 1])
EXPORT = make("StatRegistryExport", [], ["keys", "values", "times"])

STEP = {
    "step_net": text_format.MessageToString(net(make("Sum", ["h_prev", "x_t"], ["h"]))),
    "backward_step_net": net(
        make("Copy", ["h_grad"], ["h_prev_grad"]), make("Copy", ["h_grad"], ["x_t_grad"])
    ),
    "recurrent_states": ["states"],
    "initial_recurrent_state_ids": [1],
    "link_internal": ["h_prev", "h", "x_t"],
    "link_external": ["states", "states", "steps_x"],
    "link_offset": [0, 1, 0],
    "backward_link_internal": ["h_grad", "h_prev_grad", "x_t_grad"],
    "backward_link_external": ["states_grad", "states_grad", "steps_x_grad"],
    "backward_link_offset": [1, 0, 0],
    "alias_src": ["states"],
    "alias_dst": ["all"],
    "alias_offset": [1],
    "outputs_with_grads": [0],
}
RECURRENT = make("RecurrentNetwork", ["steps_x", "h0"], ["all", "kept"], **STEP)

PROGRAMS = [
    Program([make("Accumulate", ["x"], ["y"])], ("y",)),
    Program(
        [make("AccumulateHistogram", ["x"], ["y", "z"], lower_bound=0.0, upper_bound=9.0,
              num_buckets=4)],
        ("y", "z"),
    ),
    *(Program([make(type, ["yes", "x"], ["y"], then_net=net(DOUBLE))]) for type in
      ("If", "AsyncIf")),
    Program([make("While", ["yes", "x"], ["y"],
                  loop_net=net(DOUBLE, make("Copy", ["no"], ["yes"])))]),
    Program([SCOPE]),
    Program([SCOPE, make("HasScope", ["scope"], ["y"])], ("y",)),
    Program([SCOPE, make("Do", ["x", "scope"], ["y", "scope"], inner_blobs=["a", "b"],
                         outer_blobs_idx=[0, 1], net=net(make("Scale", ["a"], ["b"], scale=2.0)))]),
    Program([MUTEX]),
    Program([MUTEX, make("AtomicIter", ["mutex", "n"], ["n"])]),
    Program([MUTEX, make("AtomicFetchAdd", ["mutex", "n32", "one32"], ["n32", "y"])], ("y",)),
    Program([MUTEX, make("AtomicFetchAdd64", ["mutex", "n", "one"], ["n", "y"])], ("y",)),
    Program([FLAG]),
    Program([FLAG, make("ConditionalSetAtomicBool", ["flag", "yes"])]),
    Program([FLAG, make("CheckAtomicBool", ["flag"], ["y"])], ("y",)),
    Program([COUNTER]),
    *(Program([COUNTER, make(type, ["counter"], ["y"])], ("y",)) for type in
      ("ResetCounter", "CountUp", "CountDown", "CheckCounterDone", "RetrieveCount")),
    Program([QUEUE]),
    Program([QUEUE, make("EnqueueBlobs", ["queue", "x"], ["x"])]),
    Program([QUEUE, make("SafeEnqueueBlobs", ["queue", "x"], ["x", "y"])]),
    Program([*FULL, make("DequeueBlobs", ["queue"], ["y"])], ("y",)),
    Program([*FULL, make("SafeDequeueBlobs", ["queue"], ["y", "z"], num_records=1)], ("y",)),
    Program([*FULL, make("WeightedSampleDequeueBlobs", ["queue"], ["y", "z"], weights=[1.0])],
            ("y",)),
    Program([*FULL, make("CloseBlobsQueue", ["queue"])]),
    *(Program([make(type, [], ["index"], max_elements=9)]) for type in
      ("IntIndexCreate", "LongIndexCreate", "StringIndexCreate")),
    *(Program([make("LongIndexCreate", [], ["index"], max_elements=9),
               make("IndexLoad", ["index", "n"], ["index"]), operator], keeps)
      for operator, keeps in (
          (make("IndexLoad", ["index", "n"], ["index"]), ()),
          (make("IndexGet", ["index", "n"], ["y"]), ("y",)),
          (make("IndexStore", ["index"], ["y"]), ("y",)),
          (make("IndexSize", ["index"], ["y"]), ("y",)),
          (make("IndexFreeze", ["index"], ["index"]), ()),
      )),
    *(Program([make(type, [f"in{i}" for i in range(len(inputs))], OUTPUTS.get(type, ["y"]),
                    **args)], ("y",), tuple(inputs)) for type, inputs, args, _ in RECORDED),
    *(Program([make(type, ["in0"], ["y"])], ("y",), (PICTURE,)) for type in
      ("Int8Dequantize", "Dequantize")),
    Program([make("Int8FCPackWeight", ["in0", "in1"], ["y", "z"], in_scale=0.1)], ("y", "z"),
            (np.eye(2, dtype=np.float32), np.ones(2, np.float32))),
    Program([make("Int8ResizeNearest", ["in0"], ["y"], width_scale=2.0, height_scale=1.5,
                  **TENTH)], ("y",), (PICTURE,)),
    Program([SAVE]),
    *(Program([make(type, ["one", "x"], [], every=1, db="file%d", db_type="minidb")])
      for type in ("Checkpoint", "Snapshot")),
    Program([SAVE, make("Load", [], ["y", "z"], source_blob_names=["x", "n"], **FILE)],
            ("y", "z")),
    Program([make("DBExists", [], ["y"], db_name="data", db_type="minidb")], ("y",)),
    Program([READER]),
    Program([READER, make("TensorProtosDBInput", ["reader"], ["y"], batch_size=2)], ("y",)),
    Program([make("Print", ["x"], [])]),
    Program([make("Summarize", ["x"], ["y"])], ("y",)),
    Program([make("Free", ["x"], ["x"])]),
    Program([make("GetAllBlobNames", [], ["y"])], ("y",)),
    Program([make("EstimateAllBlobSizes", [], ["y", "z"])], ("y", "z")),
    Program([make("FeedBlob", [], ["y"], value="text")]),
    Program([make("ONNXWhile", ["n", "yes", "x"], ["y", "z"], has_trip_count=True, body=LOOP)],
            ("y", "z")),
    Program([RECURRENT]),
    Program([RECURRENT, make("RecurrentNetworkBlobFetcher", ["kept"], ["y"], prefix="step")]),
    Program([RECURRENT, make("RecurrentNetworkGradient",
                             ["steps_x", "steps_x", "h0", "all", "kept"],
                             ["steps_x_grad", "h0_grad"], **STEP)]),
    Program([make("rnn_internal_apply_link", ["t", "steps_x"], ["y", "steps_x"])], ("y",)),
    Program([make("Slice", ["steps_x"], ["step"], starts=[0, 0, 0], ends=[1, -1, -1]),
             make("rnn_internal_accumulate_gradient_input", ["t", "step", "steps_x"],
                  ["steps_x"])]),
    Program([CURSOR]),
    Program([CURSOR, make("ResetCursor", ["cursor"])]),
    Program([CURSOR, make("GetCursorOffset", ["cursor"], ["y"])], ("y",)),
    Program([CURSOR, make("ReadNextBatch", ["cursor", "x"], ["y"])], ("y",)),
    Program([CURSOR, OFFSETS]),
    Program([CURSOR, OFFSETS,
             make("ReadRandomBatch", ["cursor", "indices", "offsets", "x"], ["y"])], ("y",)),
    Program([CURSOR, make("SortAndShuffle", ["cursor", "x"], ["y"], sort_by_field_idx=-1)],
            ("y",)),
    Program([make("CheckDatasetConsistency", ["x"], [], fields=["f"])]),
    Program([make("TrimDataset", ["x"], ["x"], fields=["f"], multiple_of=2)]),
    Program([PACK]),
    Program([PACK, make("UnPackRecords", ["packed"], ["y"], fields=["f"])], ("y",)),
    Program([MUTEX, make("AtomicAppend", ["mutex", "x", "weights"], ["x"])]),
    Program([VECTOR]),
    Program([VECTOR, COLLECT]),
    Program([VECTOR, COLLECT, make("ConcatTensorVector", ["vector"], ["y"])], ("y",)),
    Program([VECTOR, COLLECT, make("TensorVectorSize", ["vector"], ["y"])], ("y",)),
    Program([make("LastNWindowCollector", ["weights", "next", "x"], ["weights", "next"],
                  num_to_collect=2)]),
    Program([BATCHES]),
    Program([BATCHES, make("EnqueueRebatchingQueue", ["batches", "x"], [])]),
    Program([BATCHES, make("EnqueueRebatchingQueue", ["batches", "x"], []),
             make("DequeueRebatchingQueue", ["batches"], ["y"])], ("y",)),
    Program([BATCHES, make("CloseRebatchingQueue", ["batches"])]),
    Program([STATS]),
    *(Program([make(type, ["scalar"], [], stat_name=f"memory_{type}")]) for type in
      ("AveragePut", "IncrementPut", "StdDevPut")),
    Program([PUT, EXPORT]),
    Program([STATS, PUT, EXPORT, make("StatRegistryUpdate", ["keys", "values", "stats"], [])]),
    Program([TIMER]),
    Program([TIMER, make("TimerEnd", ["timer"])]),
    *(Program([TIMER, make(type, ["timer"], ["y"])], ("y",)) for type in
      ("TimerGet", "TimerGetAndEnd")),
    Program([make("WallClockTime", [], ["y"])], ("y",)),
    Program([make("UnsafeCoalesce", ["x", "weights"], ["x", "weights", "y"])]),
    *(Program([make(type, ["ids", "lengths"], ["y", "z"], ratio=0.5)], ("y", "z")) for type in
      ("SparseDropoutWithReplacement", "SparseItemwiseDropoutWithReplacement")),
    Program([make("WeightedSample", ["weights"], ["y"])], ("y",)),
    Program([make("WeightedMultiSampling", ["sums"], ["y"], num_samples=3)], ("y",)),
    Program([make("Int8RoIAlign", ["in0", "rois"], ["y"], pooled_h=2, pooled_w=2, order="NHWC",
                  **TENTH)], ("y",), (PICTURE,)),
    Program([MAP]),
    Program([make("KeyValueToMap", ["ids", "ids"], ["map"])]),
    Program([make("KeyValueToMap", ["ids", "ids"], ["map"]),
             make("MapToKeyValue", ["map"], ["y", "z"])], ("y", "z")),
    Program([MUTEX, make("ReservoirSampling", ["x", "n", "weights", "mutex"], ["x", "n"],
                         num_to_collect=2)]),
    Program([TABLE]),
    Program([TABLE, make("TextFileReaderRead", ["table"], ["y", "z"], batch_size=2)], ("y", "z")),
    Program([QUEUE, make("CreateBlobsQueueDB", ["queue"], ["reader"], key_blob_index=-1,
                         value_blob_index=0)]),
]  # fmt: skip


def test_there_is_a_program_for_each_operator_without_a_case():
    tried = {case.type for case in CASES} | {program.operators[-1].type for program in PROGRAMS}
    native = {name for name, declaration in ops.all().items() if declaration.native}
    assert native - tried == {"Fail", "LogFatal", "ThrowException"}  # which do nothing else


@pytest.mark.parametrize("program", PROGRAMS, ids=repr)
def test_every_allocation_may_fail(program, tmp_path, monkeypatch):
    """An error, then the same again with enough memory; in the end nothing is left."""
    monkeypatch.chdir(tmp_path)
    *before, last = [operator.SerializeToString() for operator in program.operators]
    item = caffe2_pb2.TensorProtos()
    item.protos.add(data_type=1, dims=[2], float_data=[1, 2])
    record = item.SerializeToString()
    (tmp_path / "data").write_bytes(struct.pack("<ii", 1, len(record)) + b"k" + record)
    (tmp_path / "table").write_bytes(b"a\t1\nb\t2\n")
    engine = _native.Engine(threads=2, print=lambda text: None)
    failures = 0
    while True:
        space = new_workspace(engine)
        for name, array in FED.items():
            space.feed(name, array)
        for i, blob in enumerate(program.int8):
            if isinstance(blob, np.ndarray):
                space.feed(f"in{i}", blob)
            else:
                space.feed_int8(f"in{i}", *blob)
        for operator in before:
            space.run_operator(operator)
        files = set(tmp_path.iterdir())
        engine.fail_at_allocation(failures + 1)
        try:
            space.run_operator(last)
        except _native.EngineError as error:
            assert error.code == "out of memory"
        else:
            break
        finally:
            engine.fail_at_allocation(0)
        failures += 1
        assert failures < 100
        assert set(tmp_path.iterdir()) == files
        for name in program.keeps:
            np.testing.assert_array_equal(space.fetch(name), SENTINEL)
        space.run_operator(last)
        space.reset()
        assert engine.memory_used == 0
        for made in set(tmp_path.iterdir()) - files:
            made.unlink()
    space.reset()
    assert engine.memory_used == 0
