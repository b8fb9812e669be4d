"""The model: nodes, schemas, expressions and checks. Building a graph runs nothing."""
