//! JSON view.
