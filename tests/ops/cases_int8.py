"""Operators on Int8 tensors, which are no arrays: the harness cannot draw them."""

from caffe2 import ops

CASES = []
SERVER = ("Quantize", "Dequantize")
TYPES = [type for type in ops.all() if type.startswith("Int8") or type in SERVER]
SPECIAL = dict.fromkeys(TYPES, "tests/ops/test_recorded_int8.py")
NOT_OF_THE_ORIGINAL = dict.fromkeys(
    ("Int8FCRelu", *SERVER), "the original has it with engine='DNNLOWP' alone"
)
LOOSER = {
    "Int8FC": "bias may be left out; Qparam and quantization parameters are of the engine DNNLOWP",
    "Int8Quantize": "Qparam is of the engine DNNLOWP",
}
