//! The operator registry: schema, tags, shape rule, decomposition and tolerance of every op.
