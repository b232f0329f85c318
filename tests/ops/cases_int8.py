"""Operators on Int8 tensors, which are no arrays: the harness cannot draw them."""

from caffe2 import ops

CASES = []
SPECIAL = {type: "tests/ops/test_recorded_int8.py" for type in ops.all() if type.startswith("Int8")}
NOT_OF_THE_ORIGINAL = {"Int8FCRelu": "the original has it with engine='DNNLOWP' alone"}
LOOSER = {
    "Int8FC": "bias may be left out; Qparam and quantization parameters are of the engine DNNLOWP",
    "Int8Quantize": "Qparam is of the engine DNNLOWP",
}
