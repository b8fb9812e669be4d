"""Windows: of functions in FROM and GROUP BY, of CQL, and OVER."""
