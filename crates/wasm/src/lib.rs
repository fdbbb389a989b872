//! The WebAssembly surface of the engine: bytes in, bytes out, handles.
