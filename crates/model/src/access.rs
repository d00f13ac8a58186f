//! Who may do what: the roles that tokens carry and what a token is confined to.
//!
//! A token's secret is never here: records hold its SHA-256 alone.

use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::id::{AppInstanceNo, NodeNo, ProjectNo, TenantNo, UserNo};
use crate::limits::APP_INSTANCES_PER_TOKEN_MAX;
use crate::words;

words! {
    /// What the holder of a token may do.
    pub enum Role {
        /// Everything.
        Operator = 1 "operator",
        /// Reads everything, changes nothing.
        Auditor = 2 "auditor",
        TenantAdmin = 3 "tenant-admin",
        ProjectMember = 4 "project-member",
        /// Speaks for one node.
        NodeAgent = 5 "node-agent",
        /// Reports what its app instances used.
        AppOperator = 6 "app-operator",
        BillingAuthority = 7 "billing-authority",
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
