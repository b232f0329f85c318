"""Passes that take out what does nothing for the outputs."""

from __future__ import annotations

from caffe2 import ops
from caffe2.passes.model import InferenceModel

# Operators that give their first input unchanged when they predict.
_IDENTITIES = {"Dropout", "StopGradient", "Copy", "Alias"}


def drop_identities(model: InferenceModel) -> list[str]:
    """Takes out what gives its input: Dropout (is_test), StopGradient, Copy, Alias.

    The operator before it then writes its output, or those after it read its input.
    """
    notes = []
    index = 0
    while index < len(model.op):
        op = model.op[index]
        note = f"{op.type} '{op.output[0]}' taken out" if op.output else ""
        if _is_identity(model, index) and _bypass(model, index):
            notes.append(note)
            del model.op[index]
        else:
            index += 1
    return notes


def _is_identity(model: InferenceModel, index: int) -> bool:
    op, view = model.op[index], model.view(index)
    if op.type not in _IDENTITIES or view is None or not op.output or op.control_input:
        return False
    if any(model.readers(index, name) for name in op.output[1:]):
        return False
    return op.type != "Dropout" or bool(view.args.is_test)


def _bypass(model: InferenceModel, index: int) -> bool:
    op = model.op[index]
    source, target = op.input[0], op.output[0]
    if source == target:
        return True
    writer = model.writer(index, source)
    single = writer is not None and len(model.op[writer].output) == 1
    if writer is not None and single and model.writes_into(writer, index, target):
        model.op[writer].output[0] = target
        return True
    readers = model.readers(index, target)
    if len(model.op) in readers or source in model.nested:
        return False
    last = max(readers, default=index)
    written = any(source in other.output for other in model.op[index + 1 : last + 1])
    in_place = any(target in model.op[i].output for i in readers)
    if written or in_place:
        return False
    for i in readers:
        for k, name in enumerate(model.op[i].input):
            if name == target:
                model.op[i].input[k] = source
    return True


def drop_dead_code(model: InferenceModel) -> list[str]:
    """Takes out operators whose outputs nothing reads, and constants that nothing needs."""
    notes = []
    for index in range(len(model.op) - 1, -1, -1):
        op = model.op[index]
        if not ops.declared(op.type) or ops.find(op.type).kind not in ("pure", "random"):
            continue
        if op.output and not any(model.readers(index, name) for name in op.output):
            notes.append(f"{op.type} '{op.output[0]}' taken out: nothing reads it")
            del model.op[index]
    return notes[::-1]
