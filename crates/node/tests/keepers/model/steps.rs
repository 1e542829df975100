//! Steps of the model.

mod election;
mod leader;
mod operator;

use election::elect;
use leader::lead;
use operator::{fail, found, operate, recover};

use super::state::{Setup, State};

/// Description of a step, and the state after it or what it breaks.
pub type Next = (String, Result<State, String>);

/// Steps that need neither a fault nor an operator.
pub fn by_itself(setup: &Setup, state: &State) -> Vec<Next> {
    let mut next = Vec::new();
    for machine in 0..state.machines.len() {
        if !state.machines[machine].up {
            continue;
        }
        found(setup, state, machine, &mut next);
        elect(setup, state, machine, &mut next);
        lead(setup, state, machine, &mut next);
    }
    next
}

/// All steps, including faults and those of operators.
pub fn all(setup: &Setup, state: &State) -> Vec<Next> {
    let mut next = by_itself(setup, state);
    for machine in 0..state.machines.len() {
        operate(setup, state, machine, &mut next);
        fail(setup, state, machine, &mut next);
    }
    recover(setup, state, &mut next);
    next
}

fn changed(state: &State, change: impl FnOnce(&mut State)) -> Result<State, String> {
    let mut after = state.clone();
    change(&mut after);
    Ok(after)
}
