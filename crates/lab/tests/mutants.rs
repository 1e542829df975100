//! Do the checks fail when they should? Runs each planted fault ([`Mutant`]) against the smallest
//! case that shows it: the case passes without the fault, and the check fails with it.
//!
//! One test covers all mutants, because a fault is planted in the whole process. It prints a table
//! with each fault, the check that caught it, and the message of that check.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use soloist_algorithms::carvalho_roucairol::{CarvalhoRoucairol, STAIRCASE};
use soloist_algorithms::central::Central;
use soloist_algorithms::chaudhuri_karaata::ChaudhuriKaraata;
use soloist_algorithms::lamport::Lamport;
use soloist_algorithms::le_lann::{self, LeLann};
use soloist_algorithms::lodha_kshemkalyani::{LATE_REPLY, LodhaKshemkalyani, ONE_REPLY};
use soloist_algorithms::maekawa::Maekawa;
use soloist_algorithms::naimi_trehel::NaimiTrehel;
use soloist_algorithms::neamatollahi::{self, Neamatollahi};
use soloist_algorithms::neilsen_mizuno::NeilsenMizuno;
use soloist_algorithms::raymond::{COUNTERS, INITIALIZE, PIGGYBACK, Raymond, SECOND_WAIT};
use soloist_algorithms::ricart_agrawala::RicartAgrawala;
use soloist_algorithms::suzuki_kasami::SuzukiKasami;
use soloist_algorithms::{
    Algorithm, Channels, Choice, Kind, Mutant, Shape, ShapeError, Variant, VariantSet,
};
use soloist_lab::ShapeSpec;
use soloist_lab::adversary::{Found, Hunt};
use soloist_lab::scenario;
use soloist_lab::search::{
    self, Aim, Bounds, Crashes, ENDLESS, Limits, Outcome, Worst, search, worst,
};
use soloist_lab::simulate::{Setup, simulate};
use soloist_lab::world::Fault;

/// A failed check and its message.
struct Catch {
    check: &'static str,
    says: String,
}

/// `None` if the case passes.
type Verdict = Option<Catch>;

fn catch(check: &'static str, says: impl fmt::Display) -> Verdict {
    let says = says.to_string();
    Some(Catch { check, says })
}

/// Runs the check on the case that shows the fault, the smallest one found.
fn judge(mutant: Mutant) -> Verdict {
    use Mutant::*;
    match mutant {
        ChaudhuriKaraataLifo => holds(case::<ChaudhuriKaraata>("3x1x1", &[ENDLESS; 3])),
        ChaudhuriKaraataAsksEachTime => holds(case::<ChaudhuriKaraata>("2x1x2", &[0, 0, 1, 1])),
        ChaudhuriKaraataDoesNotAskBack => holds(case::<ChaudhuriKaraata>("1x1x3", &[1, 1, 1])),
        ChaudhuriKaraataTokenKept => holds(case::<ChaudhuriKaraata>("1x1x2", &[1, 1])),
        ChaudhuriKaraataGrantsWhileYellow => holds(case::<ChaudhuriKaraata>("2x1x1", &[1, 1])),
        ChaudhuriKaraataReleaseStops => holds(case::<ChaudhuriKaraata>("3x1x1", &[1, 0, 1])),

        MaekawaLifo => holds(case::<Maekawa>("grid", &[1, 1, 1])),
        MaekawaDisplacedNotFailed => holds(case::<Maekawa>("grid", &[0, 1, 1, 1])),
        MaekawaLaterNotFailed => holds(case::<Maekawa>("grid", &[0, 1, 1, 1])),
        MaekawaFailedForgotten => holds(case::<Maekawa>("grid", &[1, 1, 1, 0])),
        // Over FIFO channels, a LOCKED always arrives before the INQUIRE about it.
        MaekawaInquireWithoutLock => holds(in_any_order(case::<Maekawa>("grid", &[1, 1, 1]))),
        MaekawaStaleInquire => holds(case::<Maekawa>("grid", &[1, 1, 2])),
        MaekawaReleaseNotToOne => holds(case::<Maekawa>("singer", &[1, 1])),
        MaekawaLockNotMoved => holds(case::<Maekawa>("grid", &[1, 1, 1])),
        MaekawaFailedTwice => costs_at_most((25, 3), case::<Maekawa>("grid", &[0, 1, 1, 1])),
        MaekawaClockForgotten => holds(forgetting(case::<Maekawa>("grid", &[1, 1, 1]))),

        RaymondLifo => holds(case::<Raymond>("line", &[ENDLESS; 3])),
        RaymondAskedNotReset => holds(case::<Raymond>("line", &[1, 1])),
        RaymondTokenKept => holds(case::<Raymond>("line", &[1, 1])),
        RaymondTokenTwice => holds(case::<Raymond>("line", &[1, 1])),
        RaymondDoesNotAskBack => holds(case::<Raymond>("line", &[1, 1, 1])),
        RaymondInitializeStops => holds(with(INITIALIZE, case::<Raymond>("line", &[0, 0, 1]))),
        RaymondPiggybackAsksTwice => holds(with(PIGGYBACK, case::<Raymond>("line", &[1, 1, 1]))),
        RaymondAdviseNotQueued => holds(crashing(1, Channels::Fifo, &[1, 1])),
        RaymondAdviseNotAsked => holds(crashing(1, Channels::Fifo, &[1, 1])),
        // With one neighbour, outdated advice does no harm.
        RaymondAdviseOutdated => holds(crashing(2, Channels::Fifo, &[1, 1, 1])),
        RaymondSecondWaitSkipped => holds(with(SECOND_WAIT, crashing(1, Channels::Any, &[1, 1]))),
        RaymondDuplicates => holds(crashing(2, Channels::Fifo, &[1, 1])),
        RaymondCountersIgnored => holds(with(COUNTERS, endlessly_crashing(&[ENDLESS; 3]))),

        NeamatollahiRowRoundShort => holds(case::<Neamatollahi>("2x3", &[1, 1, 1, 0, 0])),
        NeamatollahiColumnRoundShort => holds(case::<Neamatollahi>("2x2", &[1, 1, 0, 1])),
        // A restless token eventually reaches every node; without the alert it only takes longer.
        NeamatollahiRequestStops => plays("neamatollahi-3.4"),
        NeamatollahiBlockedNotNoted => {
            let case = case::<Neamatollahi>("1x3", &[0, 1, 2]);
            holds(with(neamatollahi::RESTING, case))
        }
        NeamatollahiCallLost => {
            let case = case::<Neamatollahi>("3x1", &[1, 1, 1]);
            holds(with(neamatollahi::RESTING, case))
        }

        LodhaKshemkalyaniNoTieBreak => holds(case::<LodhaKshemkalyani>("", &[1, 1])),
        LodhaKshemkalyaniHighestNotSeen => holds(case::<LodhaKshemkalyani>("", &[1, 1])),
        LodhaKshemkalyaniOwnNotSeen => holds(case::<LodhaKshemkalyani>("", &[2, 1])),
        LodhaKshemkalyaniFlushToLast => holds(case::<LodhaKshemkalyani>("", &[1, 1, 1])),
        LodhaKshemkalyaniFlushAnswers => holds(case::<LodhaKshemkalyani>("", &[1, 1, 1])),
        LodhaKshemkalyaniDoneForgotten => holds(case::<LodhaKshemkalyani>("", &[1, 1, 1])),
        LodhaKshemkalyaniSatisfiedNotTold => holds(case::<LodhaKshemkalyani>("", &[1, 1, 2])),
        LodhaKshemkalyaniReplyForgotten => holds(case::<LodhaKshemkalyani>("", &[1, 1])),
        LodhaKshemkalyaniKeptNotQueued => holds(with(
            LATE_REPLY,
            foreseeing(case::<LodhaKshemkalyani>("", &[2, 2])),
        )),
        LodhaKshemkalyaniErrandLost => {
            holds(with(ONE_REPLY, case::<LodhaKshemkalyani>("", &[1, 1])))
        }

        CentralLifo => holds(case::<Central>("", &[ENDLESS; 3])),
        CentralGrantsTwice => holds(case::<Central>("", &[1, 1])),
        CentralForgetsQueue => holds(case::<Central>("", &[1, 1])),
        CentralAsksTwice => costs_at_most((3, 1), case::<Central>("", &[ENDLESS; 3])),

        RicartAgrawalaNoTieBreak => holds(case::<RicartAgrawala>("", &[1, 1])),
        RicartAgrawalaTieBothWait => holds(case::<RicartAgrawala>("", &[1, 1])),
        RicartAgrawalaHighestNotSeen => holds(case::<RicartAgrawala>("", &[2, 1])),
        RicartAgrawalaReplyForgotten => holds(case::<RicartAgrawala>("", &[1, 1])),
        RicartAgrawalaRepliesInside => holds(case::<RicartAgrawala>("", &[1, 1])),
        RicartAgrawalaClockForgotten => holds(forgetting(case::<RicartAgrawala>("", &[2, 1]))),

        // Its sequence numbers grow without bound, so unlimited requests would have infinitely many
        // states.
        SuzukiKasamiLifo => nobody_is_overtaken("suzuki-kasami"),
        SuzukiKasamiLnNotUpdated => holds(case::<SuzukiKasami>("", &[1, 1])),
        SuzukiKasamiOldRequestCounts => holds(case::<SuzukiKasami>("", &[0, 2, 1])),
        SuzukiKasamiTokenKept => holds(case::<SuzukiKasami>("", &[1, 1])),
        SuzukiKasamiQueuedTwice => holds(case::<SuzukiKasami>("", &[1, 1, 1])),

        NaimiTrehelNextNotCleared => holds(case::<NaimiTrehel>("", &[1, 1])),
        NaimiTrehelTokenKept => holds(case::<NaimiTrehel>("", &[1, 1])),
        NaimiTrehelFatherNotSet => holds(case::<NaimiTrehel>("", &[1, 1])),
        NaimiTrehelNoReversal => holds(case::<NaimiTrehel>("", &[1, 1, 1])),

        LamportNoTieBreak => holds(case::<Lamport>("", &[1, 1])),
        LamportClockNotSet => holds(case::<Lamport>("", &[1, 1])),
        LamportHearsEarlier => holds(case::<Lamport>("", &[2, 2])),
        LamportReleaseNotToOne => holds(case::<Lamport>("", &[1, 1])),
        // If both nodes request, the other's REQUEST replaces the ACK.
        LamportAckForgotten => holds(case::<Lamport>("", &[1, 0])),
        LamportClockForgotten => holds(forgetting(case::<Lamport>("", &[2, 1]))),

        CarvalhoRoucairolNoTieBreak => holds(case::<CarvalhoRoucairol>("", &[1, 1])),
        CarvalhoRoucairolPermissionKept => holds(case::<CarvalhoRoucairol>("", &[2, 1])),
        CarvalhoRoucairolPermissionKeptOnRelease => holds(case::<CarvalhoRoucairol>("", &[2, 1])),
        CarvalhoRoucairolBothBegin => {
            holds(with(STAIRCASE, case::<CarvalhoRoucairol>("", &[1, 1])))
        }
        CarvalhoRoucairolNotAskedAgain => holds(case::<CarvalhoRoucairol>("", &[2, 1, 1])),
        CarvalhoRoucairolHighestNotSeen => holds(case::<CarvalhoRoucairol>("", &[2, 1])),
        CarvalhoRoucairolClockForgotten => {
            holds(forgetting(case::<CarvalhoRoucairol>("", &[2, 1])))
        }
        CarvalhoRoucairolGivenComesBack => {
            let case = case::<CarvalhoRoucairol>("", &[1, 1]);
            holds(forgetting(with(STAIRCASE, case)))
        }

        NeilsenMizunoFollowNotCleared => holds(case::<NeilsenMizuno>("line", &[1, 1])),
        NeilsenMizunoHoldingKept => holds(case::<NeilsenMizuno>("line", &[1, 1])),
        NeilsenMizunoLastNotTurned => holds(case::<NeilsenMizuno>("line", &[1, 1, 1])),

        LeLannTokenTwice => holds(case::<LeLann>("", &[1, 1])),
        LeLannTokenKept => holds(case::<LeLann>("", &[1, 1])),
        LeLannRequestNotNoted => holds(with(le_lann::RESTING, case::<LeLann>("", &[0, 1, 2]))),
        LeLannAgainDropped => holds(with(le_lann::RESTING, case::<LeLann>("", &[0, 1, 2]))),

        QuorumsFoldedTooEarly => holds(case::<Maekawa>("singer", &[1, 1, 0, 0])),
        QuorumsGridRowOnly => holds(case::<Maekawa>("grid", &[1, 0, 1, 0])),
    }
}

/// Faults that are caught in another way as well: by the worst case over all interleavings, by the
/// adversarial scheduler, and by searches with crashes that lose messages or have the longer wait.
const OTHERS: [(Mutant, fn() -> Verdict); 6] = [
    (Mutant::CentralLifo, || {
        overtakes_at_most(0, case::<Central>("", &[0, 2, 2, 2]))
    }),
    (Mutant::CentralLifo, || {
        let found = hunt(Aim::Overtaking, "central", "", &[0, 2, 2, 2]);
        match found.overtaken {
            0 => None,
            times => catch("scheduler", format!("{times} instead of 0")),
        }
    }),
    (Mutant::CentralAsksTwice, || {
        costs_at_most((3, 1), case::<Central>("", &[2; 3]))
    }),
    (Mutant::MaekawaFailedTwice, || {
        let found = hunt(Aim::Messages, "maekawa", "grid", &[0, 1, 1, 1]);
        costs_more((found.messages, found.entries), (25, 3))
            .and_then(|says| catch("scheduler", says))
    }),
    (Mutant::RaymondAdviseNotQueued, || {
        holds(with_crashes(|crashes| crashes.loses_messages = true))
    }),
    (Mutant::RaymondAdviseNotAsked, || {
        holds(with_crashes(|crashes| crashes.long_wait = true))
    }),
];

/// A line of two nodes with one crash of this kind.
fn with_crashes(change: fn(&mut Crashes)) -> Case<Raymond> {
    let Case(bounds) = crashing(1, Channels::Fifo, &[1, 1]);
    Case(bounds.map(|mut bounds| {
        change(&mut bounds.limits.crashes);
        bounds
    }))
}

/// Over all interleavings, a waiter is overtaken at most this often.
fn overtakes_at_most<A: Algorithm>(limit: u64, Case(bounds): Case<A>) -> Verdict {
    let bounds = bounds.expect("a valid shape");
    match worst::<A>(&bounds, Aim::Overtaking, &mut |_| true) {
        Worst::Most { most, .. } if most <= limit => None,
        Worst::Most { most, trace, .. } => {
            let says = format!("{most} instead of {limit} (step {})", trace.len());
            catch("worst case", says)
        }
        other => panic!("{other:?}"),
    }
}

/// Over all interleavings, there are at most this many messages for this many entries.
fn costs_at_most<A: Algorithm>(limit: (u64, u64), Case(bounds): Case<A>) -> Verdict {
    let bounds = bounds.expect("a valid shape");
    match worst::<A>(&bounds, Aim::Messages, &mut |_| true) {
        Worst::Most { most, entries, .. } => {
            costs_more((most, entries), limit).and_then(|says| catch("worst case", says))
        }
        Worst::Ratio {
            messages, entries, ..
        } => costs_more((messages, entries), limit).and_then(|says| catch("worst cycle", says)),
        other => panic!("{other:?}"),
    }
}

/// Compares messages per entry with a limit.
fn costs_more((messages, entries): (u64, u64), limit: (u64, u64)) -> Option<String> {
    let is_more = messages * limit.1 > limit.0 * entries;
    is_more.then(|| format!("{messages}/{entries} instead of {}/{}", limit.0, limit.1))
}

/// The worst of the runs that the adversarial scheduler tries.
fn hunt(aim: Aim, algorithm: &str, form: &str, requests: &[u8]) -> Found {
    let choice = Choice::parse(algorithm, "").unwrap();
    let mut case = search::Case::new(choice, requests.len(), 1);
    case.requests = requests.to_vec();
    if !form.is_empty() {
        case.shape = ShapeSpec::Form(form.to_owned());
    }
    let hunt = Hunt {
        case,
        aim,
        seed: 1,
        tries: 800,
    };
    hunt.run(&|| ()).expect("a case that can be run")
}

/// A case for a search, or the reason why its shape is invalid.
struct Case<A: Algorithm>(Result<Bounds<A::Shape>, ShapeError>);

/// An empty form selects the default shape.
fn case<A: Algorithm>(form: &str, requests: &[u8]) -> Case<A> {
    let nodes = requests.len();
    let shape = match form {
        "" => Ok(A::Shape::default_for(nodes)),
        form => A::Shape::parse(form, nodes),
    };
    Case(shape.map(|shape| Bounds {
        shape: Arc::new(shape),
        limits: Limits {
            states_max: 1_000_000,
            ..Limits::new(A::INFO.channels)
        },
        ..Bounds::of::<A>(requests)
    }))
}

fn with<A: Algorithm>(variant: Variant, case: Case<A>) -> Case<A> {
    Case(case.0.map(|bounds| Bounds {
        variants: VariantSet::default().with(variant),
        ..bounds
    }))
}

/// On a line, with at most this many crashes, never of neighbours at the same time.
fn crashing(most: u8, channels: Channels, requests: &[u8]) -> Case<Raymond> {
    let Case(bounds) = case::<Raymond>("line", requests);
    Case(bounds.map(|bounds| Bounds {
        limits: Limits {
            channels,
            crashes: Crashes {
                most,
                neighbours_too: false,
                ..Crashes::default()
            },
            ..bounds.limits
        },
        ..bounds
    }))
}

/// Node 1 of a line crashes again and again.
fn endlessly_crashing(requests: &[u8]) -> Case<Raymond> {
    let Case(bounds) = crashing(ENDLESS, Channels::Fifo, requests);
    Case(bounds.map(|mut bounds| {
        bounds.limits.crashes.nodes = Some(1 << 1);
        bounds
    }))
}

/// Nodes know whether they will request again.
fn foreseeing<A: Algorithm>(case: Case<A>) -> Case<A> {
    Case(case.0.map(|mut bounds| {
        bounds.limits.known_requests = true;
        bounds
    }))
}

/// Quiescent nodes may be forgotten.
fn forgetting<A: Algorithm>(case: Case<A>) -> Case<A> {
    Case(case.0.map(|bounds| Bounds {
        limits: Limits {
            forgets: true,
            ..bounds.limits
        },
        ..bounds
    }))
}

fn in_any_order<A: Algorithm>(case: Case<A>) -> Case<A> {
    Case(case.0.map(|bounds| Bounds {
        limits: Limits {
            channels: Channels::Any,
            ..bounds.limits
        },
        ..bounds
    }))
}

/// Every interleaving is safe, and every request is eventually served.
fn holds<A: Algorithm>(Case(bounds): Case<A>) -> Verdict {
    let bounds = match bounds {
        Ok(bounds) => bounds,
        Err(error) => return catch("shape", error),
    };
    match search::<A>(&bounds) {
        Outcome::Holds { cut: 0, .. } => None,
        Outcome::Broken { fault, trace } => broken(&fault, &trace),
        Outcome::Starved { node, cycle, .. } => {
            let steps = cycle.len();
            let says = format!("node {node} waits forever while {steps} steps repeat");
            catch("search: starvation", says)
        }
        Outcome::Restless { cycle, .. } => {
            let says = format!("{} messages repeat forever", cycle.len());
            catch("search: unrest", says)
        }
        other => panic!("the case is too large: {other:?}"),
    }
}

fn broken(fault: &Fault, trace: &[String]) -> Verdict {
    let check = match fault {
        Fault::TwoInside { .. } => "search: two inside",
        Fault::Refused { .. } => "search: refusal",
        Fault::Invariant { .. } | Fault::ClusterInvariant(_) => "search: invariant",
        Fault::Tokens(_) => "search: one token",
        Fault::Order { .. } => "search: order of entries",
        Fault::Fence(_) => "search: fences",
        Fault::Deadlock(_) => "search: deadlock",
        _ => "search",
    };
    catch(check, format!("{fault} (step {})", trace.len()))
}

/// A scenario replays without a fault and exactly to its own text.
fn plays(name: &str) -> Verdict {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let path = folder.join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&path).expect("a scenario of this name");
    let replayed = match scenario::replay(&text) {
        Ok(replayed) => replayed,
        Err(error) => return catch("scenario: steps", error),
    };
    if let Some(fault) = replayed.lines().find(|line| line.starts_with("FAULT")) {
        return catch("scenario: fault", fault);
    }
    let mut lines = replayed.lines().zip(text.lines());
    let (is, should) = lines.find(|(is, should)| is != should)?;
    let says = format!("'{is}' instead of '{should}'");
    catch("scenario: transcript", says)
}

/// Under heavy load, no request is served before one that had arrived before it was made.
fn nobody_is_overtaken(algorithm: &str) -> Verdict {
    let setup = Setup {
        entries: 2000,
        ..Setup::new(Choice::parse(algorithm, "").unwrap(), 8)
    };
    let report = simulate(&setup, &mut |_| ()).unwrap();
    assert!(report.is_well(), "{report:#?}");
    match report.measures.fairness.max_overtaken {
        0 => None,
        times => catch(
            "simulation: overtaken",
            format!("a waiter was overtaken {times} times"),
        ),
    }
}

#[test]
fn every_mutant_is_caught_and_nothing_else_is() {
    check_names();
    let mut table = String::from("mutant | caught by | what it says\n");
    let mut missed = Vec::new();
    let mut check = |mutant: Mutant, judge: &dyn Fn() -> Verdict| {
        let name = mutant.name();
        Mutant::plant(None);
        if let Some(Catch { check, says }) = judge() {
            panic!("without the fault {name}: {check}: {says}");
        }
        Mutant::plant(Some(mutant));
        match judge() {
            Some(Catch { check, says }) => table += &format!("{name} | {check} | {says}\n"),
            None => missed.push(format!("{name}: {}", mutant.about())),
        }
        Mutant::plant(None);
    };
    for &mutant in Mutant::ALL {
        check(mutant, &|| judge(mutant));
    }
    for (mutant, judge) in OTHERS {
        check(mutant, &judge);
    }
    println!("{table}");
    assert!(missed.is_empty(), "not caught:\n{}", missed.join("\n"));
}

/// Every algorithm has at least two mutants, which are named after it.
fn check_names() {
    for kind in Kind::ALL {
        let name = kind.info().name;
        let count = Mutant::ALL.iter().filter(|m| m.part() == name).count();
        assert!(count >= 2, "{name} has {count}");
    }
    assert_eq!(Mutant::RaymondLifo.name(), "raymond-lifo");
    for mutant in Mutant::ALL {
        let name = mutant.name();
        assert!(name.starts_with(mutant.part()), "{name}");
    }
}
