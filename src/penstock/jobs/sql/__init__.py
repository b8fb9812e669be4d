"""SQL as people run it: files of statements, sessions of a shell or a notebook, questions to a flow that runs."""
