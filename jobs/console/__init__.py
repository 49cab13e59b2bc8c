"""The console: arguments in, lines and progress out, on a terminal or not."""
