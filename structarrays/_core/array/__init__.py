"""The base class of arrays: operators, writes, views and placement on devices."""
