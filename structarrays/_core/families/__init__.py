"""Rules that serve all structures of a kind: elementwise functions, reductions, joins, entries, arrays made of arrays."""
