"""Changes files of nets and of models at random: they are read, verified and run, or refused with a
clean error.

    python fuzz/model_fuzz.py SECONDS [FOLDER ...]

Seeds are small nets and models of our own and every net file of the folders that is not large.
Every file is opened as a model that is mapped, and read as a net.  Ends with the first error that
is not clean, after writing the file to model_fuzz.failed.
"""

import math
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from caffe2 import _native
from caffe2.graph.errors import UsageError
from caffe2.graph.model_file import save_model
from caffe2.graph.reading import read_message
from caffe2.graph.upgrade import upgrade_net
from caffe2.graph.verify import verify
from caffe2.proto import caffe2_pb2
from caffe2.python import core
from caffe2.runtime.inference import add_packed
from caffe2.runtime.predictor import Predictor

LARGEST = 20_000  # bytes of a seed
MEMORY = 1 << 28  # bytes that a net may take
TOKENS = [b"\x00", b"\xff\xff\xff\x7f", b"\x80" * 9 + b"\x01", b"op {", b"-1", b"1e39", b"nan"]


def seeds(folders: list[str]) -> list[bytes]:
    """Files to begin with."""
    net = core.Net("small")
    net.GivenTensorFill([], "x", shape=[1, 2, 4, 4], values=[0.5] * 32)
    net.ConstantFill([], "w", shape=[3, 2, 3, 3], value=0.1)
    net.Conv(["x", "w"], "y", kernel=3, pad=1)
    net.MaxPool("y", "p", kernel=2, stride=2)
    net.Reshape("p", ["r", "old"], shape=[1, -1])
    net.Softmax("r", "s")
    net.Proto().external_output.append("s")
    branches, quantized = core.Net("branches"), core.Net("quantized")
    branch = core.Net("branch")
    branch.Sigmoid("x", "y")
    branches.GivenTensorFill([], "x", shape=[2, 2], values=[1.0, -2.0, 0.5, 0.0])
    branches.ConstantFill([], "yes", shape=[], value=True, dtype=core.DataType.BOOL)
    branches.If("yes", [], then_net=branch.Proto())
    branches.Slice("y", "z", starts=[0, 1], ends=[-1, -1])
    branches.Proto().external_output.append("z")
    quantized.UniformFill([], "x", shape=[1, 4, 4, 2])
    quantized.Int8Quantize("x", "q", Y_scale=0.1, Y_zero_point=5)
    quantized.Int8GivenTensorFill([], "w", shape=[2, 2, 2, 2], values=bytes(range(16)))
    quantized.Int8GivenIntTensorFill([], "b", shape=[2], values=[1, -2])
    quantized.Int8Conv(["q", "w", "b"], "c", kernel=2, order="NHWC", Y_scale=0.5)
    quantized.Int8AveragePool("c", "p", global_pooling=1, order="NHWC", Y_scale=0.5)
    quantized.Int8Dequantize("p", "y")
    quantized.Proto().external_output.append("y")
    own = [made.Proto() for made in (net, branches, quantized)]
    files = [form for proto in own for form in (proto.SerializeToString(), str(proto).encode())]
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            named = path.suffix in (".pb", ".pbtxt", ".model")
            if named and path.stat().st_size <= LARGEST:
                files.append(path.read_bytes())
    return files


def models() -> list[bytes]:
    """Models in one file, plain and with weights that are packed beforehand."""
    init, net = core.Net("init"), core.Net("model")
    for name, shape in (("w", (4, 2, 3, 3)), ("u", (5, 4)), ("v", (5,)), ("x", (1, 2, 4, 4))):
        values = np.linspace(-1, 1, math.prod(shape), dtype=np.float32)
        init.GivenTensorFill([], name, shape=shape, values=values)
    net.Conv(["x", "w"], "c", kernel=3, pad=1)
    net.Relu("c", "c")
    net.AveragePool("c", "p", global_pooling=1)
    net.FC(["p", "u", "v"], "y")
    predict = net.Proto()
    predict.external_input[:] = ["x", "w", "u", "v"]
    predict.external_output.append("y")
    files = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pb"
        for packed in (False, True):
            if packed:
                add_packed(init.Proto(), predict, {})
            save_model(init.Proto(), predict, path)
            files.append(path.read_bytes())
    return files


def mutate(content: bytes, rng: random.Random) -> bytes:
    """One to four changes: of a bit, a piece cut out, doubled or moved, or a token put in."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        if not data:
            break
        at, length = rng.randrange(len(data)), rng.randint(1, 16)
        kind = rng.randrange(5)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = data[at : at + length]
        elif kind == 3:
            data[at:at] = rng.choice(TOKENS)
        else:
            data[at] = rng.randrange(256)
    return bytes(data)


def attempt(content: bytes, engine: _native.Engine) -> str:
    """Goes as far with a file as it leads, and says how far; other errors than those of bad files
    and nets are raised."""
    path = Path("model_fuzz.model")
    path.unlink(missing_ok=True)  # it may be mapped
    path.write_bytes(content)
    try:
        Predictor.from_file(path, engine).run({})
        return "run as a model"
    except UsageError:
        pass  # no model
    except (ValueError, _native.EngineError):
        return "refused when run as a model"
    try:
        net = read_message(caffe2_pb2.NetDef, content, "file")
    except UsageError:
        return "refused when read"
    verify(net)
    verify(net, specs={})
    verify(upgrade_net(net)[0])
    if not net.external_output:
        net.external_output.extend(name for op in net.op[-1:] for name in op.output)
    try:
        predictor = Predictor(caffe2_pb2.NetDef(), net, engine=engine)
        predictor.run({})
    except (ValueError, _native.EngineError):
        return "refused when run"
    return "run"


def main() -> int:
    """The command."""
    end = time.monotonic() + float(sys.argv[1])
    files, rng = seeds(sys.argv[2:]) + models() * 8, random.Random(7)
    engine = _native.Engine(threads=1, memory_limit=MEMORY)
    counts: dict[str, int] = {}
    while time.monotonic() < end:
        content = mutate(rng.choice(files), rng)
        Path("model_fuzz.failed").write_bytes(content)  # what is there when the process dies
        start = time.monotonic()
        outcome = attempt(content, engine)
        counts[outcome] = counts.get(outcome, 0) + 1
        assert time.monotonic() - start < 60, "took more than a minute"
    for name in ("model_fuzz.failed", "model_fuzz.model"):
        Path(name).unlink(missing_ok=True)
    print(f"{len(files)} seeds; {', '.join(f'{n} {what}' for what, n in sorted(counts.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
