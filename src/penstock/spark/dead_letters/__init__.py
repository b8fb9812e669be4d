"""Records that are put aside: how Spark finds them."""
