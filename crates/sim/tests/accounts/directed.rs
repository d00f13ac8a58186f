//! Histories with one point each.
