//! The lines of an invoice: sums of posted lines, by what an invoice tells apart, and their hash.

use leasehold_model::body::LedgerShared;
use leasehold_model::codec::Field;
use leasehold_model::{AppInstanceNo, Item, LineKey, Month, PoolNo, Priority, ProjectNo, Steps, UsageDelta, fields};
use sha2::{Digest, Sha256};

fields! {
    /// What an invoice tells apart. Lines are in this order.
    #[derive(PartialOrd, Ord)]
    pub struct InvoiceLineKey {
        /// The month of the usage; before that of the invoice for adjustments of closed months.
        pub month: Month,
        /// Who pays.
        pub project: ProjectNo,
        /// Corrections and entries by hand.
        pub correction: bool,
        /// Who held it.
        pub holder: ProjectNo,
        pub pool: Option<PoolNo>,
        pub item: Option<Item>,
        pub priority: Option<Priority>,
        pub app_instance: Option<AppInstanceNo>,
        pub control_plane: bool,
    }
}

impl InvoiceLineKey {
    pub fn of_usage(payer: ProjectNo, line: &LineKey) -> Self {
        Self {
            month: Month::of(line.hour),
            project: payer,
            correction: false,
            holder: line.project,
            pool: Some(line.pool),
            item: Some(line.item),
            priority: Some(line.priority),
            app_instance: line.app_instance,
            control_plane: line.control_plane,
        }
    }

    pub fn of_correction(payer: ProjectNo, month: Month, line: Option<&LineKey>) -> Self {
        match line {
            Some(line) => Self { month, correction: true, ..Self::of_usage(payer, line) },
            None => Self {
                month,
                project: payer,
                correction: true,
                holder: payer,
                pool: None,
                item: None,
                priority: None,
                app_instance: None,
                control_plane: false,
            },
        }
    }

    /// A line about a share is of no item.
    pub fn of_share(payer: ProjectNo, shared: &LedgerShared) -> Self {
        Self {
            app_instance: Some(shared.app_instance),
            control_plane: true,
            correction: false,
            ..Self::of_correction(payer, shared.month, None)
        }
    }

    /// Whether the line is about a share of the cost of a control plane.
    pub const fn is_share(&self) -> bool {
        self.item.is_none() && !self.correction
    }
}

fields! {
    /// One line of an invoice.
    #[derive(Copy, Default)]
    pub struct InvoiceLine { pub usage: UsageDelta, pub posted: Steps }
}

/// The hash of lines: each as its key, its usage and its amount, in order.
pub fn lines_hash<'l>(lines: impl Iterator<Item = (&'l InvoiceLineKey, &'l InvoiceLine)>) -> [u8; 32] {
    let mut bytes = Vec::new();
    for (key, line) in lines {
        key.put(&mut bytes);
        line.put(&mut bytes);
    }
    Sha256::digest(&bytes).into()
}
