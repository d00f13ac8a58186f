//! What the bills of all tenants depend on, record by record.

use crate::list::{Card, CommonList, KnownApp};
use crate::sorted::Sorted;
use leasehold_meter::Schedule;
use leasehold_model::app::STANDARD_UNITS;
use leasehold_model::body::{
    AppInstancePut, ChargePolicyPut, PolicyScope, RateCardPut, SharingPut, UnitPricePut, UsageUnitPut,
};
use leasehold_model::{
    AppInstanceNo, AppTypeNo, Body, ClassNo, ClassSpec, ControlPlaneScope, Instant, Name, PoolNo, UnitMeasure, UnitNo,
};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    pub(crate) opened: Option<Instant>,
    pub(crate) classes: BTreeMap<ClassNo, ClassSpec>,
    pools: BTreeMap<PoolNo, Name>,
    pub(crate) cards: BTreeMap<u32, RateCardPut>,
    policies: BTreeMap<u32, ChargePolicyPut>,
    units: BTreeMap<UnitNo, UsageUnitPut>,
    pub(crate) unit_prices: BTreeMap<u32, UnitPricePut>,
    app_types: BTreeMap<AppTypeNo, Name>,
    pub(crate) app_instances: BTreeMap<AppInstanceNo, KnownApp>,
    pub(crate) sharing: BTreeMap<PolicyScope, SharingPut>,
}

/// An app instance, as far as bills depend on it.
pub(crate) fn known_app(put: &AppInstancePut) -> KnownApp {
    let AppInstancePut { app_instance, project, app_type, .. } = *put;
    KnownApp { app_instance, app_type, name: put.name.clone(), project }
}

impl Common {
    /// Takes a common record; others change nothing here.
    pub(crate) fn take(&mut self, body: &Body) {
        if let Body::ClassPut(put) = body {
            self.classes.insert(put.class, put.spec.clone());
        } else if let Body::PoolPut(put) = body {
            self.pools.insert(put.pool, put.name.clone());
        } else if let Body::PoolDeleted(gone) = body {
            self.pools.remove(&gone.pool);
        } else if let Body::RateCardPut(card) = body {
            self.cards.insert(card.card, card.clone());
        } else if let Body::RateCardDeleted(gone) = body {
            self.cards.remove(&gone.card);
        } else if let Body::ChargePolicyPut(policy) = body {
            self.policies.insert(policy.policy, policy.clone());
        } else if let Body::UsageUnitPut(put) = body {
            self.units.insert(put.unit, put.clone());
        } else if let Body::UnitPricePut(put) = body {
            self.unit_prices.insert(put.price_no, put.clone());
        } else if let Body::AppTypePut(put) = body {
            self.app_types.insert(put.app_type, put.slug.clone());
        } else if let Body::AppTypeDeleted(gone) = body {
            self.app_types.remove(&gone.app_type);
            self.sharing.retain(|of, _| of.app_type != gone.app_type);
        } else if let Body::AppInstanceDeleted(gone) = body {
            self.app_instances.remove(&gone.app_instance);
            self.sharing.retain(|of, _| of.app_instance != Some(gone.app_instance));
        } else if let Body::SharingPut(put) = body {
            self.sharing.insert(put.of, put.clone());
        } else if let Body::LedgerOpened(opened) = body {
            self.opened = Some(opened.from);
        } else if let Body::AppInstancePut(put) = body
            && put.scope == ControlPlaneScope::Platform
        {
            self.app_instances.insert(put.app_instance, known_app(put));
        }
    }

    pub(crate) fn list(&self) -> CommonList {
        CommonList {
            opened: self.opened,
            classes: pairs(&self.classes),
            pools: pairs(&self.pools),
            cards: Sorted::new(self.cards.values().cloned().map(Card)),
            policies: Sorted::new(self.policies.values().cloned()),
            units: Sorted::new(self.units.values().cloned()),
            unit_prices: Sorted::new(self.unit_prices.values().cloned()),
            app_types: pairs(&self.app_types),
            app_instances: Sorted::new(self.app_instances.values().cloned()),
            sharing: Sorted::new(self.sharing.values().cloned()),
        }
    }

    pub(crate) fn of(list: CommonList) -> Self {
        Self {
            opened: list.opened,
            classes: list.classes.into_iter().collect(),
            pools: list.pools.into_iter().collect(),
            cards: list.cards.into_iter().map(|Card(card)| (card.card, card)).collect(),
            policies: list.policies.into_iter().map(|policy| (policy.policy, policy)).collect(),
            units: list.units.into_iter().map(|unit| (unit.unit, unit)).collect(),
            unit_prices: list.unit_prices.into_iter().map(|price| (price.price_no, price)).collect(),
            app_types: list.app_types.into_iter().collect(),
            app_instances: list.app_instances.into_iter().map(|app| (app.app_instance, app)).collect(),
            sharing: list.sharing.into_iter().map(|put| (put.of, put)).collect(),
        }
    }

    /// The cards and policies over time.
    pub(crate) fn schedule(&self) -> Schedule {
        let mut schedule = Schedule::default();
        self.cards.values().for_each(|card| schedule.put_card(card.clone()));
        self.policies.values().for_each(|policy| schedule.put_policy(policy.clone()));
        schedule
    }

    /// How a unit measures; none if there is no such unit.
    pub(crate) fn measure(&self, unit: UnitNo) -> Option<UnitMeasure> {
        let standard = STANDARD_UNITS.iter().find(|(number, ..)| *number == unit).map(|(.., measure)| *measure);
        standard.or_else(|| self.units.get(&unit).map(|put| put.measure))
    }

    /// The price of a unit of an app at an instant: that of the app goes before that of all apps, and among these the one
    /// that began last.
    pub(crate) fn unit_price(&self, unit: UnitNo, app: AppTypeNo, at: Instant) -> Option<&UnitPricePut> {
        let fits = |put: &&UnitPricePut| put.unit == unit && put.from <= at && put.app_type.is_none_or(|of| of == app);
        self.unit_prices.values().filter(fits).max_by_key(|put| (put.app_type.is_some(), put.from, put.price_no))
    }
}

fn pairs<K: Copy + Ord, V: Clone>(map: &BTreeMap<K, V>) -> Sorted<(K, V)>
where
    (K, V): crate::sorted::Keyed,
{
    Sorted::new(map.iter().map(|(key, value)| (*key, value.clone())))
}
