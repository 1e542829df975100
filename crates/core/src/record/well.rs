//! What was examined and is well.

use soloist_api::dashboard::{KeeperState, Problem, ProblemCode};

use super::facts::{Facts, KeeperFact};
use super::words::{count, span};

impl Facts {
    /// What was examined and is well. A line claims only what was heard: members that did not
    /// answer are not counted.
    pub(super) fn well(&self, problems: &[Problem]) -> Vec<String> {
        let mut well = Vec::new();
        if self.is_outside() {
            return well;
        }
        let mut add = |codes: &[ProblemCode], line: Option<String>| {
            let is_well = problems
                .iter()
                .all(|problem| !codes.contains(&problem.code));
            well.extend(line.filter(|_| is_well));
        };
        let all = self.members.len();
        let heard = match self.reports().count() {
            heard if heard == all => String::new(),
            heard => format!(" ({heard} of {} heard)", count(all, "member")),
        };
        // Without a leader, nobody has told of leases and clocks.
        let leader = self.leader.as_ref();
        let works =
            |keeper: &KeeperFact| matches!(keeper.state, KeeperState::Leads | KeeperState::Follows);
        let keepers = self.keepers.len();
        let all_work = leader.filter(|_| self.keepers.iter().all(works));
        add(
            &[ProblemCode::KeeperDown],
            all_work.map(|leader| format!("Keepers: all {keepers} work, {leader} leads")),
        );
        add(
            &[ProblemCode::NodeOutside, ProblemCode::NodeSilent],
            Some(format!("Nodes: all {} answer", count(all, "member"))),
        );
        let mut members = self.members.iter();
        let all_told = leader.filter(|_| members.all(|member| member.lease_left_ms.is_some()));
        add(
            &[ProblemCode::LeaseNearEnd],
            all_told.map(|_| "Leases: renewed in time".to_owned()),
        );
        let drift = self.drift_percent;
        add(
            &[ProblemCode::ClocksApart],
            leader.map(|_| format!("Clocks: within {drift} % of the leader's rate")),
        );
        let reports = self.reports();
        let first = reports
            .filter_map(|(_, report)| report.certificate_ends_ms)
            .min();
        let first = first.map(|ends| span(ends.saturating_sub(self.now_ms)));
        add(
            &[ProblemCode::CertificateExpires],
            first.map(|left| format!("Certificates: the first expires in {left}{heard}")),
        );
        let are_up = self.links_down().is_empty();
        add(
            &[ProblemCode::LinkDown],
            are_up.then(|| format!("Links: none is down{heard}")),
        );
        let limit = span(self.unusual_wait_ms());
        add(
            &[ProblemCode::LongWait],
            Some(format!("Waits: none is longer than {limit}{heard}")),
        );
        let version = self.by_version().into_keys().next();
        add(
            &[ProblemCode::VersionsDiffer],
            version.map(|version| format!("Versions: all {version}{heard}")),
        );
        well
    }
}
