/** Starts the page: finds what to show from the address, the command line, or the export itself. */

import { pack, parseAddress, unpack } from './address.js';
import { Counts } from './compare.js';
import { say, set } from './dom.js';
import { Gallery } from './gallery.js';
import { Inspector } from './inspector.js';
import { Player } from './player.js';
import { Server } from './server.js';
import { SpaceTime } from './spacetime.js';
import { Stage } from './stage.js';
import { Transport } from './transport.js';

const parts = {
  'so-stage': Stage,
  'so-inspector': Inspector,
  'so-time': SpaceTime,
  'so-counts': Counts,
  'so-transport': Transport,
  'so-gallery': Gallery,
};
for (const [name, part] of Object.entries(parts)) customElements.define(name, part);

/** Requests of a comparison; with burst, one per node. */
const ENTRIES = 20;

/**
 * @template {Element} E
 * @param {string} selector
 * @param {new () => E} type
 * @returns {E}
 */
function find(selector, type) {
  const found = document.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`the page has no ${selector}`);
  return found;
}

const embedded = document.querySelector('script#run')?.textContent;
const server = embedded ? null : new Server();
const stage = find('so-stage#stage', Stage);
const other = find('so-stage#other', Stage);
const inspector = find('so-inspector', Inspector);
const time = find('so-time', SpaceTime);
const counts = find('so-counts', Counts);
const transport = find('so-transport', Transport);
const gallery = find('so-gallery', Gallery);
const title = find('#title', HTMLElement);
const detail = find('#detail', HTMLElement);
const trouble = find('#trouble', HTMLElement);
const notice = find('#notice', HTMLElement);

/**
 * @param {string} mode
 * @param {string} name
 * @param {string} more
 */
function head(mode, name, more) {
  document.body.dataset.mode = mode;
  say(title, name);
  say(detail, more);
  document.title = name ? `${name} · soloist lab play` : 'soloist lab play';
}

/** @param {string} text */
function note(text) {
  say(notice, text);
  set(notice, 'hidden', text === '');
}

const player = new Player(
  { stage, other, inspector, time, counts, transport, head, notice: note },
  server,
);
for (const part of [stage, other, inspector, time, counts, transport]) part.connect(player);

/** @param {unknown} error */
function fail(error) {
  player.close();
  head('error', '', '');
  say(trouble, error instanceof Error ? error.message : String(error));
}

/**
 * @param {Server} from
 * @param {string} text
 * @param {number} at
 */
async function openText(from, text, at) {
  const run = await from.run(text, 0);
  player.open(run, at, { kind: 'text', packed: await pack(text), at });
}

/** @param {Server} from */
async function openGallery(from) {
  const [entries, { algorithms }] = await Promise.all([from.gallery(), from.start()]);
  player.close();
  note('');
  head('gallery', '', '');
  const open = (/** @type {string} */ text) => player.busy(openText(from, text, 0).catch(fail));
  gallery.show(entries, { algorithms, open });
}

/** Shows what the address names. @param {Server} from */
async function openAddress(from) {
  const address = parseAddress(location.hash);
  if (address.kind === 'none') {
    await openGallery(from);
  } else if (address.kind === 'text') {
    await openText(from, await unpack(address.packed), address.at);
  } else if (address.kind === 'gallery') {
    const { text } = await from.scenario(address.name);
    player.open(await from.run(text, 0), address.at, address);
  } else {
    const [a, b, nodes, load] = address.query.split(',');
    const demands = { nodes: Number(nodes), load, entries: ENTRIES, seed: 1 };
    const { runs } = await from.compare({ algorithms: [a, b], ...demands });
    player.openPair(runs, address.at, address);
  }
}

/** @param {Server | null} from null in an export */
async function start(from) {
  if (from === null) {
    const at = Number.parseInt(location.hash.slice(1), 10) || 0;
    player.open(JSON.parse(embedded ?? ''), at, { kind: 'step', at });
    return;
  }
  const { text, at } = await from.start();
  if (text !== null && parseAddress(location.hash).kind === 'none') await openText(from, text, at);
  else await openAddress(from);
}

find('#theme', HTMLElement).addEventListener('click', () => {
  const { style } = document.documentElement;
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const now = style.colorScheme || (dark ? 'dark' : 'light');
  style.colorScheme = now === 'dark' ? 'light' : 'dark';
});
find('#copy', HTMLElement).addEventListener('click', async () => {
  player.writeAddress();
  await navigator.clipboard?.writeText(location.href);
  note('The link to this moment is in the clipboard.');
});

/** @type {Record<string, () => void>} */
const keys = {
  ' ': () => player.toggle(),
  ArrowRight: () => player.go(player.at + 1),
  ArrowLeft: () => player.go(player.at - 1),
  Home: () => player.go(0),
  End: () => player.go(Infinity),
  n: () => player.nextEntry(),
  h: () => player.branch.takeOver(),
  u: () => player.branch.undo(),
  f: () => player.branch.search(inspector.quota),
  Escape: () => player.letGo(),
};
addEventListener('keydown', (event) => {
  const target = /** @type {Element} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || !player.model) return;
  if (target.matches('select, input:not([type=range])')) return;
  if (event.key === ' ' && target.matches('button, a, [role=button]')) return;
  if (player.server === null && 'huf'.includes(event.key)) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
if (server) {
  addEventListener('hashchange', () => player.busy(openAddress(server).catch(fail)));
}
document.body.dataset.idle = 'true';
player.busy(start(server).catch(fail));
