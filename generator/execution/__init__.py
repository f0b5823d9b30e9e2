"""Run code that may crash, hang or attack: tasks in worker processes, and the sandbox.

A task names a function and its arguments; nothing here knows which tasks there are.
`forked` runs them in forks of this process, `LocalExecutor` in forks of a process that
imported torch once, `RayExecutor` by local executors on the nodes of a cluster.
"""
