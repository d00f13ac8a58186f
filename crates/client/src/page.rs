//! Reads lists page by page, or all pages at once.

use crate::call::{Call, Json};
use crate::error::Error;
use leasehold_api as api;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A page of a list: where its items are, and how to request the next page.
pub trait Page: DeserializeOwned + Send + 'static {
    type Item: DeserializeOwned;
    /// The field that contains the items.
    const ITEMS: &'static str;
    /// The query parameter that selects the next page, and its value.
    fn next(page: &Value) -> Option<(&'static str, String)> {
        Some(("cursor", page.get("next_cursor")?.as_str()?.to_owned()))
    }
}

macro_rules! pages {
    ($($page:ident { $items:literal: $item:ty })*) => {$(
        impl Page for api::$page {
            type Item = $item;
            const ITEMS: &'static str = $items;
        }
    )*};
}

pages! {
    TenantList { "tenants": api::Tenant }
    ProjectList { "projects": api::Project }
    UserList { "users": api::User }
    ClassList { "classes": api::Class }
    PoolList { "pools": api::Pool }
    NodeList { "nodes": api::Node }
    ClaimList { "nodes": api::ClaimedNode }
    WindowList { "windows": api::Window }
    QuotaList { "quotas": api::Quota }
    CeilingList { "ceilings": api::Ceiling }
    EntitlementList { "entitlements": api::Entitlement }
    AppPolicyList { "policies": api::AppPolicy }
    SharingList { "policies": api::SharingPolicy }
    CostShareList { "shares": api::CostShare }
    UsageUnitList { "usage_units": api::UsageUnit }
    UnitPriceList { "unit_prices": api::UnitPrice }
    AppList { "apps": api::App }
    AppInstanceList { "app_instances": api::AppInstance }
    AttachmentList { "attachments": api::Attachment }
    RateCardList { "rate_cards": api::RateCard }
    ChargePolicyList { "charge_policies": api::ChargePolicy }
    LedgerEntryList { "entries": api::LedgerEntry }
    LedgerBalanceList { "balances": api::LedgerBalance }
    PeriodList { "periods": api::Period }
    InvoiceList { "invoices": api::InvoiceHead }
    PaymentList { "payments": api::Payment }
    PrepaidList { "accounts": api::PrepaidAccount }
    WebhookList { "webhooks": api::Webhook }
    DeadLetterList { "dead_letters": api::DeadLetter }
    LeaseList { "leases": api::Lease }
    AllocationList { "allocations": api::Allocation }
    TokenList { "tokens": api::Token }
    History { "records": Value }
    Timeline { "steps": api::TimelineStep }
}

impl Page for api::RecordPage {
    type Item = Value;
    const ITEMS: &'static str = "records";
    fn next(page: &Value) -> Option<(&'static str, String)> {
        let (after, size) = (page.get("next_after")?.as_u64()?, page.get("size")?.as_u64()?);
        (after + 1 < size).then(|| ("after", after.to_string()))
    }
}

/// The pages of a list.
pub struct Pages<P: Page> {
    call: Call<Json<P>>,
    /// How to request the next page.
    next: Next,
}

enum Next {
    First,
    With(&'static str, String),
    Nothing,
}

impl<P: Page> Pages<P> {
    /// The next page as JSON, including fields that this version does not know.
    pub async fn next_json(&mut self) -> Result<Option<Value>, Error> {
        let call = match &self.next {
            Next::First => self.call.clone(),
            Next::With(name, value) => self.call.clone().query(name, value),
            Next::Nothing => return Ok(None),
        };
        let page = call.json().await?;
        let next = P::next(&page).map_or(Next::Nothing, |(name, value)| Next::With(name, value));
        // A cursor that leads back to its own page would be followed forever.
        if let (Next::With(_, before), Next::With(_, after)) = (&self.next, &next)
            && before == after
        {
            return Err(self.call.protocol("two pages in a row have the same cursor"));
        }
        self.next = next;
        Ok(Some(page))
    }

    /// The items of the next page. It may be empty even if more pages follow.
    pub async fn next(&mut self) -> Result<Option<Vec<P::Item>>, Error> {
        let Some(mut page) = self.next_json().await? else { return Ok(None) };
        let items = page.get_mut(P::ITEMS).map(Value::take).unwrap_or_default();
        let items = serde_json::from_value(items);
        items.map(Some).map_err(|error| self.call.protocol(format!("its answer is invalid: {error}")))
    }
}

impl<P: Page> Call<Json<P>> {
    pub fn pages(self) -> Pages<P> {
        Pages { call: self, next: Next::First }
    }

    /// Every item of every page.
    pub async fn all(self) -> Result<Vec<P::Item>, Error> {
        let mut pages = self.pages();
        let mut all = Vec::new();
        while let Some(items) = pages.next().await? {
            all.extend(items);
        }
        Ok(all)
    }

    /// All pages as one: the items of all pages, and the other fields of the last one.
    pub async fn all_json(self) -> Result<Value, Error> {
        let mut pages = self.pages();
        let mut items = Vec::new();
        let mut whole = Value::Null;
        while let Some(mut page) = pages.next_json().await? {
            if let Some(Value::Array(more)) = page.get_mut(P::ITEMS).map(Value::take) {
                items.extend(more);
            }
            whole = page;
        }
        whole[P::ITEMS] = Value::Array(items);
        Ok(whole)
    }
}
