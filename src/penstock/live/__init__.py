"""What a live run is, whatever host runs it: its course, its pace, its reports, and the records it puts aside."""
