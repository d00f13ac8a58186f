//! The books in their file: gone away from and come back to, and damaged.
