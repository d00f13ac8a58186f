//! Roles that may call an endpoint, where several endpoints have the same list.

use leasehold_model::Role::{
    self, AppOperator, Auditor, BillingAuthority, NodeAgent, Operator, ProjectMember, TenantAdmin,
};

pub(super) const ALL: &[Role] = Role::ALL;
pub(super) const OPERATOR: &[Role] = &[Operator];
pub(super) const READERS: &[Role] = &[Operator, Auditor];
pub(super) const TENANCY: &[Role] = &[Operator, Auditor, BillingAuthority, TenantAdmin, ProjectMember];
pub(super) const HOLDERS: &[Role] = &[Operator, TenantAdmin, ProjectMember];
pub(super) const ADMINS: &[Role] = &[Operator, TenantAdmin];
pub(super) const TOKEN_READERS: &[Role] = &[Operator, Auditor, TenantAdmin];
pub(super) const QUOTA_AUTHORITY: &[Role] = &[Operator, BillingAuthority];
pub(super) const PRICE_READERS: &[Role] =
    &[Operator, Auditor, BillingAuthority, TenantAdmin, ProjectMember, AppOperator];
pub(super) const USAGE_REPORTERS: &[Role] = &[Operator, AppOperator];
pub(super) const USAGE_RECORD_READERS: &[Role] = &[Operator, Auditor, BillingAuthority, TenantAdmin, AppOperator];
pub(super) const CHARGE_READERS: &[Role] = &[Operator, Auditor, BillingAuthority];
pub(super) const BOOK_READERS: &[Role] = &[Operator, Auditor, BillingAuthority, TenantAdmin, ProjectMember];
pub(super) const LEDGER_READERS: &[Role] = &[Operator, Auditor, BillingAuthority, TenantAdmin, ProjectMember];
/// An invoice is about all projects of a tenant, so that members of one project do not see it.
pub(super) const INVOICE_READERS: &[Role] = &[Operator, Auditor, BillingAuthority, TenantAdmin];
pub(super) const LEDGER_KEEPERS: &[Role] = &[Operator, BillingAuthority];
pub(super) const DISPUTERS: &[Role] = &[Operator, BillingAuthority, TenantAdmin];
pub(super) const AGENTS: &[Role] = &[Operator, NodeAgent];
pub(super) const CATALOG: &[Role] =
    &[Operator, Auditor, BillingAuthority, TenantAdmin, ProjectMember, NodeAgent, AppOperator];
pub(super) const NODE_READERS: &[Role] = &[Operator, Auditor, NodeAgent];
pub(super) const LEASE_READERS: &[Role] = &[Operator, Auditor, TenantAdmin, ProjectMember, NodeAgent];
pub(super) const ALLOCATION_READERS: &[Role] = &[Operator, Auditor, TenantAdmin, ProjectMember];
pub(super) const BATCHERS: &[Role] = &[Operator, TenantAdmin, ProjectMember, NodeAgent];
/// Roles that may read explanations.
pub(super) const EXPLAINED: &[Role] = &[Operator, Auditor, TenantAdmin, ProjectMember];
pub(super) const NOBODY_IN_PARTICULAR: &[Role] = &[];
