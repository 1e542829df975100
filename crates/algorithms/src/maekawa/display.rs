//! A node of Maekawa's algorithm as text.

use std::fmt;

use super::{Maekawa, MemberLock};
use crate::Phase;

impl fmt::Display for Maekawa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members_that = |test: fn(MemberLock) -> bool| {
            let set = self.place.shape.set(self.place.me).iter();
            let standings = set.zip(&self.members);
            let names: Vec<_> = standings
                .filter(|(_, standing)| test(**standing))
                .map(|(member, _)| member.to_string())
                .collect();
            names.join(",")
        };
        write!(f, "{}", self.phase)?;
        if self.phase == Phase::Waiting {
            let locked =
                members_that(|s| matches!(s, MemberLock::Locked | MemberLock::LockedInquired));
            let inquired =
                members_that(|s| matches!(s, MemberLock::Inquired | MemberLock::LockedInquired));
            write!(f, " number={} locked={{{locked}}}", self.sequence_number)?;
            write!(f, " failed={} inquired={{{inquired}}}", self.failed)?;
        }
        match self.locking_request {
            Some(request) => write!(f, " | locked for {request}")?,
            None => f.write_str(" | unlocked")?,
        }
        if self.inquired {
            f.write_str(" inquired")?;
        }
        write!(f, " waiting={:?}", self.waiting_queue)
    }
}
