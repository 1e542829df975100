/** A run drawn small, as the lab lays it out: the cluster at a moment that shows much. */

/** @import { Plan } from './model.js' */
import { diamond, svg } from './dom.js';

const SMALL_WIDTH = 96;
const SMALL_HEIGHT = 72;
/** A small cluster is not drawn larger than this between two nodes, in px. */
const SMALL_UNIT_MAX = 22;

/** @typedef {{ plan: Plan, phases: string[], tokens: number[] }} Thumbnail */

/** @param {Thumbnail} picture */
export function thumbnail({ plan, phases, tokens }) {
  const room = (/** @type {number} */ size, /** @type {number} */ units) =>
    units > 0 ? (size - 16) / units : Infinity;
  const unit = Math.min(
    SMALL_UNIT_MAX,
    room(SMALL_WIDTH, plan.width),
    room(SMALL_HEIGHT, plan.height),
  );
  const radius = Math.max(2, Math.min(5, unit * 0.3));
  const left = (SMALL_WIDTH - unit * plan.width) / 2;
  const top = (SMALL_HEIGHT - unit * plan.height) / 2;
  const places = plan.nodes.map(([x, y]) => [left + unit * x, top + unit * y]);
  const line = (/** @type {number[]} */ [x1, y1], /** @type {number[]} */ [x2, y2]) =>
    svg('line', { x1, y1, x2, y2 });
  return svg(
    'svg',
    { class: 'thumbnail', width: SMALL_WIDTH, height: SMALL_HEIGHT, 'aria-hidden': 'true' },
    plan.edges.map(([one, other]) => line(places[one], places[other])),
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
