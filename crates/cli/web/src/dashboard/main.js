/** Starts the page: connects to the node, and hands what it pushes to the sections. */

/** @import { LockEvent } from './messages.js' */
/** @import { State } from './session.js' */
import { html, say, set } from '../dom.js';
import { Changed } from './changed.js';
import { Figures } from './figures.js';
import { list, span } from './format.js';
import { incident } from './incident.js';
import { OneLock } from './lock.js';
import { Locks } from './locks.js';
import { Login } from './login.js';
import { hasLease, Model } from './model.js';
import { copy } from './parts.js';
import { Session } from './session.js';
import { Well } from './well.js';

/** How often times that pass are shown again. */
const TICK_MS = 500;
/** One lock is asked for again after its events, at most so often. */
const LOCK_MS = 1000;

/** @param {string} id */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

const clockNow = () => performance.now();
const model = new Model();
const nodeNow = () => model.now(clockNow());
/** @type {State} */
let state = { kind: 'connecting' };
/** When the connection was lost, by the page's clock. */
let lostAt = 0;
let askedAt = -Infinity;
let isAskLater = false;

const login = new Login(byId('login'), enter);
const session = new Session(
  {
    connect: () => new WebSocket(new URL(login.session(), location.href.replace(/^http/, 'ws'))),
    now: clockNow,
    after: (call, ms) => window.setTimeout(call, ms),
    cancel: (timer) => window.clearTimeout(timer),
  },
  { state: onState, push: onPush },
);

const seen = byId('seen');
const notice = byId('notice');
const well = new Well(byId('well'), (lock) => {
  chooseLock(lock);
  byId('lock').scrollIntoView();
});
const figures = new Figures(well.figures, model);
const locks = new Locks((query) => session.ask('list', query), chooseLock, clockNow);
const oneLock = new OneLock(nodeNow);
byId('lock').append(
  html(
    'div',
    { class: 'split turned' },
    html('div', {}, html('h2', {}, 'This lock'), locks.element),
    oneLock.element,
  ),
);
const changed = new Changed(byId('changed'), model, nodeNow);

/** The node has accepted the token. */
function enter() {
  session.start();
}

/** @param {State} next */
function onState(next) {
  if (next.kind !== 'open' && state.kind === 'open') {
    lostAt = clockNow();
    oneLock.stop();
  }
  if (next.kind === 'lost' && state.kind === 'connecting') login.look();
  state = next;
  if (next.kind === 'open') start();
  showSeen();
}

async function start() {
  say(notice, '');
  model.restart();
  try {
    await session.ask('follow');
    locks.restart();
    if (locks.chosen) await watchLock();
  } catch (error) {
    if (state.kind === 'open') tellTrouble(error);
  }
  set(notice, 'hidden', notice.textContent === '');
}

/** @param {unknown} error */
function tellTrouble(error) {
  const why = error instanceof Error ? error.message : String(error);
  say(notice, `The node does not send what this page shows: ${why}`);
  set(notice, 'hidden', false);
}

/**
 * @param {string} kind
 * @param {any} content
 */
function onPush(kind, content) {
  if (kind === 'overview') {
    model.hear(content, clockNow());
    showAll();
  } else if (kind === 'history') {
    model.extend(content);
    figures.show();
  } else if (kind === 'changes') {
    model.add(content.changes);
    if (model.overview) changed.show(model.overview);
    figures.show();
  } else if (kind === 'listed') {
    locks.show(content, clockNow());
  } else if (kind === 'event') {
    onEvent(content);
  } else if (kind === 'stopping') {
    say(notice, 'The node is stopping.');
    set(notice, 'hidden', false);
  }
}

function showAll() {
  const { overview } = model;
  if (!overview) return;
  well.show(overview, model.informed ?? overview, nodeNow());
  changed.show(overview);
  showSeen();
}

/* ---- Locks ---- */

/** @param {string} lock */
function chooseLock(lock) {
  if (lock === '' || lock === locks.chosen) return;
  locks.mark(lock);
  oneLock.open(lock);
  history.replaceState(null, '', `#lock:${encodeURIComponent(lock)}`);
  if (state.kind === 'open') watchLock().catch((error) => oneLock.fail(error.message));
}

async function watchLock() {
  const lock = locks.chosen;
  await session.ask('watch', { all: true, prefix: lock });
  await askLock();
}

async function askLock() {
  const lock = locks.chosen;
  askedAt = clockNow();
  const answer = await session.ask('lock', { lock });
  if (lock === locks.chosen) oneLock.show(answer.lock, answer.recent);
}

/** @param {LockEvent} event */
function onEvent(event) {
  if (event.event !== 'missed' && event.lock !== locks.chosen) return;
  oneLock.add(event);
  if (isAskLater) return;
  isAskLater = true;
  const pause = Math.max(0, LOCK_MS - (clockNow() - askedAt));
  setTimeout(() => {
    isAskLater = false;
    if (state.kind === 'open') askLock().catch((error) => oneLock.fail(error.message));
  }, pause);
}

/* ---- Head ---- */

function showSeen() {
  const { overview } = model;
  const isAlone = overview !== null && !hasLease(overview);
  const { dataset } = document.body;
  dataset.state = state.kind;
  dataset.level = overview?.level ?? '';
  dataset.from = overview?.from ?? '';
  document.body.classList.toggle('minority', isAlone);
  const isOld = isLost() || model.isOld(clockNow());
  document.body.classList.toggle('lost', isOld);
  say(seen, seenText());
  const isBad = isAlone || isOld || (overview?.silent.length ?? 0) > 0;
  set(seen, 'class', isBad ? 'seen fault' : 'seen');
  document.title = `${titleText()} · soloist ui`;
}

/** Whether there is no connection, and not because the page was opened a moment ago. */
function isLost() {
  return state.kind === 'lost' || (state.kind !== 'open' && lostAt > 0);
}

function seenText() {
  const { overview } = model;
  if (state.kind === 'lost') {
    const passed = lostAt > 0 ? ` for ${span(clockNow() - lostAt)}` : '';
    const next = Math.max(0, state.retryAt - clockNow());
    return `No connection${passed}. ${state.why} Next attempt in ${span(next)}.`;
  }
  if (!overview) return 'Connecting …';
  const { from, epoch, silent, without_lease_for_ms: without } = overview;
  const age = clockNow() - model.heardAt;
  if (typeof without === 'number' && !model.isOld(clockNow())) {
    return `Seen from ${from}, which has had no lease for ${span(without + age)}`;
  }
  if (model.isOld(clockNow())) {
    return `Seen from ${from} ${span(age)} ago. It has sent nothing newer: what follows is old.`;
  }
  const ago = `${(age / 1000).toFixed(1)} s ago`;
  const noAnswer = silent.length > 0 ? `; ${list(silent)} silent` : '';
  return `Seen from ${from}, epoch ${epoch}, ${ago}${noAnswer}`;
}

function titleText() {
  const { overview } = model;
  if (isLost()) return '? No connection';
  if (!overview) return 'Connecting';
  if (model.isOld(clockNow())) return '? Old';
  if (overview.level === 'ok') return '✓ Well';
  if (overview.level === 'unknown') return '? Unknown';
  const { length } = overview.problems.filter((problem) => !problem.is_over);
  return `✕ ${length === 1 ? '1 problem' : `${length} problems`}`;
}

byId('incident').addEventListener('click', () => {
  const { overview } = model;
  if (!overview) return;
  const now = nodeNow();
  const lostFor = state.kind === 'open' ? null : clockNow() - lostAt;
  copy(incident(overview, model.recent(now), { now, lostFor, lock: oneLock.current() }));
});
byId('theme').addEventListener('click', () => {
  const { style } = document.documentElement;
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const now = style.colorScheme || (dark ? 'dark' : 'light');
  style.colorScheme = now === 'dark' ? 'light' : 'dark';
});

const links = [...document.querySelectorAll('nav a')];
const sections = [...document.querySelectorAll('main > section')];

function markSection() {
  const at = sections.findLast((it) => it.getBoundingClientRect().top < 160) ?? sections[0];
  for (const link of links) {
    set(link, 'aria-current', link.getAttribute('href') === `#${at.id}` ? 'true' : undefined);
  }
}
addEventListener('scroll', markSection, { passive: true });
markSection();

addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.ctrlKey || event.altKey || event.metaKey || isTyping) return;
  if (event.key === '/') {
    event.preventDefault();
    locks.input.focus();
  } else if (event.key === 'c') {
    byId('incident').click();
  } else if (['1', '2', '3'].includes(event.key)) {
    sections[Number(event.key) - 1].scrollIntoView();
  }
});

/** A link to a lock. */
function openAddress() {
  const found = /^#lock:(.+)$/.exec(location.hash);
  if (!found) return;
  try {
    chooseLock(decodeURIComponent(found[1]));
    byId('lock').scrollIntoView();
  } catch {
    say(notice, 'The link is damaged.');
    set(notice, 'hidden', false);
  }
}
addEventListener('hashchange', openAddress);

setInterval(() => {
  showSeen();
  well.tick(nodeNow());
  if (state.kind === 'open') locks.tick();
  oneLock.tick();
}, TICK_MS);

if ('WebSocket' in globalThis) {
  openAddress();
  session.start();
} else {
  say(notice, 'This browser has no WebSocket, by which the page talks to the node.');
  set(notice, 'hidden', false);
}
