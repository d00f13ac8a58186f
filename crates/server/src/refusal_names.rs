//! Names in refusals, as far as the caller may know them.

use crate::access::Caller;
use crate::names::{sees_quota, sees_token};
use crate::problem::quota_words;
use leasehold_engine::{AppInstance, Naming, State};
use leasehold_model::{
    AppInstanceNo, AppTypeNo, ClassNo, ControlPlaneScope, Name, NodeNo, PoolNo, ProjectNo, QuotaNo, SinkNo, TenantNo,
    TokenNo, UnitNo, UserNo,
};

/// Everybody may know the names of classes, pools and nodes. Objects of a tenant are named only to callers that may see
/// them; without a caller, numbers are used.
pub(crate) struct Names<'a> {
    pub(crate) state: &'a State,
    pub(crate) caller: Option<&'a Caller>,
}

fn named(what: &str, name: &Name) -> String {
    format!("{what} \"{name}\"")
}

impl Names<'_> {
    fn open(what: &str, name: Option<&Name>, number: u32) -> String {
        name.map_or_else(|| format!("{what} {number}"), |name| named(what, name))
    }

    /// Objects that the caller may not see are not named.
    fn owned(
        &self,
        what: &str,
        name: Option<&Name>,
        number: impl Into<u64>,
        sees: impl FnOnce(&Caller) -> bool,
    ) -> String {
        match (name, self.caller) {
            (Some(name), Some(caller)) if sees(caller) => named(what, name),
            (Some(_), Some(_)) => format!("another {what}"),
            _ => format!("{what} {}", number.into()),
        }
    }
}

impl Naming for Names<'_> {
    fn tenant(&self, tenant: TenantNo) -> String {
        let found = self.state.tenant(tenant);
        self.owned("tenant", found.map(|found| &found.settings.name), tenant.0, |caller| caller.sees_tenant(tenant))
    }

    fn project(&self, project: ProjectNo) -> String {
        let found = self.state.project(project);
        let sees = |caller: &Caller| found.is_some_and(|found| caller.sees_project(found.tenant, project));
        self.owned("project", found.map(|found| &found.name), project.0, sees)
    }

    fn user(&self, user: UserNo) -> String {
        let found = self.state.user(user);
        let sees = |caller: &Caller| found.is_some_and(|found| caller.sees_tenant(found.tenant));
        self.owned("user", found.map(|found| &found.name), user.0, sees)
    }

    fn token(&self, token: TokenNo) -> String {
        let found = self.state.token(token);
        let sees = |caller: &Caller| found.is_some_and(|found| sees_token(caller, found));
        self.owned("token", found.map(|found| &found.name), token.0, sees)
    }

    fn app_instance(&self, app_instance: AppInstanceNo) -> String {
        let found = self.state.app_instance(app_instance);
        let sees = |caller: &Caller| {
            let of_platform = |found: &AppInstance| found.scope == ControlPlaneScope::Platform;
            found.is_some_and(|found| of_platform(found) || caller.sees_app_instance(found.tenant, app_instance))
        };
        self.owned("app instance", found.map(|found| &found.name), app_instance.0, sees)
    }

    fn app_type(&self, app_type: AppTypeNo) -> String {
        Self::open("app", self.state.app_type(app_type).map(|app| &app.slug), app_type.0)
    }

    fn unit(&self, unit: UnitNo) -> String {
        let known = self.state.unit(unit);
        known.map_or_else(|| format!("usage unit {}", unit.0), |unit| format!("usage unit \"{}\"", unit.name))
    }

    fn sink(&self, sink: SinkNo) -> String {
        let found = self.state.sink(sink);
        let sees =
            |caller: &Caller| found.is_some_and(|found| caller.tenant.is_none() || found.put.tenant == caller.tenant);
        self.owned("webhook", found.map(|found| &found.put.name), sink.0, sees)
    }

    fn pool(&self, pool: PoolNo) -> String {
        Self::open("pool", self.state.pool(pool).map(|pool| &pool.name), pool.0)
    }

    fn node(&self, node: NodeNo) -> String {
        Self::open("node", self.state.node(node).map(|node| &node.name), node.0)
    }

    fn class(&self, class: ClassNo) -> String {
        Self::open("class", self.state.class(class).map(|class| &class.name), class.0.into())
    }

    fn quota(&self, quota: QuotaNo) -> String {
        let found = self.state.quota(quota);
        let seen = found.is_some_and(|found| self.caller.is_some_and(|caller| sees_quota(caller, found)));
        if seen { quota_words(self.state, quota) } else { format!("quota {}", quota.0) }
    }
}
