/** A run drawn small, as the lab lays it out: the cluster at a moment that shows much. */

/** @import { Plan } from './model.js' */
import { diamond, svg } from './dom.js';

const SMALL_WIDTH = 96;
const SMALL_HEIGHT = 72;
/** A small cluster is not drawn larger than this between two nodes, in px. */
const SMALL_UNIT_MAX = 28;
/** A flat cluster is drawn higher by at most this factor. */
const TALLER_MAX = 1.6;
/** Room for the nodes at the edge. */
const SMALL_EDGE = 8;
/** With more nodes, the links of a complete graph would cover the picture. */
const COMPLETE_MAX = 9;

/** @typedef {{ plan: Plan, phases: string[], tokens: number[] }} Thumbnail */

/**
 * The links to draw: where any node sends to any other, all of a few nodes, and those to the set of
 * the node that is inside.
 * @param {Plan} plan
 * @param {string[]} phases
 * @returns {[number, number][]}
 */
function smallLinks({ kind, nodes, edges, sets }, phases) {
  if (sets) {
    return phases.flatMap((phase, i) =>
      phase === 'inside' ? sets[i].map((it) => /** @type {[number, number]} */ ([i, it])) : [],
    );
  }
  if (kind !== 'complete' || nodes.length > COMPLETE_MAX) return edges;
  return nodes.flatMap((_, i) =>
    Array.from({ length: i }, (__, j) => /** @type {[number, number]} */ ([j, i])),
  );
}

/** @param {Thumbnail} picture */
export function thumbnail({ plan, phases, tokens }) {
  const room = (/** @type {number} */ size, /** @type {number} */ units) =>
    units > 0 ? (size - 2 * SMALL_EDGE) / units : Infinity;
  const unit = Math.min(
    SMALL_UNIT_MAX,
    room(SMALL_WIDTH, plan.width),
    room(SMALL_HEIGHT, plan.height),
  );
  const isRound = !['tree', 'mesh'].includes(plan.kind);
  const high = isRound ? unit : Math.min(unit * TALLER_MAX, room(SMALL_HEIGHT, plan.height));
  const radius = Math.max(2, Math.min(5, unit * 0.36));
  const left = (SMALL_WIDTH - unit * plan.width) / 2;
  const top = (SMALL_HEIGHT - high * plan.height) / 2;
  const places = plan.nodes.map(([x, y]) => [left + unit * x, top + high * y]);
  const line = (/** @type {number[]} */ [x1, y1], /** @type {number[]} */ [x2, y2]) =>
    svg('line', { x1, y1, x2, y2 });
  return svg(
    'svg',
    { class: 'thumbnail', width: SMALL_WIDTH, height: SMALL_HEIGHT, 'aria-hidden': 'true' },
    smallLinks(plan, phases).map(([one, other]) => line(places[one], places[other])),
    plan.stubs.map(([node, dx, dy]) => {
      const [x, y] = places[node];
      return line([x, y], [x + dx * unit * 0.7, y + dy * unit * 0.7]);
    }),
    places.map(([cx, cy], node) => svg('circle', { class: phases[node], cx, cy, r: radius })),
    tokens.map((node) => {
      const [x, y] = places[node];
      return svg('path', { d: diamond(Math.max(2.5, radius * 0.8), x + radius, y - radius) });
    }),
  );
}
