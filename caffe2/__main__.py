"""`python -m caffe2`: the program `caffe2`."""

import sys

from caffe2.cli import main

sys.exit(main())
