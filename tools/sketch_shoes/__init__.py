"""A program that draws shoes: the pictures that `likeminds.make_sketch_shoes` brings."""
