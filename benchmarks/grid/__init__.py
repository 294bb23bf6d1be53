"""The grid of benchmarks: which cells there are, how they are run and kept, and the tables made of them."""
