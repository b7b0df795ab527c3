"""One module a command: its function is the command, its docstring the help. Heavy imports happen when a
command runs."""
