"""Start the commands; from the first import on, Ctrl-C says one line.

To import the packages takes most of a tenth of a second, in which a person may see a
mistake. A module outside of them is there before any of their code runs.
"""

import os
import signal
from importlib import import_module


def _end(*_: object) -> None:
    """End at once: nothing has begun that would have to be undone."""
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def _run(module: str) -> None:
    usual = signal.getsignal(signal.SIGINT)
    # who started the command may have Ctrl-C ignored, as `nohup` does
    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    main = import_module(module).main
    signal.signal(signal.SIGINT, usual)
    try:
        main()
    except KeyboardInterrupt:
        _end()


def gen_tests() -> None:
    """Run the command `gen-tests`."""
    _run("generator.cli.gen_tests")


def trace_dataset() -> None:
    """Run the command `trace-dataset`."""
    _run("generator.cli.trace_dataset")
