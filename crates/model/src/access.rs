//! Who may do what: the roles that tokens carry and what a token is confined to.
//!
//! A token's secret is never here: records hold its SHA-256 alone.

use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::id::{AppInstanceNo, NodeNo, ProjectNo, TenantNo, UserNo};
use crate::limits::APP_INSTANCES_PER_TOKEN_MAX;
use crate::words;

words! {
    /// What a token may do.
    pub enum Role {
        /// Everything.
        Operator = 1 "operator",
        /// Reads everything, changes nothing.
        Auditor = 2 "auditor",
        /// Everything of one tenant.
        TenantAdmin = 3 "tenant_admin",
        /// The leases of one project.
        ProjectMember = 4 "project_member",
        /// One node.
        NodeAgent = 5 "node_agent",
        /// The usage records of some app instances.
        AppOperator = 6 "app_operator",
        /// Quotas.
        BillingAuthority = 7 "billing_authority",
    }
}

/// What a token is confined to; absent parts confine nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenScope {
    pub tenant: Option<TenantNo>,
    pub project: Option<ProjectNo>,
    pub user: Option<UserNo>,
    pub node: Option<NodeNo>,
    pub app_instances: Vec<AppInstanceNo>,
}

impl Field for TokenScope {
    fn put(&self, out: &mut Vec<u8>) {
        let apps = &self.app_instances;
        assert!(apps.len() <= APP_INSTANCES_PER_TOKEN_MAX, "a token names at most 64 app instances");
        self.tenant.put(out);
        self.project.put(out);
        self.user.put(out);
        self.node.put(out);
        put_varint(apps.len() as u64, out);
        apps.iter().for_each(|app| app.put(out));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (tenant, project, user, node) = (Field::get(r)?, Field::get(r)?, Field::get(r)?, Field::get(r)?);
        let n = r.count(APP_INSTANCES_PER_TOKEN_MAX)?;
        let app_instances = (0..n).map(|_| Field::get(r)).collect::<Result<_, _>>()?;
        Ok(Self { tenant, project, user, node, app_instances })
    }
}
