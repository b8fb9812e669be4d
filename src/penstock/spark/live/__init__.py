"""A live run: one streaming query, its time, its pace and its end."""
