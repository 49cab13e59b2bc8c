"""Published tables -> what a reader asks of them: the worst, `explain`, `what-if`, tables."""
