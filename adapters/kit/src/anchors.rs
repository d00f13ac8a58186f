//! What every record says about the app instance, read from the registry, and whose usage it is.

use leasehold_client::Client;
use leasehold_client::api::{AllocationId, AppInstance, NewUsageRecord};
use leasehold_model::{ControlPlaneScope, RuntimeBackend, UsageSource};
use leasehold_terminal::Problem;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Capacity that another project lends to the runtime.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lent {
    pub attachment: u64,
    pub allocation: AllocationId,
}

/// Whose usage a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whose {
    pub tenant: String,
    pub project: String,
    pub user: Option<String>,
}

/// The app instance as it is registered.
#[derive(Clone, Debug)]
pub struct Anchors {
    instance: AppInstance,
    users: BTreeMap<String, String>,
}

impl Anchors {
    /// Reads them from the registry. They are read in every pass, because a token or an instance can change.
    pub(crate) async fn read(
        client: &Client,
        name: &str,
        tenant: Option<&str>,
        users: &BTreeMap<String, String>,
    ) -> Result<Self, leasehold_client::Error> {
        let instance = client.show_app_instance(name).maybe("tenant", tenant).await?;
        Ok(Self { instance, users: users.clone() })
    }

    /// For tests of an adapter's arithmetic.
    pub fn of(instance: AppInstance) -> Self {
        Self { instance, users: BTreeMap::new() }
    }

    /// Those of an instance that was deleted, as it was last registered.
    pub(crate) fn kept(instance: &serde_json::Value, users: &BTreeMap<String, String>) -> Option<Self> {
        let instance = serde_json::from_value(instance.clone()).ok()?;
        Some(Self { instance, users: users.clone() })
    }

    pub(crate) fn registered(&self) -> serde_json::Value {
        serde_json::to_value(&self.instance).expect("a wire type has string keys only")
    }

    /// An adapter for one kind of runtime must not report for another kind.
    pub(crate) fn check_backend(&self, backend: RuntimeBackend) -> Result<(), Problem> {
        if self.instance.runtime_backend == backend {
            return Ok(());
        }
        let (name, registered) = (&self.instance.name, self.instance.runtime_backend.word());
        let what = format!("the app instance {name} has the backend {registered}, not {}", backend.word());
        Err(Problem::refused("wrong_backend", what).advice("name another one in `leasehold.app_instance`"))
    }

    /// Usage of the project that owns the instance: of its control plane, and of work that nobody is known to have asked
    /// for.
    pub fn owner(&self) -> Whose {
        Whose { tenant: self.instance.tenant.clone(), project: self.instance.project.clone(), user: None }
    }

    /// Usage of work. `mapped` is the project that the configuration gives to the submitter, or `tenant/project` on a
    /// runtime of the platform. An instance of scope `project` has one project; on a shared one, work whose submitter has
    /// no project is the owner's, without a user (SEMANTICS 13, "Charge").
    pub fn submitter(&self, mapped: Option<&str>, user: Option<&str>) -> Whose {
        let owner = self.owner();
        let user = user.map(|user| self.users.get(user).map_or(user, String::as_str).to_owned());
        match (self.instance.control_plane_scope, mapped) {
            (ControlPlaneScope::Project, _) => Whose { user, ..owner },
            (ControlPlaneScope::Tenant | ControlPlaneScope::Platform, None) => owner,
            (ControlPlaneScope::Tenant, Some(project)) => Whose { project: project.to_owned(), user, ..owner },
            (ControlPlaneScope::Platform, Some(mapped)) => match mapped.split_once('/') {
                Some((tenant, project)) => Whose { tenant: tenant.to_owned(), project: project.to_owned(), user },
                None => Whose { project: mapped.to_owned(), user, ..owner },
            },
        }
    }

    /// A record with everything that does not depend on the usage itself.
    pub fn record(&self, whose: Whose, lent: Option<&Lent>) -> NewUsageRecord {
        let instance = &self.instance;
        NewUsageRecord {
            id: None,
            source: None,
            org_id: Some(whose.tenant),
            project_id: Some(whose.project),
            app_instance_id: Some(instance.name.clone()),
            app_slug: Some(instance.app.clone()),
            operating_mode: Some(instance.operating_mode),
            control_plane_scope: Some(instance.control_plane_scope),
            runtime_backend: Some(instance.runtime_backend),
            correlation_id: None,
            usage_source: Some(UsageSource::AppRuntime),
            usage_unit: None,
            quantity: None,
            from: None,
            to: None,
            requested_by_user_id: whose.user,
            control_plane_component: false,
            attachment_id: lent.map(|lent| lent.attachment),
            allocation_id: lent.map(|lent| lent.allocation),
            supersedes: None,
        }
    }
}
