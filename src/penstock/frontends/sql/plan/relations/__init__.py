"""What stands in FROM: tables, views, subqueries, row patterns."""
