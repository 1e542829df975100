/** A small run by hand: two nodes, a request, a grant, and an answer that never arrives. */

/** @import { Run, Step } from '../src/model.js' */

/** @type {(step: Partial<Step>) => Step} */
const step = (of) => ({
  line: 1,
  action: 'request',
  node: 0,
  time: 0,
  cause: null,
  got: null,
  sends: [],
  enter: false,
  leave: false,
  changes: [],
  fault: null,
  caption: null,
  told: '',
  ask: null,
  ...of,
});

/** @type {(id: number, to: number, label: string, content?: string) => import('../src/model.js').Send} */
const send = (id, to, label, content = '') => {
  return { id, from: 1 - to, to, label, content, token: label === 'TOKEN' };
};

/** @type {(name: string, kind: string, role: string) => import('../src/model.js').Field} */
const field = (name, kind, role) => ({ name, kind, role, group: null, help: '' });

const TEXT = `# Two nodes.
algorithm example
names A B

# B requests.
> request B
B -> A REQUEST 1
> run
A -> B TOKEN
B enters
> release B
`;

/** @returns {Run} */
export function example() {
  return {
    title: 'Two nodes',
    text: TEXT,
    algorithm: 'example',
    variant: '',
    intro: null,
    paper: 'Nobody 1900',
    names: ['A', 'B'],
    plan: {
      kind: 'line',
      width: 1,
      height: 0,
      nodes: [
        [0, 0],
        [1, 0],
      ],
      edges: [[0, 1]],
      stubs: [],
      sets: null,
    },
    rows: [
      [0, 0],
      [1, 0],
    ],
    fields: [
      field('phase', 'text', 'phase'),
      field('token', 'flag', 'token'),
      field('holder', 'node', 'pointer'),
      field('queue', 'queue', 'queue'),
    ],
    start: [
      { phase: 'idle', token: true, holder: 0, queue: [] },
      { phase: 'idle', token: false, holder: 0, queue: [] },
    ],
    steps: [
      step({
        line: 6,
        node: 1,
        sends: [send(0, 0, 'REQUEST', '1')],
        changes: [
          { node: 1, field: 'phase', before: 'idle', after: 'waiting' },
          { node: 1, field: 'queue', before: [], after: [1] },
        ],
        caption: 'B requests.',
      }),
      step({
        line: 8,
        action: 'deliver',
        node: 0,
        cause: 0,
        got: 0,
        time: 1,
        sends: [send(1, 1, 'TOKEN')],
        changes: [
          { node: 0, field: 'token', before: true, after: false },
          { node: 0, field: 'holder', before: 0, after: 1 },
        ],
        ask: { text: 'What does A do?' },
      }),
      step({
        line: 8,
        action: 'deliver',
        node: 1,
        cause: 1,
        got: 1,
        time: 2,
        enter: true,
        changes: [
          { node: 1, field: 'token', before: false, after: true },
          { node: 1, field: 'phase', before: 'waiting', after: 'inside' },
          { node: 1, field: 'queue', before: [1], after: [] },
        ],
      }),
      step({
        line: 11,
        action: 'release',
        node: 1,
        time: 3,
        leave: true,
        sends: [send(2, 0, 'DONE')],
        changes: [{ node: 1, field: 'phase', before: 'inside', after: 'idle' }],
      }),
    ],
    may: [],
    flight: [],
    fault: null,
    from: 0,
    closing: null,
    ended: null,
  };
}
