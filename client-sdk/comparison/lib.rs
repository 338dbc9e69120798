//! Nothing: this package has only a benchmark.
