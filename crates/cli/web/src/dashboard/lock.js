/** One lock: holder, waiters in order, and its last events as a space-time diagram. */

/** @import { Lock, LockEvent } from './messages.js' */
import { glyph, html, say, svg } from '../dom.js';
import { clock, count, length, list, quoted, span } from './format.js';
import { commandRow, name, Picture } from './parts.js';
import { sentence, turnsOf } from './turns.js';

const RECENT_MAX = 100;
const LINES = 8;
const ROW = 28;
/** A wait of fewer pixels that ended with the lock is not drawn: it would look like a fault. */
const WAIT_MIN = 3;
/** Height of the axis. */
const TOP = 24;

export class OneLock {
  /** @param {() => number} now by the node's clock */
  constructor(now) {
    this.clock = now;
    /** @type {Lock | null} */
    this.lock = null;
    /** When the answer was true, by the node's clock. */
    this.at = 0;
    /** When the connection was lost: nothing newer is known. @type {number | null} */
    this.stoppedAt = null;
    /** @type {LockEvent[]} */
    this.recent = [];
    this.title = html('h3', { class: 'name', dir: 'auto' });
    this.facts = html('p', { class: 'muted' });
    this.inside = html('p', { class: 'inside' });
    this.passed = html('span');
    this.queue = html('p', { class: 'queue' });
    this.note = html('p', { class: 'small muted', role: 'status' });
    this.picture = new Picture((width) => this.draw(width));
    this.command = html('div');
    this.lines = html('tbody');
    this.body = html(
      'div',
      { hidden: true },
      this.facts,
      this.inside,
      this.queue,
      this.picture.element,
      legend(),
      this.command,
      html('table', { class: 'changes', 'aria-label': 'Last events' }, this.lines),
    );
    this.element = html('div', { class: 'one' }, this.title, this.note, this.body);
  }

  /** The time that the page shows: it stands still while there is no connection. */
  now() {
    return this.stoppedAt ?? this.clock();
  }

  /** The connection is lost. Times stand still until the next answer. */
  stop() {
    this.stoppedAt = this.now();
    this.tick();
  }

  /** @param {string} lock */
  open(lock) {
    if (this.lock?.name === lock) return;
    this.lock = null;
    this.recent = [];
    this.body.hidden = true;
    say(this.title, lock);
    say(this.note, '');
    // A name that begins with a dash is not an option.
    const separator = lock.startsWith('-') ? '=' : ' ';
    const follow = `soloist watch --all --lock${separator}${quoted(lock)}`;
    this.command.replaceChildren(commandRow('Follow it', follow));
  }

  /** @param {string} why */
  fail(why) {
    say(this.note, why);
  }

  /**
   * @param {Lock} lock
   * @param {LockEvent[] | undefined} recent
   */
  show(lock, recent) {
    this.lock = lock;
    this.stoppedAt = null;
    this.at = this.now();
    if (recent) this.recent = recent.slice(-RECENT_MAX);
    this.body.hidden = false;
    const silent = lock.silent.length > 0 ? `${list(lock.silent)} did not answer.` : '';
    say(this.note, lock.reason ?? silent);
    this.showHolder(lock);
    this.showWaiters(lock);
    this.tick();
    this.showLines();
  }

  /** @param {LockEvent} event */
  add(event) {
    this.recent = [...this.recent, event].slice(-RECENT_MAX);
    this.showLines();
    this.picture.redraw();
  }

  /** The lock as it is by now, if nothing has happened. @returns {Lock | null} */
  current() {
    if (!this.lock) return null;
    const passed = Math.max(0, this.now() - this.at);
    const { holder, waiters } = this.lock;
    return {
      ...this.lock,
      holder: holder && { ...holder, held_for_ms: holder.held_for_ms + passed },
      waiters: waiters.map((it) => ({ ...it, waited_for_ms: it.waited_for_ms + passed })),
    };
  }

  /** Shows times that pass. */
  tick() {
    const holder = this.current()?.holder;
    if (holder) {
      const since = clock(this.now() - holder.held_for_ms);
      const held = `for ${span(holder.held_for_ms)}, since ${since}`;
      const { stoppedAt } = this;
      const text =
        stoppedAt === null
          ? ` is inside ${held}`
          : ` was inside ${held}, as of ${clock(stoppedAt)}`;
      say(this.passed, text);
    }
    this.picture.redraw();
  }

  /** @param {Lock} lock */
  showHolder({ holder, algorithm, state }) {
    say(this.facts, holder ? `fence ${holder.fence}, ${algorithm}` : algorithm);
    if (holder) {
      const who = html('strong', {}, name(holder.owner), ' on ', name(holder.node));
      this.inside.replaceChildren(glyph('inside'), who, this.passed);
    } else {
      this.inside.replaceChildren(glyph('idle'), insideText(state));
    }
  }

  /** @param {Lock} lock */
  showWaiters({ waiters, waiting }) {
    if (waiting === 0) {
      this.queue.replaceChildren(html('span', { class: 'muted' }, 'Nobody waits.'));
      return;
    }
    const order = waiters.flatMap((it, i) => [
      i > 0 ? ', then ' : ', longest wait first: ',
      name(it.owner),
      ' on ',
      name(it.node),
    ]);
    const more = waiting - waiters.length;
    const rest = more > 0 ? ` and ${count(more, 'other', 'others')}` : '';
    const wait = html('strong', { class: 'wait' }, count(waiting, 'waits', 'wait'));
    this.queue.replaceChildren(glyph('waiting'), wait, ...order, rest);
  }

  showLines() {
    const last = this.recent.slice(-LINES).reverse();
    this.lines.replaceChildren(
      ...last.map((event) =>
        html(
          'tr',
          { 'data-event': event.event },
          html('td', { class: 'mono' }, clock(event.at_unix_ms)),
          html(
            'td',
            {},
            event.event === 'missed' ? '' : name(event.owner),
            event.event === 'missed' ? '' : ' on ',
            name(event.node),
          ),
          html('td', { class: 'muted' }, sentence(event, span)),
        ),
      ),
    );
  }

  /** @param {number} width */
  draw(width) {
    const lock = this.current();
    const now = this.now();
    if (!lock) return svg('svg', { width, height: 0 });
    const { rows, reach, more } = turnsOf(lock, this.recent, now);
    const gutter = Math.min(160, width * 0.32);
    const x = (/** @type {number} */ at) =>
      gutter + Math.max(0, 1 - (now - at) / reach) * (width - gutter - 72);
    const height = TOP + rows.length * ROW + (more > 0 ? 16 : 0);
    const ticks = width < 480 ? [1, 0.5, 0] : [1, 0.75, 0.5, 0.25, 0];
    const axis = ticks.map((share) => {
      const at = x(now - share * reach);
      const end = this.stoppedAt === null ? 'now' : clock(now);
      const text = share === 0 ? end : `${length(share * reach)} ago`;
      return svg(
        'g',
        {},
        svg('line', { class: 'axis', x1: at, x2: at, y1: 20, y2: height }),
        svg('text', { x: at, y: 12, 'text-anchor': 'middle' }, text),
      );
    });
    const label = `Who was inside ${lock.name} and who waited, in the last ${length(reach)}`;
    return svg(
      'svg',
      { class: 'chain', width, height, role: 'img', 'aria-label': label },
      axis,
      rows.map((row, i) => this.drawRow(row, TOP + i * ROW + ROW / 2, x, { now, reach, gutter })),
      more > 0 && svg('text', { x: 0, y: height - 2 }, `and ${count(more, 'other', 'others')}`),
    );
  }

  /**
   * @param {import('./turns.js').Row} row
   * @param {number} y
   * @param {(at: number) => number} x
   * @param {{ now: number, reach: number, gutter: number }} frame
   */
  drawRow({ owner, node, boxes }, y, x, { now, reach, gutter }) {
    const letters = Math.floor((gutter - 8) / 7.3);
    const who = `${owner} ${node}`;
    const short =
      who.length > letters
        ? `${owner.slice(0, Math.max(1, letters - node.length - 2))}… ${node}`
        : who;
    const drawn = boxes
      .filter(({ to }) => to >= now - reach)
      .filter(
        ({ kind, from, to, isNow, isBad }) =>
          kind === 'inside' || isNow || isBad || x(to) - x(from) >= WAIT_MIN,
      )
      .reverse()
      .map(({ kind, from, to, isBad }) => {
        const half = kind === 'inside' ? 7 : 5;
        return svg('rect', {
          class: `box ${kind}${isBad ? ' bad' : ''}`,
          x: x(from).toFixed(1),
          width: Math.max(3, x(to) - x(from)).toFixed(1),
          y: y - half,
          height: 2 * half,
        });
      });
    const lasting = boxes.find(({ isNow }) => isNow);
    return svg(
      'g',
      { 'data-row': who },
      svg('text', { class: 'who', x: 0, y: y + 4 }, svg('title', {}, who), short),
      drawn,
      lasting &&
        svg('text', { class: 'strong', x: x(now) + 8, y: y + 4 }, span(now - lasting.from)),
    );
  }
}

/** What the boxes mean. */
function legend() {
  const entry = (/** @type {string} */ style, /** @type {string} */ text) =>
    html(
      'span',
      {},
      svg(
        'svg',
        { width: 14, height: 12, 'aria-hidden': 'true' },
        svg('rect', { class: `box ${style}`, x: 1, y: 1, width: 12, height: 10 }),
      ),
      text,
    );
  return html(
    'p',
    { class: 'boxes small muted' },
    entry('inside', 'inside'),
    entry('waiting', 'waits'),
    entry('waiting bad', 'gave up'),
    entry('inside bad', 'lost it'),
  );
}

/** @param {string} state */
function insideText(state) {
  switch (state) {
    case 'free':
      return 'Nobody is inside.';
    case 'changing':
      return 'No holder is known: the epoch is changing.';
    default:
      return 'No holder is known.';
  }
}
