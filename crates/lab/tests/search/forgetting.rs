//! Does everything still hold if quiescent nodes are forgotten and re-created, one by one or all
//! together, at any time or never?

use std::sync::Arc;

use soloist_algorithms::carvalho_roucairol::{CarvalhoRoucairol, STAIRCASE};
use soloist_algorithms::central::Central;
use soloist_algorithms::chaudhuri_karaata::ChaudhuriKaraata;
use soloist_algorithms::lamport::{Lamport, SPARE_ACKS};
use soloist_algorithms::le_lann::{self, LeLann};
use soloist_algorithms::lodha_kshemkalyani::{CLOCK_EVERYWHERE, LodhaKshemkalyani, ONE_REPLY};
use soloist_algorithms::maekawa::Maekawa;
use soloist_algorithms::naimi_trehel::NaimiTrehel;
use soloist_algorithms::neamatollahi::{self, Neamatollahi};
use soloist_algorithms::neilsen_mizuno::NeilsenMizuno;
use soloist_algorithms::raymond::{INITIALIZE, Raymond};
use soloist_algorithms::ricart_agrawala::RicartAgrawala;
use soloist_algorithms::suzuki_kasami::SuzukiKasami;
use soloist_algorithms::{Algorithm, Channels, NodeId, Shape, Start, Variant, VariantSet};
use soloist_lab::scenario::replay;
use soloist_lab::search::{Bounds, Limits, Outcome, search};

/// An empty form selects the default shape.
fn on<A: Algorithm>(form: &str, variant: Option<Variant>, requests: &[u8]) -> Bounds<A::Shape> {
    let nodes = requests.len();
    let shape = match form {
        "" => A::Shape::default_for(nodes),
        form => A::Shape::parse(form, nodes).unwrap(),
    };
    Bounds {
        shape: Arc::new(shape),
        variants: variant
            .iter()
            .fold(VariantSet::default(), |set, v| set.with(*v)),
        limits: Limits {
            states_max: 2_000_000,
            ..Limits::new(A::INFO.channels)
        },
        ..Bounds::of::<A>(requests)
    }
}

#[track_caller]
fn states<A: Algorithm>(bounds: &Bounds<A::Shape>) -> usize {
    match search::<A>(bounds) {
        Outcome::Holds { states, cut: 0, .. } => states,
        outcome => panic!("{outcome:#?}"),
    }
}

fn forgetting<S>(bounds: &Bounds<S>) -> Bounds<S> {
    Bounds {
        limits: Limits {
            forgets: true,
            ..bounds.limits
        },
        ..bounds.clone()
    }
}

/// Asserts that everything holds, and that forgetting leads to states that do not occur otherwise.
#[track_caller]
fn may_forget<A: Algorithm>(form: &str, variant: Option<Variant>, requests: &[u8]) {
    let bounds = on::<A>(form, variant, requests);
    let (plain, forgetful) = (states::<A>(&bounds), states::<A>(&forgetting(&bounds)));
    assert!(plain < forgetful, "{plain} {forgetful}");
}

/// Like [`may_forget`], with each node in turn inside at the start, and home there or at node 0. A
/// re-created node does not know of that start.
#[track_caller]
fn may_forget_whoever_starts_inside<A: Algorithm>(variant: Option<Variant>, requests: &[u8]) {
    for inside in NodeId::all(requests.len()) {
        for home in [inside, NodeId::new(0)] {
            let bounds = Bounds {
                start: Start {
                    home,
                    inside: Some(inside),
                },
                ..on::<A>("", variant, requests)
            };
            states::<A>(&forgetting(&bounds));
        }
    }
}

/// Asserts that a quiescent node equals a new one, so that forgetting changes nothing.
#[track_caller]
fn differs_in_nothing<A: Algorithm>(form: &str, variant: Option<Variant>, requests: &[u8]) {
    for channels in [A::INFO.channels, Channels::Fifo] {
        let mut bounds = on::<A>(form, variant, requests);
        bounds.limits.channels = channels;
        assert_eq!(
            states::<A>(&bounds),
            states::<A>(&forgetting(&bounds)),
            "{}",
            A::INFO.name
        );
    }
    may_forget_whoever_starts_inside::<A>(variant, &[1, 1, 1]);
}

#[test]
fn ricart_agrawala_needs_its_clock_only() {
    may_forget::<RicartAgrawala>("", None, &[3, 3]);
    may_forget::<RicartAgrawala>("", None, &[2, 2, 2]);
    may_forget_whoever_starts_inside::<RicartAgrawala>(None, &[1, 1, 1]);
}

/// It also loses permissions, which is harmless.
#[test]
fn carvalho_roucairol_needs_its_clock_only() {
    may_forget::<CarvalhoRoucairol>("", None, &[3, 3]);
    may_forget::<CarvalhoRoucairol>("", None, &[2, 2, 2]);
    may_forget_whoever_starts_inside::<CarvalhoRoucairol>(None, &[2, 1, 1]);
}

/// If a node were forgotten alone, it would regain permissions that it gave away. A mutant does
/// that.
#[test]
fn staircase_is_forgotten_together() {
    may_forget::<CarvalhoRoucairol>("", Some(STAIRCASE), &[3, 3]);
    may_forget::<CarvalhoRoucairol>("", Some(STAIRCASE), &[2, 2, 2]);
    may_forget_whoever_starts_inside::<CarvalhoRoucairol>(Some(STAIRCASE), &[2, 1, 1]);
}

#[test]
fn lamport_needs_its_clock_only() {
    for variant in [None, Some(SPARE_ACKS)] {
        may_forget::<Lamport>("", variant, &[3, 3]);
        may_forget::<Lamport>("", variant, &[1, 1, 1]);
        may_forget_whoever_starts_inside::<Lamport>(variant, &[1, 1, 0]);
    }
}

#[test]
fn maekawa_needs_its_clock_only() {
    may_forget::<Maekawa>("", None, &[2, 2, 2]);
    may_forget::<Maekawa>("grid", None, &[2, 2, 2]);
    may_forget::<Maekawa>("grid", None, &[0, 1, 1, 1]);
    may_forget_whoever_starts_inside::<Maekawa>(None, &[1, 1, 1]);
}

#[test]
fn maekawa_needs_its_clock_only_in_any_order() {
    for (form, requests) in [("", [3, 3].as_slice()), ("grid", &[1, 1, 1])] {
        let mut bounds = on::<Maekawa>(form, None, requests);
        bounds.limits.channels = Channels::Any;
        states::<Maekawa>(&forgetting(&bounds));
    }
}

#[test]
fn lodha_kshemkalyani_is_forgotten_together() {
    may_forget::<LodhaKshemkalyani>("", None, &[3, 3]);
    may_forget::<LodhaKshemkalyani>("", None, &[2, 2, 2]);
    may_forget::<LodhaKshemkalyani>("", None, &[1, 1, 1, 0]);
}

#[test]
fn lodha_kshemkalyani_is_forgotten_together_in_its_variants() {
    may_forget::<LodhaKshemkalyani>("", Some(ONE_REPLY), &[2, 2, 1]);
    may_forget::<LodhaKshemkalyani>("", Some(CLOCK_EVERYWHERE), &[2, 2, 1]);
    may_forget_whoever_starts_inside::<LodhaKshemkalyani>(None, &[2, 1, 1]);
}

#[test]
fn others_are_idle_only_in_their_initial_state() {
    differs_in_nothing::<Central>("", None, &[2, 2, 2]);
    differs_in_nothing::<Raymond>("line", Some(INITIALIZE), &[1, 1, 1]);
    differs_in_nothing::<LeLann>("", None, &[1, 1, 1]);
    differs_in_nothing::<LeLann>("", Some(le_lann::RESTING), &[2, 2, 2]);
    differs_in_nothing::<Neamatollahi>("2x2", Some(neamatollahi::RESTING), &[1, 1, 1, 1]);
}

#[test]
fn tokens_are_forgotten_together() {
    may_forget::<SuzukiKasami>("", None, &[2, 2, 2]);
    may_forget::<NaimiTrehel>("", None, &[2, 2, 2]);
    may_forget::<NeilsenMizuno>("line", None, &[2, 2, 2, 2]);
    may_forget::<Raymond>("line", None, &[2, 2, 2, 2]);
    may_forget::<Raymond>("star:4", None, &[1; 5]);
    may_forget::<ChaudhuriKaraata>("2x1x2", None, &[2, 2, 2, 2]);
    may_forget_whoever_starts_inside::<SuzukiKasami>(None, &[1, 1, 1]);
    may_forget_whoever_starts_inside::<NaimiTrehel>(None, &[2, 1, 1]);
    may_forget_whoever_starts_inside::<NeilsenMizuno>(None, &[2, 1, 1]);
    may_forget_whoever_starts_inside::<Raymond>(None, &[2, 1, 1]);
    may_forget_whoever_starts_inside::<ChaudhuriKaraata>(None, &[2, 1, 1]);
}

/// The steps in traces of these searches.
#[test]
fn a_scenario_can_forget_all() {
    let text = "algorithm suzuki-kasami\nnodes 2\n\n> request 1\n";
    let refused = replay(&format!("{text}> forget all\n")).unwrap_err();
    assert!(
        refused.to_string().ends_with("or a message is in flight"),
        "{refused}"
    );
    let all = replay(&format!(
        "{text}> run\n> release 1\n> forget all\n> request 0\n"
    ))
    .unwrap();
    assert!(all.ends_with("> request 0\n0 enters\n"), "{all}");
    let fair = text.replace("suzuki-kasami", "lodha-kshemkalyani");
    let jumped = replay(&format!(
        "{fair}> run\n> release 1\n> forget all 0 7\n> request 0\n"
    ));
    let jumped = jumped.unwrap();
    assert!(jumped.contains("0 -> 1 REQUEST (8,0)"), "{jumped}");
    let alone = text.replace("suzuki-kasami", "ra");
    let refused = replay(&format!("{alone}> run\n> release 1\n> forget all\n")).unwrap_err();
    assert!(
        refused
            .to_string()
            .ends_with("are forgotten one by one; use 'forget NODE'"),
        "{refused}"
    );
}

/// The steps in traces of these searches.
#[test]
fn a_scenario_can_forget() {
    let head = "algorithm ra\nnodes 2\n\n> request 0\n0 -> 1 REQUEST 1\n";
    let again = "> run\n1 -> 0 REPLY\n0 enters\n> release 0\n> forget 0\n> show 0\n\
                0: idle own=0 seen=1 awaited={} deferred={}\n> forget 1 5\n> request 1\n1 -> 0 REQUEST 6\n";
    let text = format!("{head}{again}");
    assert_eq!(replay(&text).unwrap(), text);
    for (step, reason) in [
        ("forget 0", "0 is not idle enough to be forgotten"),
        ("run\n> forget 1 0", "its clock is at 1 and cannot go back"),
        ("forget 1 x", "invalid clock 'x': use a whole number"),
    ] {
        let refused = replay(&format!("{head}> {step}\n")).unwrap_err();
        assert!(refused.to_string().ends_with(reason), "{refused}");
    }
}
