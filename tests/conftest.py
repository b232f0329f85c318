"""For all tests."""

import signal

# Shells start what runs in the background deaf to interrupts; some tests interrupt themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
