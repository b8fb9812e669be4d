"""From graph to plan; no Spark here."""
