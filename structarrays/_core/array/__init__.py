"""The base class of arrays: operators, writes and views, places on devices."""
