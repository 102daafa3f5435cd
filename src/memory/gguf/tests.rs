//! Reading of headers, made by hand and broken on purpose.
