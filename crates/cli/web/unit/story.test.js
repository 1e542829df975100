import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Model } from '../src/model.js';
import { story } from '../src/story.js';
import { example } from './example.js';

test('each step is told in a sentence', () => {
  const model = new Model(example());
  assert.deepEqual(
    model.run.steps.map((_, i) => story(model, i)),
    [
      'B requests and sends REQUEST to A.',
      'A gets REQUEST from B and sends TOKEN to B.',
      'B gets TOKEN from A and enters.',
      'B leaves and sends DONE to A.',
    ],
  );
});

test('a step without messages tells what it changed', () => {
  const run = example();
  run.steps[1].sends = [];
  run.steps[1].changes.push({ node: 0, field: 'queue', before: [], after: [1] });
  const told = () => story(new Model(run), 1);
  assert.equal(told(), 'A gets REQUEST from B. queue is now [B].');
  run.steps[1].changes = [];
  assert.equal(told(), 'A gets REQUEST from B, and nothing changes.');
  run.steps[1].action = 'lose';
  assert.equal(told(), 'B → A REQUEST 1 is lost.');
});

test('messages to the same nodes are told together', () => {
  const run = example();
  run.names = ['A', 'B', 'C', 'D', 'E', 'F', 'G'];
  run.start = run.names.map(() => run.start[1]);
  const to = (/** @type {string} */ label, /** @type {number[]} */ nodes) =>
    nodes.map((node, i) => ({ ...run.steps[0].sends[0], id: 10 + i, to: node, label }));
  run.steps = [{ ...run.steps[0], sends: [...to('X', [0, 2]), ...to('Y', [0, 2])] }];
  assert.equal(story(new Model(run), 0), 'B requests and sends X and Y to A and C.');
  run.steps[0].sends = to('X', [0, 2, 3, 4, 5]);
  assert.equal(story(new Model(run), 0), 'B requests and sends X to 5 nodes.');
  run.steps[0].sends = [...to('X', [0, 2, 3, 4, 5, 6]), ...to('Y', [0])];
  run.steps[0].enter = true;
  const told = 'B requests, enters and sends X to all others and Y to A.';
  assert.equal(story(new Model(run), 0), told);
});
