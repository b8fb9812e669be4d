"""Records in their forms: rows, columns, Arrow batches."""
