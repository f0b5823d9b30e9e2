"""The error of a definition whose own code ended the work of the child process."""

# the reference found the child's connection and wrote the event `done` to it
FORGED = "code of the definition reported the end of the work"
