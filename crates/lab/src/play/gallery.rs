//! Runs to begin with: tours, walk-throughs of the papers, faults in print, and every algorithm
//! under light and heavy load.

use serde::Serialize;
use soloist_algorithms::Choice;

use super::simulated::scenario_of;
use super::{Thumbnail, run};
use crate::simulate::{Load, Setup};

/// A run of the gallery.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Exhibit {
    /// Its name in links.
    pub name: String,
    /// The group that it is listed in.
    pub group: &'static str,
    /// Its title.
    pub title: String,
    /// What it shows, in one sentence.
    pub sentence: String,
    /// A small picture of it.
    pub picture: Thumbnail,
}

/// A scenario that comes with the lab.
struct Piece {
    name: &'static str,
    group: &'static str,
    title: &'static str,
    sentence: &'static str,
    text: &'static str,
}

macro_rules! pieces {
    ($($group:literal: $folder:literal { $($name:literal, $title:literal, $sentence:literal;)* })*) => {
        &[$($(Piece {
            name: $name,
            group: $group,
            title: $title,
            sentence: $sentence,
            text: include_str!(concat!("../../", $folder, "/", $name, ".txt")),
        },)*)*]
    };
}

const PIECES: &[Piece] = pieces! {
    "tours": "tours" {
        "tour-raymond", "Raymond 1989",
            "On a tree, one REQUEST speaks for a whole branch.";
        "tour-maekawa", "Maekawa 1985",
            "A node asks √N others, because every two sets have a node in common.";
        "tour-chaudhuri-karaata", "Chaudhuri and Karaata 1998",
            "Planes have a head each, and one plane at a time is privileged.";
        "tour-neamatollahi", "Neamatollahi et al. 2017",
            "A token goes down a column, and round each row that was alerted.";
        "tour-lodha-kshemkalyani", "Lodha and Kshemkalyani 2000",
            "Concurrent requests answer each other, which saves replies.";
    }
    "papers": "tests/scenarios" {
        "raymond-figures-1-to-3", "Raymond, Figs. 1 to 3",
            "The walk-through of §2: the privilege moves from E to A.";
        "raymond-figure-7", "Raymond, Fig. 7",
            "Every node requests, and the privilege goes once round the tree.";
        "maekawa-circular-locking", "Maekawa, §5",
            "Three nodes lock each other in a circle, and a RELINQUISH opens it.";
        "chaudhuri-karaata-colours", "Chaudhuri and Karaata, Figs. 2 and 3",
            "The colours of the heads' tokens on the mesh of 27 nodes.";
        "neamatollahi-3.4", "Neamatollahi et al., §3.4",
            "The example of Fig. 3 with 25 nodes.";
        "lodha-kshemkalyani-fig3", "Lodha and Kshemkalyani, Fig. 3",
            "Three concurrent requests cost eight messages.";
        "lodha-kshemkalyani-fig6", "Lodha and Kshemkalyani, Fig. 6",
            "One REPLY is the logical reply of several processes.";
    }
    "faults": "tours" {
        "fault-l1", "L1: a late REQUEST",
            "Lodha-Kshemkalyani as printed: a satisfied request is queued forever.";
        "fault-l2", "L2: an old FLUSH",
            "Lodha-Kshemkalyani as printed: an old FLUSH counts as an answer, and two nodes are inside.";
        "fault-l3", "L3: a request instead of a reply",
            "Lodha-Kshemkalyani as printed: a node that requests again does not report what was satisfied.";
        "fault-l4", "L4: a number used twice",
            "Lodha-Kshemkalyani as printed: a node does not see its own number.";
        "fault-l5", "L5: Ricart-Agrawala in Fig. 1",
            "As described in Lodha and Kshemkalyani's review: two nodes inside after two requests.";
        "fault-l6", "L6: one message too few",
            "2(N-1)-x leaves out a FLUSH.";
        "fault-m1", "M1: a displaced request",
            "Maekawa as printed: three requests on a 2x2 grid deadlock.";
        "fault-m2", "M2: a late INQUIRE",
            "Maekawa as printed: a lock is taken from a node that is inside.";
        "fault-m3", "M3: more than 5√N messages",
            "Maekawa: INQUIREs and RELINQUISHes make an entry dearer than the paper's bound.";
        "fault-m4", "M4: how long a FAILED counts",
            "In one reading of step (3), Maekawa's repaired rules deadlock.";
        "fault-c1", "C1: stale requests",
            "Chaudhuri-Karaata as printed: a copy of a served request takes the token away.";
        "fault-c2", "C2: a forgotten plane",
            "Chaudhuri-Karaata as printed: no node asks to have the token back.";
        "fault-c3", "C3: queues beyond their bound",
            "Chaudhuri-Karaata as printed: seven requests where Theorem 4 allows six.";
        "fault-c4", "C4: the number of links",
            "A mesh of eight nodes has seven links where the formula has thirteen.";
        "fault-n1", "N1: a row that is never read",
            "Neamatollahi as printed: the token passes a waiting node again and again.";
        "fault-n2", "N2: the cost of one request",
            "A request that is alone costs eight messages where seven are allowed.";
        "fault-n3", "N3: the cost of several requests",
            "Three requests at once cost 28 messages where 27 are allowed.";
        "fault-r1", "R1: two conclusions interchanged",
            "Raymond's recovery as printed: a node waits for the answer to a request that it never sent.";
        "fault-r2", "R2: an ADVISE overtakes a PRIVILEGE",
            "Raymond's recovery over channels without order: two privileges, two nodes inside.";
        "fault-r3", "R3: duplicates forever",
            "Raymond's recovery with duplicates: the privilege moves back and forth although no node wants it.";
        "fault-r4", "R4: a counter that is lost",
            "Raymond's remedy against starvation: a neighbour that fails goes first once more.";
        "fault-r5", "R5: demand and cost",
            "Raymond on a star: an entry costs more, not less, when all nodes request.";
    }
};

/// Loads of the gallery: the name of the group, the suffix of the name, the load, its sentence.
const LOADS: [(&str, &str, Load, &str); 2] = [
    (
        "light load",
        "light",
        Load::Light,
        "One node requests at a time, after a pause.",
    ),
    (
        "heavy load",
        "heavy",
        Load::Heavy,
        "Every node requests again as soon as it leaves.",
    ),
];

/// All runs of the gallery, in order. Plays each of them, for its picture.
pub fn gallery() -> Vec<Exhibit> {
    let pieces = PIECES.iter().map(|piece| Exhibit {
        name: piece.name.to_owned(),
        group: piece.group,
        title: piece.title.to_owned(),
        sentence: piece.sentence.to_owned(),
        picture: picture(piece.name),
    });
    let simulated = LOADS.iter().flat_map(|(group, suffix, _, sentence)| {
        Choice::all().map(move |choice| {
            let name = format!("{}-{suffix}", choice.name);
            Exhibit {
                picture: picture(&name),
                name,
                group,
                title: choice.name.to_owned(),
                sentence: (*sentence).to_owned(),
            }
        })
    });
    pieces.chain(simulated).collect()
}

fn picture(name: &str) -> Thumbnail {
    let text = exhibit(name).expect("it is a run of the gallery");
    let run = run(&text, 0).expect("every run of the gallery can be played");
    Thumbnail::of(&run)
}

/// The scenario of a run of the gallery, or `None` if there is no run of this name.
pub fn exhibit(name: &str) -> Option<String> {
    if let Some(piece) = PIECES.iter().find(|piece| piece.name == name) {
        return Some(piece.text.to_owned());
    }
    let (load, choice) = LOADS.iter().find_map(|(_, suffix, load, _)| {
        let algorithm = name.strip_suffix(suffix)?.strip_suffix('-')?;
        let choice = Choice::all().find(|choice| choice.name == algorithm)?;
        Some((*load, choice))
    })?;
    let setup = Setup {
        load,
        entries: 12,
        ..Setup::new(choice, 9)
    };
    Some(scenario_of(&setup).expect("a short run of a small cluster can be played"))
}
