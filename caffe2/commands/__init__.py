"""The commands of the program `caffe2`, one module each.

A module has `add(parser)`, which declares its arguments, and `run(options)`, which gives the exit
code: 0 for all well, 1 for something found wrong.  Errors of files and values end in 2.
"""
