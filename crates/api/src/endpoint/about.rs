//! Which daemon this is, and who asks.

use super::Method::Get;
use super::roles::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint::<About>("about", Get, "/api/v1/about", "Which journal this is and which program keeps it", ALL),
        endpoint::<WhoAmI>("whoami", Get, "/api/v1/whoami", "The token that asks", ALL),
    ]
}
