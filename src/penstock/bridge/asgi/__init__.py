"""What serves HTTP: uvicorn with bounds on what a client may cost, for the bridge, calls, metrics and jobs."""
