import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boxOf, declutter, Layout, queued } from '../src/geometry.js';

/**
 * @param {number} n
 * @returns {import('../src/model.js').Plan}
 */
function grid(n) {
  const side = Math.ceil(Math.sqrt(n));
  const nodes = Array.from({ length: n }, (_, i) => [i % side, Math.floor(i / side)]);
  return {
    kind: 'torus',
    width: side - 1,
    height: side - 1,
    nodes: /** @type {[number, number][]} */ (nodes),
    edges: [],
    stubs: [],
    sets: null,
  };
}

/** @type {(id: number, from: number, to: number) => import('../src/model.js').Message} */
const message = (id, from, to) => {
  const rest = { label: 'M', content: 'M', token: false, sent: 1, got: 2, lost: false };
  return { id, from, to, ...rest };
};

test('all nodes are inside the box, and none covers another', () => {
  for (const n of [1, 2, 9, 64, 500]) {
    const layout = new Layout(grid(n), 768, 360);
    for (const { x, y } of layout.spots) {
      assert.ok(x >= 0 && x <= 768 && y >= 0 && y <= 360, `${n} nodes: ${x} ${y}`);
    }
    assert.ok(2 * layout.r < layout.spacing || n === 1, `${n} nodes overlap`);
    assert.equal(layout.dots, n > 64);
  }
});

test('names are in discs if all have room there, and else below', () => {
  const at = (/** @type {string[]} */ names) => new Layout(grid(4), 768, 360, names).names.at;
  assert.equal(at(['1', '2', '3', '10']), 'inside');
  assert.equal(at(['A', '(0,0,1)', 'B', 'C']), 'small');
  assert.equal(at(['A', 'coordinator', 'B', 'C']), 'below');
  const named = new Layout(grid(4), 768, 360, Array(4).fill('(0,0,0)'));
  assert.ok(named.r > new Layout(grid(4), 768, 360).r, 'discs grow with their names');
});

test('messages on one link wait in line', () => {
  const layout = new Layout(grid(4), 768, 360);
  const flight = [message(0, 0, 1), message(1, 1, 0), message(2, 0, 1)];
  assert.deepEqual(queued(flight), [0, 0, 1]);
  const first = layout.waiting(flight[0], 0);
  const second = layout.waiting(flight[2], 1);
  assert.ok(second.x < first.x, 'the second is nearer to its sender');
});

test('a message on a link that wraps around waits outside of its receiver', () => {
  const plan = grid(9);
  plan.edges = [
    [0, 1],
    [1, 2],
  ];
  plan.stubs = [
    [0, -1, 0],
    [2, 1, 0],
  ];
  const layout = new Layout(plan, 768, 360);
  const place = layout.waiting(message(0, 2, 0), 0);
  assert.ok(place.x < layout.spots[0].x - layout.r, 'left of the leftmost node');
  assert.equal(Math.abs(place.turn % 360), 0, 'and points to the right');
  const direct = layout.waiting(message(0, 1, 0), 0);
  assert.ok(direct.x > layout.spots[0].x, 'a neighbour needs no wrapping');
});

test('no label covers another label or a node', () => {
  const layout = new Layout(grid(16), 768, 360);
  const marks = Array.from({ length: 30 }, (_, i) => ({
    place: layout.waiting(message(i, i % 16, (i * 7 + 1) % 16), 0),
    text: 'REQUEST 1',
    away: 12,
  }));
  const labels = declutter(marks, layout);
  const boxes = labels.flatMap((label, i) => {
    if (!label) return [];
    const width = marks[i].text.length * 7;
    const shift = { start: 0, end: -width, middle: -width / 2 }[label.anchor] ?? Number.NaN;
    const x = marks[i].place.x + label.x + shift;
    const y = marks[i].place.y + label.y;
    return [{ x, y, width }];
  });
  assert.ok(boxes.length > 3 && boxes.length < marks.length, 'some have room, some have none');
  boxes.forEach((a, i) => {
    for (const b of boxes.slice(i + 1)) {
      const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || Math.abs(a.y - b.y) >= 12;
      assert.ok(apart, `${JSON.stringify(a)} covers ${JSON.stringify(b)}`);
    }
  });
});

test('of marks with the same meaning, one on a link needs no label if another has one', () => {
  const layout = new Layout(grid(9), 768, 360);
  const mark = (/** @type {number} */ to, /** @type {string} */ group) => ({
    place: layout.waiting(message(0, 4, to), 0),
    text: 'REQUEST',
    away: 12,
    group,
  });
  const wall = { x1: 0, x2: 768 };
  const { y } = mark(5, '').place;
  const links = [-16, -8, 0, 8, 16].map((dy) => ({ ...wall, y1: y + dy, y2: y + dy }));
  const others = { lines: [], boxes: [], links };
  const some = (/** @type {string[]} */ groups) =>
    declutter([mark(5, groups[0]), mark(1, groups[1])], layout, others).map(Boolean);
  assert.deepEqual(some(['a', 'b']), [true, true], 'better on a link than none');
  assert.deepEqual(some(['a', 'a']), [false, true]);
});

test('two pointers between two nodes do not cover each other', () => {
  const layout = new Layout(grid(4), 768, 360);
  assert.notEqual(layout.pointer(0, 1, 0), layout.pointer(0, 1, 28));
});

test('no label covers an arrow of a fault, or a label of a node', () => {
  const layout = new Layout(grid(4), 768, 360);
  const place = layout.waiting(message(0, 0, 1), 0);
  const marks = [{ place, text: 'REQUEST', away: 12 }];
  const [free] = declutter(marks, layout);
  assert.ok(free);
  const at = { x: place.x + free.x, y: place.y + free.y, anchor: free.anchor };
  const box = boxOf('REQUEST', at);
  const middle = (box.y1 + box.y2) / 2;
  const line = { x1: box.x1 - 50, y1: middle, x2: box.x2 + 50, y2: middle };
  for (const others of [
    { lines: [line], boxes: [] },
    { lines: [], boxes: [box] },
  ]) {
    const [moved] = declutter(marks, layout, others);
    assert.notDeepEqual(moved, free);
  }
});

test('a label above its mark has room there, although the mark is near', () => {
  const layout = new Layout(grid(4), 768, 360);
  const place = { x: 200, y: 100, out: { x: 0, y: -1 }, turn: 0 };
  const [label] = declutter([{ place, text: 'REQUEST', away: 12 }], layout);
  assert.ok(label && label.y < 0, 'on the side away from the link');
});

test('messages on a short link are between its nodes', () => {
  const layout = new Layout({ ...grid(16), edges: [[0, 1]] }, 300, 360);
  const place = layout.waiting(message(0, 0, 1), 0);
  const [a, b] = layout.spots;
  assert.ok(place.x > a.x + layout.r && place.x < b.x - layout.r, `${a.x} ${place.x} ${b.x}`);
});

test('names on a circle are outside of it', () => {
  const n = 40;
  const turn = (/** @type {number} */ i) => (2 * Math.PI * i) / n;
  const nodes = Array.from({ length: n }, (_, i) => [1 + Math.sin(turn(i)), 1 - Math.cos(turn(i))]);
  const plan = { ...grid(n), kind: 'complete', width: 2, height: 2 };
  plan.nodes = /** @type {[number, number][]} */ (nodes);
  const layout = new Layout(
    plan,
    768,
    360,
    nodes.map((_, i) => `node-${i}`),
  );
  assert.equal(layout.names.at, 'below');
  for (const [i, { x, y }] of layout.spots.entries()) {
    const name = layout.name(i);
    const out = (x - layout.middle.x) * name.x + (y - layout.middle.y) * (name.y - 4);
    assert.ok(out > 0, `${i}`);
  }
});

test('a message on a link that wraps around has room for its label', () => {
  const plan = grid(16);
  plan.stubs = [[4, -1, 0]];
  plan.edges = [[4, 5]];
  const layout = new Layout(plan, 768, 360);
  const place = layout.waiting(message(0, 7, 4), 0);
  const [label] = declutter([{ place, text: 'REQUEST 14', away: 12 }], layout);
  assert.ok(label);
  const at = { x: place.x + label.x, y: place.y + label.y, anchor: label.anchor };
  assert.ok(boxOf('REQUEST 14', at).x1 >= 0, 'it is inside the picture');
});
