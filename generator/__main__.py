"""Run `trace-dataset` as `python -m generator`."""

from generator.cli.trace_dataset import main

if __name__ == "__main__":
    main()
