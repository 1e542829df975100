import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brokenNow, reason } from '../../src/dashboard/changed.js';
import { clock, length, list, quoted, span, when } from '../../src/dashboard/format.js';
import { incident } from '../../src/dashboard/incident.js';
import { lanesOf } from '../../src/dashboard/lanes.js';
import { anchor, section } from '../../src/dashboard/manual.js';
import { columns, latest, Model } from '../../src/dashboard/model.js';
import { sentence, turnsOf } from '../../src/dashboard/turns.js';
import { changes, healthy, locks, overview, recent } from './example.js';

const NOW = 1_790_000_000_000;

/** @param {number} entries */
const point = (entries) => ({
  entries,
  wait_p50_ms: null,
  wait_p99_ms: entries,
  hand_over_p50_ms: null,
  hand_over_p99_ms: null,
  lost: 0,
});

test('times are short and never jump backwards at their limits', () => {
  const cases = /** @type {const} */ ([
    [0, '0 ms'],
    [1.94, '1.9 ms'],
    [38, '38 ms'],
    [999.7, '1.0 s'],
    [1900, '1.9 s'],
    [9960, '10 s'],
    [59_600, '1 min 00 s'],
    [184_000, '3 min 04 s'],
    [7_500_000, '2 h 05 min'],
    [273_600_000, '3 d 4 h'],
    [-5, '0 ms'],
  ]);
  for (const [ms, text] of cases) assert.equal(span(ms), text, String(ms));
  const [problem] = overview(NOW).problems;
  const known = { ...problem, since_ms: NOW - 40_000 };
  assert.equal(when(known, NOW, NOW), `for 40 s, since ${clock(NOW - 40_000)}`);
  assert.equal(when(known, NOW + 1, NOW + 12_000), 'not examined, last seen 12 s ago');
  const over = { ...known, is_over: true };
  assert.equal(when(over, NOW + 1, NOW + 12_000), 'over, last seen 12 s ago');
  assert.equal(list(['a', 'b', 'c']), 'a, b and c');
  assert.deepEqual([3000, 2500, 500, 240_000].map(length), ['3 s', '2.5 s', '500 ms', '4 min']);
});

test('a hostile name is one argument of a command', () => {
  assert.equal(quoted('billing/close-month'), 'billing/close-month');
  assert.equal(quoted('a b'), "'a b'");
  assert.equal(quoted("$(rm -rf ~)'; x"), "'$(rm -rf ~)'\\''; x'");
});

test('points stand at their seconds, and old ones go', () => {
  const model = new Model();
  model.extend({ from_s: 1000, points: [point(1), point(2)] });
  assert.equal(model.points.length, 900);
  assert.deepEqual(model.points.slice(-2), [point(1), point(2)]);
  assert.equal(model.points[0], null);
  // Two seconds were not told.
  model.extend({ from_s: 1004, points: [point(5)] });
  assert.deepEqual(model.points.slice(-5), [point(1), point(2), null, null, point(5)]);
  // A second that is told again replaces the old one.
  model.extend({ from_s: 1003, points: [point(4), point(6)] });
  assert.deepEqual(model.points.slice(-3), [null, point(4), point(6)]);
  model.extend({ from_s: 5000, points: [point(7)] });
  assert.equal(model.points.filter(Boolean).length, 1);
  model.restart();
  model.extend({ from_s: 5000, points: [null, point(8)] });
  assert.deepEqual(model.points.slice(-2), [null, point(8)]);
});

test('a whole history replaces the one before, if the clock was set back', () => {
  const model = new Model();
  const points = (/** @type {number} */ entries) =>
    Array.from({ length: 900 }, () => point(entries));
  model.extend({ from_s: 9000, points: points(1) });
  model.extend({ from_s: 5000, points: points(2) });
  assert.deepEqual([model.from, model.points[0], model.points.at(-1)], [5000, point(2), point(2)]);
  model.extend({ from_s: 5900, points: [point(3)] });
  assert.deepEqual(model.points.slice(-2), [point(2), point(3)]);
});

test('losses do not crowd out an eviction', () => {
  const model = new Model();
  const [of] = changes(NOW);
  const losses = Array.from({ length: 1500 }, (_, i) => ({
    ...of,
    id: `n1:${i}`,
    kind: 'lost',
    at_ms: NOW - 1500 + i,
  }));
  model.add([{ ...of, id: '7:Evicted:n7', kind: 'evicted', at_ms: NOW - 60_000 }, ...losses]);
  assert.equal(model.changes.length, 1001);
  assert.equal(model.changes[0].kind, 'evicted');
});

test('a line has the peak of each pixel, and gaps where nothing is known', () => {
  const points = [point(1), point(9), null, null, point(3), point(2)];
  assert.deepEqual(
    columns(points, ({ entries }) => entries, 3),
    [9, null, 3],
  );
  assert.equal(
    latest(points, ({ entries }) => entries),
    2,
  );
  assert.equal(
    latest([null], ({ entries }) => entries),
    null,
  );
});

test('a change that is told twice is there once, in order of time', () => {
  const model = new Model();
  const all = changes(NOW);
  model.add(all.slice(3).map((it) => ({ ...it, why: 'not known yet' })));
  model.add(all);
  assert.deepEqual(
    model.changes.map(({ id }) => id),
    all.map(({ id }) => id),
  );
  assert.ok(model.changes.every(({ why }) => why !== 'not known yet'));
  assert.equal(model.recent(NOW).length, 5, 'two are older than 15 minutes');
  // Another node has other names for the same changes.
  model.restart();
  model.add(all.map((it) => ({ ...it, id: `n1:${it.id}` })));
  assert.equal(model.changes.length, all.length);
});

test('lanes tell who was a member, who led, and when epochs began', () => {
  const begin = NOW - 900_000;
  const { lanes, epochs, quiet } = lanesOf(overview(NOW), changes(NOW), begin, NOW);
  assert.deepEqual(
    lanes.map(({ name }) => name),
    ['n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7', 'n8'],
  );
  const by = Object.fromEntries(lanes.map((lane) => [lane.name, lane]));
  assert.deepEqual(by.n1.spans, [{ from: begin, to: NOW, isMember: true }]);
  assert.deepEqual(by.n8.spans, [
    { from: begin, to: NOW - 751_000, isMember: false },
    { from: NOW - 751_000, to: NOW, isMember: true },
  ]);
  assert.deepEqual(by.n7.spans, [
    { from: begin, to: NOW - 40_000, isMember: true },
    { from: NOW - 40_000, to: NOW, isMember: false },
  ]);
  assert.deepEqual(by.n4.leads, [{ from: begin, to: NOW - 241_000 }]);
  assert.deepEqual(by.n3.leads, [{ from: NOW - 241_000, to: NOW }]);
  assert.deepEqual(
    epochs.map(({ epoch, at }) => [epoch, (NOW - at) / 1000]),
    [
      [38, 900],
      [39, 751],
      [40, 238],
      [41, 40],
    ],
  );
  assert.equal(quiet, 0);
});

test('only the last break of a link that is down is marked', () => {
  const [of] = changes(NOW);
  const broke = (
    /** @type {string} */ from,
    /** @type {string} */ to,
    /** @type {number} */ i,
  ) => ({
    ...of,
    id: `${from}:${i}`,
    kind: 'link-down',
    node: to,
    what: `Link ${from} to ${to} broke`,
  });
  const last = broke('n1', 'n2', 9);
  const all = [
    last,
    broke('n10', 'n2', 3),
    broke('n2', 'n1', 4),
    broke('n1', 'n20', 8),
    { ...broke('n1', 'n2', 7), kind: 'link-up' },
    broke('n1', 'n2', 6),
  ];
  assert.deepEqual([...brokenNow(all, [{ from: 'n1', to: 'n2' }])], [last]);
  assert.equal(brokenNow(all, []).size, 0);
});

test('a reason is a sentence, and names of nodes stay as they are', () => {
  const [of] = changes(NOW);
  const said = (/** @type {object} */ it) => reason({ ...of, ...it });
  const broke = { kind: 'link-down', node: 'n1' };
  assert.equal(said({ ...broke, why: 'the connection broke.' }), 'The connection broke.');
  assert.equal(said({ ...broke, why: 'n1 closed it.' }), 'n1 closed it.');
  assert.equal(said({ kind: 'joined', epoch: 2, why: '' }), 'It is a member from epoch 2 on.');
  assert.equal(said({ kind: 'link-up', why: '' }), '');
});

test('an overview is old without a newer one, whatever else the node sends', () => {
  const model = new Model();
  assert.ok(!model.isOld(99_000), 'there is none');
  model.hear(overview(NOW), 1000);
  assert.ok(!model.isOld(5900));
  model.add(changes(NOW));
  assert.ok(model.isOld(6100));
});

test('a large cluster has lanes for nodes to which something happened', () => {
  const all = overview(NOW);
  const many = Array.from({ length: 500 }, (_, i) => ({ ...all.members[0], name: `m${i}` }));
  const { lanes, quiet } = lanesOf(
    { ...all, members: [...all.members, ...many] },
    changes(NOW),
    NOW - 900_000,
    NOW,
  );
  assert.deepEqual(
    lanes.map(({ name }) => name),
    ['n3', 'n4', 'n7', 'n8'],
  );
  assert.equal(quiet, 504);
});

test('turns of a lock: the holder first, then waiters in order, then who was there before', () => {
  const { rows, reach, more } = turnsOf(locks()[0], recent(NOW), NOW);
  assert.deepEqual(
    rows.map(({ owner, node }) => `${owner} ${node}`),
    ['deploy n5', 'ledger n6', 'deploy n1', 'ledger n2', 'report n8'],
  );
  assert.equal(reach, 240_000);
  assert.equal(more, 0);
  const [holder, first, , , gone] = rows;
  assert.deepEqual(holder.boxes[0], {
    kind: 'inside',
    from: NOW - 192_000,
    to: NOW,
    isNow: true,
    isBad: false,
  });
  assert.equal(holder.boxes[1].kind, 'waiting', 'it waited before it got the lock');
  assert.deepEqual(
    first.boxes.map(({ kind, isNow }) => [kind, isNow]),
    [
      ['waiting', true],
      ['inside', false],
      ['inside', false],
    ],
  );
  assert.deepEqual(gone.boxes, [
    { kind: 'waiting', from: NOW - 55_000, to: NOW - 30_000, isNow: false, isBad: true },
  ]);
});

test('two owners whose names join to the same text have rows of their own', () => {
  const lock = { ...locks()[0], waiters: [{ owner: 'a b', node: 'c', waited_for_ms: 1 }] };
  const events = [{ ...recent(NOW)[0], owner: 'a', node: 'b c' }];
  assert.equal(turnsOf(lock, events, NOW).rows.length, 3);
});

test('events are sentences', () => {
  const said = recent(NOW).map((event) => sentence(event, span));
  assert.deepEqual(said.slice(3, 6), [
    'leaves after 1.6 s',
    'gets it after 900 ms, fence 43980465111158',
    'begins to wait',
  ]);
  assert.equal(said[7], 'gives up after 25 s');
});

test('the incident is plain text with problems, commands and changes', () => {
  const text = incident(overview(NOW), changes(NOW), { now: NOW, lostFor: null, lock: locks()[0] });
  assert.match(
    text,
    /^soloist, 2026-09-21 \d\d:\d\d:\d\d UTC, seen from n2, epoch 41; no answer from n4 and n7\n/,
  );
  assert.match(text, /1\. Keeper n4 is down \(critical, for 4 min 02 s\)/);
  assert.match(text, / {3}If it is gone for good: soloist cluster promote n6/);
  assert.match(text, /Lock billing\/close-month: inside is deploy on n5 for 3 min 12 s/);
  assert.match(text, /n7 evicted: n6 and n7 do not reach each other/);
  assert.doesNotMatch(text, /is old|be old/);
  const later = { now: NOW + 7000, lostFor: null, lock: null };
  assert.match(incident(overview(NOW), [], later), /NO OVERVIEW FROM THE NODE FOR 7\.0 s: .* old/);
  const alone = { ...healthy(NOW), without_lease_for_ms: 9000 };
  const old = incident(alone, [], { now: NOW, lostFor: 5000, lock: null });
  assert.match(old, /WHICH HAS HAD NO LEASE FOR 9\.0 s/);
  assert.match(old, /CONNECTION LOST 5\.0 s AGO/);
  assert.match(old, /15 minutes:\nnothing\n/);
});

test('the manual is cut at headings, and not at comments in code', () => {
  const text =
    '# Top\n\n## A keeper is down\n\none\n```sh\n# not a heading\n```\n### More\ntwo\n## Next\nthree';
  assert.equal(anchor('A keeper is down'), 'a-keeper-is-down');
  assert.equal(anchor('`[api]`, and more'), 'api-and-more');
  assert.equal(
    section(text, 'a-keeper-is-down'),
    'one\n```sh\n# not a heading\n```\n### More\ntwo',
  );
  assert.equal(section(text, 'nothing'), null);
});
