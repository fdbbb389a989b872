//! The graph: nodes, arguments, names, users, edits, lint and the printed form.
