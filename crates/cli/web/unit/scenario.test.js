import assert from 'node:assert/strict';
import { test } from 'node:test';
import { append, cut, merge } from '../src/scenario.js';
import { example } from './example.js';

const HEAD = '# Two nodes.\nalgorithm example\nnames A B\n\n# B requests.\n';

test('a cut at the start leaves the head', () => {
  assert.equal(cut(example(), 0), `${HEAD}\n`);
});

test('a cut keeps the transcript of the last step', () => {
  assert.equal(cut(example(), 1), `${HEAD}> request B\nB -> A REQUEST 1\n`);
  assert.equal(cut(example(), 3), example().text.replace('> release B\n', ''));
  assert.equal(cut(example(), 4), example().text);
});

test('a cut within one line writes its steps one by one', () => {
  const text = `${HEAD}> request B\nB -> A REQUEST 1\n> deliver B A REQUEST 1\n`;
  assert.equal(cut(example(), 2), text);
});

test('a step is one more line', () => {
  assert.equal(append(cut(example(), 0), 'request A'), `${HEAD}\n> request A\n`);
  assert.equal(append('x\n> request A\n', 'run'), 'x\n> request A\n> run\n');
});

test('what did not change stays the same object', () => {
  const old = example();
  const fresh = { ...example(), steps: [], text: 'shorter' };
  const merged = merge(old, fresh, 2);
  assert.equal(merged.steps.length, 2);
  assert.equal(merged.steps[0], old.steps[0]);
  assert.equal(merged.plan, old.plan);
  assert.equal(merged.text, 'shorter');
});
