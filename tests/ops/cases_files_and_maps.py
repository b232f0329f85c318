"""Harness cases of barriers, queues of rows, reservoirs, maps and text files."""

from caffe2.testing import Case, anything, floats

CASES = [
    Case(
        "DataCouple",
        outputs=2,
        blob=[anything("N", 2), floats(3)],
        mismatch={"blob": None},
    ),
]

SPECIAL = {
    "ReservoirSampling": "tests/engine/test_reservoir.py",
    "CreateBlobsQueueDB": "tests/engine/test_queue_database.py",
    **dict.fromkeys(("CreateMap", "KeyValueToMap", "MapToKeyValue"), "tests/engine/test_maps.py"),
    **dict.fromkeys(
        ("CreateTextFileReader", "TextFileReaderRead"), "tests/engine/test_text_file.py"
    ),
}

MORE_IN_PLACE = {"AsyncNetBarrier": "for any number of blobs, of which the first were asked about"}

LOOSER = {
    "DataCouple": "nothing to couple is an error",
    "ReservoirSampling": "4 inputs and 2 outputs, or 7 and 4",
}
