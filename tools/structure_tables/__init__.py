"""The results of every function on every structure: measured, and written for the documentation."""
