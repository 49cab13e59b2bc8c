"""The console: arguments in, lines, progress and failures out, on a terminal or not."""
