"""The clock of solutions: who measures a call, with what in between, against which limit."""
