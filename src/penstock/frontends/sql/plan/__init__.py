"""The planner: queries to steps of the graph, one module for each family."""
