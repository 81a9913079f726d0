"""The functions of the standard: a file for each chapter, with the kernels for `Dense`."""
