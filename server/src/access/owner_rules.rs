//! Proposes the rule that gives a group of janks an owner, and tries the rule on stacks of the group.

use std::time::{Duration, Instant};

use unjank_database::Actor;
use unjank_protocol::Frame;
use unjank_stacks::{NoOwnerRule, Rules, RulesError, owner_rule};

use super::compiling::{Busy, compiling};

/// Slow rules are tried on fewer stacks.
const LONGEST_TRIAL: Duration = Duration::from_secs(2);

/// What a proposal is about.
pub struct OwnerWish {
    /// TOML of the current rules.
    pub rules: String,
    pub stacks: Vec<Vec<Frame<'static>>>,
    pub owner: String,
    /// The reason for the rule.
    pub note: String,
}

/// A rule that gives the group an owner.
pub struct OwnerProposal {
    pub rule: String,
    /// The whole rule file with the rule.
    pub rules: String,
    /// The number of stacks that were tried.
    pub stacks: usize,
    /// The number of stacks that get the owner and stay in their group.
    pub owned: usize,
    pub warnings: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    #[error(transparent)]
    None(#[from] NoOwnerRule),
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Busy(#[from] Busy),
}

/// Proposes a rule when it is the actor's turn. Saves nothing.
pub async fn propose(wish: OwnerWish, actor: &Actor) -> Result<OwnerProposal, ProposalError> {
    compiling(actor.holder(), move || try_out(&wish)).await?
}

fn try_out(wish: &OwnerWish) -> Result<OwnerProposal, ProposalError> {
    let before = Rules::parse(&wish.rules)?;
    let names = (wish.owner.as_str(), wish.note.as_str());
    let written = owner_rule((&wish.rules, &before), &wish.stacks, names)?;
    let after = Rules::parse(&written.rules)?;
    let end = Instant::now() + LONGEST_TRIAL;
    let (mut stacks, mut owned) = (0, 0);
    for frames in &wish.stacks {
        let (Some(was), Some(is)) = (
            before.classify_until(frames, end),
            after.classify_until(frames, end),
        ) else {
            break;
        };
        stacks += 1;
        owned += usize::from(is.owner == wish.owner && is.group_id == was.group_id);
    }
    Ok(OwnerProposal {
        rule: written.rule,
        rules: written.rules,
        stacks,
        owned,
        warnings: after.warnings(),
    })
}
