//! Roles and scopes of tokens. Records contain only the SHA-256 of a token's secret.

use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::id::{AppInstanceNo, NodeNo, ProjectNo, TenantNo, UserNo};
use crate::limits::APP_INSTANCES_PER_TOKEN_MAX;
use crate::words;

words! {
    /// What a token may do.
    pub enum Role {
        /// May do everything.
        Operator = 1 "operator",
        /// Reads everything and changes nothing.
        Auditor = 2 "auditor",
        /// Manages one tenant.
        TenantAdmin = 3 "tenant_admin",
        /// Manages the leases of one project.
        ProjectMember = 4 "project_member",
        /// Acts for one node.
        NodeAgent = 5 "node_agent",
        /// Reads the usage of some app instances.
        AppOperator = 6 "app_operator",
        /// Manages quotas.
        BillingAuthority = 7 "billing_authority",
    }
}

/// The scope of a token; absent parts are not restricted.
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
