//! Quotas.

use super::Method::{Delete, Get, Post, Put};
use super::roles::*;
use super::schemas::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tenant = "Only of this tenant: its name or number.";
    vec![
        endpoint::<QuotaList>("list_quotas", Get, "/api/v1/quotas", "Quotas with what is used of them", TENANCY)
            .query("tenant", tenant, text)
            .page(),
        endpoint::<QuotaPut>("create_quota", Post, "/api/v1/quotas", "Make a quota", QUOTA_AUTHORITY)
            .body::<NewQuota>()
            .status(201),
        endpoint::<Quota>("show_quota", Get, "/api/v1/quotas/{quota}", "One quota, by number", TENANCY),
        endpoint::<QuotaPut>("change_quota", Put, "/api/v1/quotas/{quota}", "Change a quota's limit", QUOTA_AUTHORITY)
            .body::<QuotaChange>(),
        endpoint::<Changed>("delete_quota", Delete, "/api/v1/quotas/{quota}", "Delete a quota", QUOTA_AUTHORITY),
    ]
}
