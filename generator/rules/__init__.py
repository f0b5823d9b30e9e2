"""What a schema cannot say about a definition and its workloads, one idea a module.

Each function takes a value and returns Problems; `table` declares every rule.
Nothing here executes or imports a definition's code.
"""
