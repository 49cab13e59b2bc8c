"""Times of anything: snapshots -> intervals, runs that show something -> extents."""
