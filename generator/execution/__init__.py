"""Run code that may crash, hang or attack: tasks in worker processes, and the sandbox.

A task names the module that a worker's child process calls for each definition; nothing
here knows which tasks there are.
"""
