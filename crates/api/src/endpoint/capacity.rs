//! Classes, pools, nodes, claims on them and their agents.

use super::Method::{Delete, Get, Post, Put};
use super::roles::*;
use super::schemas::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint::<ClassList>("list_classes", Get, "/api/v1/classes", "Resource classes, by number", CATALOG).page(),
        endpoint::<ClassPut>("create_class", Post, "/api/v1/classes", "Make a resource class", OPERATOR)
            .body::<NewClass>()
            .status(201),
        endpoint::<Class>("show_class", Get, "/api/v1/classes/{class}", "One class, by name or number", CATALOG),
        endpoint::<ClassPut>("change_class", Put, "/api/v1/classes/{class}", "Change a class", OPERATOR)
            .body::<ClassChange>(),
        endpoint::<PoolList>("list_pools", Get, "/api/v1/pools", "Pools, by number", CATALOG).page(),
        endpoint::<PoolPut>("create_pool", Post, "/api/v1/pools", "Make a pool", OPERATOR)
            .body::<NewPool>()
            .status(201),
        endpoint::<Pool>("show_pool", Get, "/api/v1/pools/{pool}", "One pool, by name or number", CATALOG),
        endpoint::<PoolPut>("change_pool", Put, "/api/v1/pools/{pool}", "Change a pool", OPERATOR).body::<PoolChange>(),
        endpoint::<Changed>("delete_pool", Delete, "/api/v1/pools/{pool}", "Delete a pool without nodes", OPERATOR),
        endpoint::<NodeList>("list_nodes", Get, "/api/v1/nodes", "Nodes, by number", NODE_READERS)
            .query("pool", "Only of this pool: its name or number.", text)
            .page(),
        endpoint::<NodePut>("create_node", Post, "/api/v1/nodes", "Make a node", OPERATOR)
            .body::<NewNode>()
            .status(201),
        endpoint::<Node>("show_node", Get, "/api/v1/nodes/{node}", "One node, by name or number", NODE_READERS),
        endpoint::<NodePut>("change_node", Put, "/api/v1/nodes/{node}", "Change a node", OPERATOR).body::<NodeChange>(),
        endpoint::<Changed>("delete_node", Delete, "/api/v1/nodes/{node}", "Delete a node without leases", OPERATOR),
        endpoint::<NodePut>("drain_node", Post, "/api/v1/nodes/{node}/drain", "Give out no more of a node", OPERATOR),
        endpoint::<NodePut>(
            "resume_node",
            Post,
            "/api/v1/nodes/{node}/resume",
            "Give a drained node out again",
            OPERATOR,
        ),
        endpoint::<NodePut>(
            "lose_node",
            Post,
            "/api/v1/nodes/{node}/lose",
            "Declare a node lost; its leases end when it was last seen",
            OPERATOR,
        )
        .body_or_none::<LoseNode>(),
        endpoint::<NodePut>("return_node", Post, "/api/v1/nodes/{node}/return", "A lost node is back", OPERATOR),
        endpoint::<NodePut>(
            "clear_quarantine",
            Post,
            "/api/v1/nodes/{node}/clear-quarantine",
            "Vouch that a quarantined node is clean",
            OPERATOR,
        ),
        endpoint::<NodePut>(
            "report_wipe",
            Post,
            "/api/v1/nodes/{node}/wipe",
            "Say whether a released node is clean",
            AGENTS,
        )
        .body::<ReportWipe>(),
        endpoint::<ClaimList>(
            "list_claims",
            Get,
            "/api/v1/claims",
            "Nodes that are claimed for sensitive work; to operators also those being wiped or quarantined",
            ALLOCATION_READERS,
        )
        .page(),
        endpoint::<ClaimPut>("claim_nodes", Post, "/api/v1/claims", "Claim nodes for a user's sensitive work", HOLDERS)
            .body::<NewClaim>()
            .status(201),
        endpoint::<ClaimPut>(
            "release_nodes",
            Post,
            "/api/v1/claims/release",
            "Give claimed nodes back; they are wiped before anyone gets them",
            HOLDERS,
        )
        .body::<ReleaseNodes>(),
        endpoint::<AgentRegistered>(
            "register_agent",
            Post,
            "/api/v1/nodes/{node}/agent",
            "An agent takes up its node",
            AGENTS,
        )
        .body::<RegisterAgent>(),
        endpoint::<DetachedAgent>(
            "detach_agent",
            Delete,
            "/api/v1/nodes/{node}/agent",
            "Forget the node's agent, so that another may take up the node",
            OPERATOR,
        ),
        endpoint::<HeartbeatAnswer>(
            "heartbeat",
            Post,
            "/api/v1/nodes/{node}/heartbeat",
            "A sign of life; answers what is to be torn down",
            AGENTS,
        )
        .body::<Heartbeat>(),
        endpoint::<TeardownsConfirmed>(
            "confirm_teardowns",
            Post,
            "/api/v1/nodes/{node}/teardowns",
            "Confirm that leases are torn down",
            AGENTS,
        )
        .body::<ConfirmTeardowns>(),
    ]
}
