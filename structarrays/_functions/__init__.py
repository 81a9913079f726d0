"""Functions of the Array API standard: one file for each chapter, with the kernels for `Dense`."""
