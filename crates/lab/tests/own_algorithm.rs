//! Runs the example of an algorithm from outside, which asserts what it prints.

#[path = "../examples/own_algorithm.rs"]
mod example;

#[test]
fn an_algorithm_from_outside_is_simulated_and_searched() {
    example::main();
}
