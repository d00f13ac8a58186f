//! Conversion between quanta and the units of a class.

use super::failure::Failed;
use super::figures;
use crate::problem::Problem;
use leasehold_api::Class;
use leasehold_client::Client;
use leasehold_model::{ClassSpec, Name, Quanta, quantity};

pub(super) struct Classes(pub(super) Vec<Class>);

impl Classes {
    pub(super) async fn load(client: &Client) -> Result<Self, Failed> {
        Ok(Self(client.list_classes().query("limit", leasehold_api::limits::PAGE_MAX).all().await?))
    }

    /// No classes, for output as JSON.
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    /// By name or number.
    pub(super) fn named(&self, name: &str) -> Option<&Class> {
        self.0.iter().find(|class| class.name == name).or_else(|| {
            let number: u32 = name.parse().ok()?;
            self.0.iter().find(|class| class.id == number)
        })
    }

    /// `6`, `0.5`, `3/7` or `90.57` in the unit of the class; quanta if the class is unknown.
    pub(super) fn display(&self, class: &str, quanta: u64) -> String {
        match self.named(class).and_then(spec) {
            Some(spec) => figures::quantity(&quantity::display(Quanta(quanta), &spec)),
            None => quanta.to_string(),
        }
    }

    /// `16 GiB`: adds the unit to an amount that is in the unit of the class already.
    pub(super) fn with_unit(&self, class: &str, amount: &str) -> String {
        let amount = figures::quantity(amount);
        match self.named(class) {
            Some(class) => format!("{amount} {}", class.unit),
            None => amount,
        }
    }
}

/// Parses a quantity into quanta. Zero is allowed: it is a valid limit.
pub(super) fn parse(text: &str, class: &Class) -> Result<u64, Problem> {
    if text.trim() == "0" {
        return Ok(0);
    }
    let Some(spec) = spec(class) else {
        return Err(Problem::refused("bad_answer", format!("the daemon returned an invalid class {:?}", class.name)));
    };
    let parsed = quantity::parse(text, &spec);
    parsed.map(|quanta| quanta.0).map_err(|error| Problem::usage("bad_quantity", error.to_string()))
}

fn spec(class: &Class) -> Option<ClassSpec> {
    let name = Name::new(&class.name).ok()?;
    Some(ClassSpec {
        name,
        kind: class.kind,
        tier: None,
        quanta_per_unit: class.quanta_per_unit,
        premium: class.premium,
    })
}
