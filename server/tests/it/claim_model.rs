//! The simulation has a model of the claims of batches. It answers as PostgreSQL does.

use std::collections::BTreeMap;

use fastrand::Rng;
use tokio::time::Instant;
use unjank_database::{
    Claim, ClaimModel, ClaimStore, Claimed, Claiming, Claims, EndedLease, TakeOver,
};
use uuid::Uuid;

use crate::control::place::Place;

const LOGS: u8 = 3;
const SECOND: i64 = 1_000_000;
/// Time passes in steps of 50 seconds. So two minutes end in the middle of a step, however long the operations take.
const STEP: i64 = 50;
const THIRTY_ONE_DAYS: i64 = 31 * 86_400;

/// A process that claims batches for a log: the server of the log, or a command with a lease.
#[derive(Clone)]
struct Process {
    log_id: Uuid,
    claims: Claims,
    holder: Option<String>,
}

/// PostgreSQL and the model.
struct Both {
    place: Place,
    claims: Claims,
    model: ClaimModel,
    /// All processes that ever were.
    processes: Vec<Process>,
    /// The last ended lease that a process has seen, in PostgreSQL and in the model.
    ended: Option<(Uuid, EndedLease, EndedLease)>,
    began: Instant,
    /// How much time has passed for the tables, in seconds.
    passed: i64,
    random: Rng,
    /// How often each kind of answer was given.
    answers: BTreeMap<&'static str, u32>,
}

fn log_id(number: u8) -> Uuid {
    Uuid::from_u128(number.into())
}

impl Both {
    async fn new(seed: u64) -> Self {
        let place = Place::postgres().await;
        let claims = place.control.claims().unwrap();
        let servers = (0..LOGS).map(|number| Process {
            log_id: log_id(number),
            claims: claims.clone(),
            holder: None,
        });
        Self {
            processes: servers.collect(),
            place,
            claims,
            model: ClaimModel::default(),
            ended: None,
            began: Instant::now(),
            passed: 0,
            random: Rng::with_seed(seed),
            answers: BTreeMap::new(),
        }
    }

    /// The time of the model, in microseconds. It begins anywhere and passes as fast as that of PostgreSQL.
    fn now(&self) -> i64 {
        let elapsed = i64::try_from(self.began.elapsed().as_micros()).unwrap();
        1_000_000_000 * SECOND + self.passed * SECOND + elapsed
    }

    fn count(&mut self, answer: &'static str) {
        *self.answers.entry(answer).or_default() += 1;
    }

    /// Picks a server, the latest command, or any process, whose lease may have ended.
    fn process(&mut self) -> Process {
        let all = self.processes.len();
        let index = match self.random.u8(0..3) {
            0 => self.random.usize(0..usize::from(LOGS)),
            1 => all - 1,
            _ => self.random.usize(0..all),
        };
        self.processes[index].clone()
    }

    fn some_claims(&mut self) -> Vec<Claim> {
        let claim = |random: &mut Rng| Claim {
            project: random.choice(["shop", "bank"]).unwrap().to_owned(),
            batch_id: Uuid::from_u128(random.u128(0..6)),
            is_half: random.u8(0..4) == 0,
        };
        let count = self.random.usize(0..5);
        (0..count).map(|_| claim(&mut self.random)).collect()
    }

    async fn step(&mut self) {
        match self.random.u8(0..12) {
            0..=3 => self.replace().await,
            4 => self.release().await,
            5 | 6 => self.take_over().await,
            7 => self.change_lease().await,
            8 => self.check_lease().await,
            9 => self.forget_lease().await,
            _ => self.pass().await,
        }
    }

    async fn replace(&mut self) {
        let (process, claims) = (self.process(), self.some_claims());
        let (own, log_id) = (process.holder.as_deref(), process.log_id);
        let real = process.claims.replace(log_id, &claims).await.unwrap();
        let now = self.now();
        let model = self.model.replace(now, own, log_id, &claims);
        match (real, model) {
            (Claiming::Leased, Claiming::Leased) => self.count("leased"),
            (Claiming::Claimed(real), Claiming::Claimed(model)) => {
                let (real, model) = (sorted(real), sorted(model));
                assert_eq!(real, model, "{claims:?}");
                for claimed in real {
                    self.count(match claimed.by {
                        None => "in halves",
                        Some(owner) if owner.is_gone => "claimed by a server that is gone",
                        Some(_) => "claimed by another server",
                    });
                }
            }
            (real, model) => panic!("{real:?}, but the model says {model:?}"),
        }
    }

    async fn release(&mut self) {
        let log_id = log_id(self.random.u8(0..LOGS));
        self.claims.release(log_id).await.unwrap();
        self.model.release(self.now(), log_id);
    }

    async fn take_over(&mut self) {
        let log_id = log_id(self.random.u8(0..LOGS));
        let real = self.claims.take_over(log_id).await.unwrap();
        let now = self.now();
        match (real, self.model.take_over(now, log_id)) {
            (TakeOver::Taken(claims), TakeOver::Taken(holder)) => {
                self.processes.push(Process {
                    log_id,
                    claims,
                    holder: Some(holder),
                });
                self.count("taken over");
            }
            (TakeOver::ServerSeen(_), TakeOver::ServerSeen(_)) => self.count("server seen"),
            (TakeOver::Held, TakeOver::Held) => self.count("lease held"),
            (real, model) => panic!("{real:?}, but the model says {model:?}"),
        }
    }

    async fn change_lease(&mut self) {
        let process = self.process();
        let (own, log_id) = (process.holder.as_deref(), process.log_id);
        if self.random.bool() {
            process.claims.hand_back(log_id).await.unwrap();
            self.model.hand_back(self.now(), own, log_id);
            return;
        }
        let real = process.claims.renew(log_id).await.unwrap();
        assert_eq!(real, self.model.renew(self.now(), own, log_id));
        self.count(if real { "renewed" } else { "not renewed" });
    }

    async fn check_lease(&mut self) {
        let process = self.process();
        let (own, log_id) = (process.holder.as_deref(), process.log_id);
        let real = process.claims.check_lease(log_id).await;
        match (real, self.model.check_lease(self.now(), own, log_id)) {
            (Ok(Some(real)), Ok(Some(model))) => {
                self.ended = Some((log_id, real, model));
                self.count("lease has ended");
            }
            (real, model) => {
                assert_eq!(real, model);
                self.count(if real.is_ok() {
                    "may claim"
                } else {
                    "may not claim"
                });
            }
        }
    }

    /// Forgets a lease that has ended. Another one may have begun since.
    async fn forget_lease(&mut self) {
        if let Some((log_id, real, model)) = self.ended {
            self.claims.forget_lease(log_id, real).await.unwrap();
            self.model.forget_lease(log_id, model);
        }
    }

    /// Lets time pass: the times in the tables move into the past.
    async fn pass(&mut self) {
        let seconds = match self.random.u8(0..20) {
            0 => THIRTY_ONE_DAYS,
            _ => STEP,
        };
        for sql in [
            format!("UPDATE claiming_logs SET seen_at = seen_at - INTERVAL '{seconds} seconds'"),
            format!(
                "UPDATE batch_claims SET claimed_at = claimed_at - INTERVAL '{seconds} seconds'"
            ),
            format!("UPDATE leases SET until = until - {}", seconds * SECOND),
        ] {
            self.place.execute(&sql).await;
        }
        self.passed += seconds;
        // Its row has another time now.
        self.ended = None;
    }
}

fn sorted(mut claimed: Vec<Claimed>) -> Vec<Claimed> {
    claimed.sort_by(|one, other| {
        let key = |claimed: &Claimed| (claimed.project.clone(), claimed.batch_id);
        key(one).cmp(&key(other))
    });
    claimed
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_of_the_claims_answers_as_postgresql_does() {
    let mut answers = BTreeMap::<&str, u32>::new();
    for seed in 0..4 {
        let mut both = Both::new(seed).await;
        for _ in 0..300 {
            both.step().await;
        }
        for (answer, times) in both.answers {
            *answers.entry(answer).or_default() += times;
        }
    }
    // The operations reach every kind of answer.
    assert_eq!(answers.len(), 12, "{answers:?}");
}
