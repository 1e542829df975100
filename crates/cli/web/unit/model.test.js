import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Model } from '../src/model.js';
import { isRight, solution } from '../src/prediction.js';
import { example } from './example.js';

test('folding forward and back gives the start', () => {
  const model = new Model(example());
  model.go(model.length);
  assert.equal(model.phase(1), 'idle');
  assert.equal(model.hasToken(1), true);
  model.go(0);
  assert.deepEqual(model.nodes, example().start);
  assert.equal(model.flight.size, 0);
});

test('a field that changes twice in one step returns to its first value', () => {
  const run = example();
  const twice = (/** @type {string} */ before, /** @type {string} */ after) => {
    return { node: 0, field: 'phase', before, after };
  };
  run.steps[1].changes.push(twice('idle', 'waiting'), twice('waiting', 'inside'));
  const model = new Model(run);
  model.go(2);
  assert.equal(model.phase(0), 'inside');
  model.go(1);
  assert.equal(model.phase(0), 'idle');
});

test('every position is the same from either side', () => {
  const forward = new Model(example());
  const back = new Model(example());
  back.go(back.length);
  for (let at = 0; at <= forward.length; at++) {
    forward.go(at);
    back.go(back.length);
    back.go(at);
    assert.deepEqual(back.nodes, forward.nodes);
    assert.deepEqual(back.inFlight(), forward.inFlight());
  }
});

test('a position beyond either end is the end', () => {
  const model = new Model(example());
  model.go(99);
  assert.equal(model.at, 4);
  model.go(-3);
  assert.equal(model.at, 0);
  model.go(Number.NaN);
  assert.equal(model.at, 0);
});

test('messages are in flight from when they are sent until they arrive', () => {
  const model = new Model(example());
  model.go(1);
  assert.deepEqual(
    model.inFlight().map((message) => message.label),
    ['REQUEST'],
  );
  model.go(4);
  assert.equal(model.messages.get(2)?.got, Infinity);
  assert.equal(model.messages.get(1)?.got, 3);
});

test('the causal past follows messages and the lines of the nodes', () => {
  const run = example();
  run.steps.push({ ...run.steps[0], node: 0, sends: [], changes: [], line: 12 });
  const model = new Model(run);
  assert.deepEqual([...model.causalPast(2)].sort(), [0, 1, 2]);
  assert.deepEqual([...model.causalPast(4)].sort(), [0, 1, 4], 'not what B did after its request');
  assert.equal(model.causalPast(-1).size, 0);
});

test('boxes cover the time of waiting and inside', () => {
  assert.deepEqual(new Model(example()).spans, [
    { node: 1, phase: 'waiting', from: 1, to: 3 },
    { node: 1, phase: 'inside', from: 3, to: 4 },
  ]);
});

test('values have the names of the nodes', () => {
  const model = new Model(example());
  const [, , holder, queue] = model.run.fields;
  assert.equal(model.text(holder, 0, 1), 'A');
  assert.equal(model.text(holder, 1, 1), 'self');
  assert.equal(model.text(holder, null, 1), 'none');
  assert.equal(model.text(queue, [1, 0], 0), '[B self]');
});

test('the next entry is found, or the end', () => {
  const model = new Model(example());
  assert.equal(model.nextEntry(0), 3);
  assert.equal(model.nextEntry(2), 3, 'the very next step');
  assert.equal(model.nextEntry(3), 4);
});

test('a prediction is right if the next step does it', () => {
  const { steps } = example();
  assert.ok(isRight(steps[1], { who: 0, what: 'TOKEN', whom: 1 }));
  assert.ok(!isRight(steps[1], { who: 1, what: 'TOKEN', whom: 0 }));
  assert.ok(!isRight(steps[1], { who: 0, what: 'REQUEST', whom: 1 }));
  assert.ok(!isRight(steps[1], { who: 0, what: 'TOKEN', whom: 0 }), 'to another node');
  assert.ok(!isRight(steps[1], { who: 0, what: 'sends nothing', whom: null }));
  assert.ok(isRight(steps[2], { who: 1, what: 'enters', whom: null }));
  assert.equal(solution(new Model(example()), 1), 'A sends TOKEN to B');
});
