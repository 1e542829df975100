/**
 * The list of locks: by prefix, longest wait first. The node sends the rows that are in view, now
 * and when they have changed, and only these are drawn.
 */

/** @import { Listed, ListQuery, Lock } from './messages.js' */
import { html, Keyed, say, set } from '../dom.js';
import { list, span, whole } from './format.js';
import { name } from './parts.js';

const ROW = 28;
/** Nodes that do not say whether they left locks out list at most so many. */
const LISTED_MAX = 1000;
/** Rows above and below the view that are asked for and drawn too. */
const MARGIN = 4;
/** A wait that is shown in the colour of waiting. */
const LONG_MS = 60_000;

export class Locks {
  /**
   * @param {(query: ListQuery) => Promise<void>} ask the node to send these rows from now on
   * @param {(lock: string) => void} choose
   * @param {() => number} now by the page's clock
   */
  constructor(ask, choose, now) {
    this.list = ask;
    this.choose = choose;
    this.now = now;
    /** The rows that the node has sent. @type {Lock[]} */
    this.locks = [];
    /** The index of the first one. */
    this.first = 0;
    /** When they came. */
    this.at = 0;
    /** Number of rows of the whole list. */
    this.length = 0;
    this.chosen = '';
    /** The row of the chosen lock, as far as is known. */
    this.place = -1;
    /** The row to choose when it comes. @type {number | null} */
    this.next = null;
    /** What the node was asked for last. */
    this.asked = '';
    this.isAsking = false;
    this.isConnected = false;
    this.input = html('input', {
      type: 'search',
      placeholder: 'Begins with …',
      'aria-label': 'Locks whose names begin with',
      autocomplete: 'off',
      spellcheck: 'false',
      oninput: () => {
        this.view.scrollTop = 0;
        this.place = -1;
        this.look();
      },
    });
    this.summary = html('span', {}, 'Locks');
    this.note = html('p', { class: 'small muted', role: 'status' });
    this.rows = html('div', { class: 'spacer', role: 'presentation' });
    this.view = html(
      'div',
      {
        class: 'rows',
        role: 'listbox',
        tabindex: 0,
        'aria-label': 'Locks, longest wait first',
        onscroll: () => this.tick(),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      },
      this.rows,
    );
    this.parts = new Keyed(
      this.rows,
      (/** @type {{ lock: Lock, index: number }} */ _, /** @type {number} */ index) =>
        this.row(index),
      (row, { lock, index }) => this.update(row, lock, index),
    );
    this.element = html(
      'div',
      { class: 'locks' },
      this.input,
      html(
        'div',
        { class: 'head', 'aria-hidden': 'true' },
        this.summary,
        html('span', { class: 'wide' }, 'holder'),
        html('span', { class: 'num' }, 'wait'),
        html('span', { class: 'num' }, 'waiters'),
      ),
      this.view,
      this.note,
    );
    new ResizeObserver(() => this.tick()).observe(this.view);
    document.addEventListener('visibilitychange', () => this.look());
  }

  /** The rows in view, and a few more. */
  inView() {
    const { scrollTop, clientHeight } = this.view;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - MARGIN);
    const last = Math.ceil((scrollTop + clientHeight) / ROW) + MARGIN;
    return { first, last };
  }

  /**
   * Tells the node which rows are in view, if they are others than before. One message is under way
   * at a time.
   */
  async look() {
    if (this.isAsking || !this.isConnected) return;
    this.isAsking = true;
    for (;;) {
      const query = this.query();
      const text = JSON.stringify(query);
      if (text === this.asked) break;
      this.asked = text;
      try {
        await this.list(query);
      } catch (error) {
        this.isConnected = false;
        say(this.note, error instanceof Error ? error.message : String(error));
        break;
      }
    }
    this.isAsking = false;
  }

  /** The node knows nothing of this page yet. */
  restart() {
    this.asked = '';
    this.isConnected = true;
    this.look();
  }

  /** What is in view. @returns {ListQuery} */
  query() {
    const { first, last } = this.inView();
    const rows = document.hidden ? 0 : last - first;
    return { prefix: this.input.value, first, rows };
  }

  /**
   * @param {Listed} listed
   * @param {number} at when it came, by the page's clock
   */
  show({ prefix, first, locks, rows, total, silent, reason, is_cut: cut }, at) {
    if (prefix !== this.input.value) return;
    this.locks = locks;
    this.first = first;
    this.at = at;
    this.length = rows;
    // Locks that pass to their next holder meanwhile are counted and not listed.
    const isCut = cut ?? (rows >= LISTED_MAX || 2 * rows < total);
    const shown = isCut && rows < total ? `${whole(rows)} of ${whole(total)}` : whole(rows);
    say(this.summary, `${shown}, longest wait first`);
    set(this.view, 'data-total', total);
    const missing =
      silent.length > 0 ? `${list(silent)} did not answer: locks may be missing.` : '';
    const narrow =
      isCut && rows < total ? 'Type the beginning of a name to find one of the others.' : '';
    const none = total === 0 ? 'No lock is held or waited for.' : '';
    say(this.note, [reason ?? missing, none || narrow].filter(Boolean).join(' '));
    this.draw();
    const next = this.next === null ? undefined : this.lockAt(this.next);
    if (next) {
      this.next = null;
      this.choose(next.name);
    } else if (this.chosen === '' && locks.length > 0) {
      this.choose(locks[0].name);
    }
  }

  /** A lock, if its row is known. @param {number} index */
  lockAt(index) {
    return this.locks[index - this.first];
  }

  /** @param {string} lock */
  mark(lock) {
    this.chosen = lock;
    this.draw();
  }

  draw() {
    this.rows.style.height = `${this.length * ROW}px`;
    const { first, last } = this.inView();
    /** @type {[number, { lock: Lock, index: number }][]} */
    const items = [];
    for (let index = first; index < Math.min(last, this.length); index++) {
      const lock = this.lockAt(index);
      if (lock) items.push([index, { lock, index }]);
    }
    this.parts.syncInOrder(items);
    const chosen = items.find(([, { lock }]) => lock.name === this.chosen);
    if (chosen) this.place = chosen[0];
    set(this.view, 'aria-activedescendant', chosen ? `lock-${chosen[0]}` : undefined);
  }

  /** Shows times that pass. */
  tick() {
    this.draw();
    this.look();
  }

  /** @param {number} index */
  row(index) {
    const row = html(
      'div',
      {
        class: 'row',
        role: 'option',
        id: `lock-${index}`,
        onclick: () => this.choose(this.lockAt(index)?.name ?? ''),
      },
      name('', 'mono'),
      name('', 'small wide'),
      html('span', { class: 'num' }),
      html('span', { class: 'num muted' }),
    );
    row.style.transform = `translateY(${index * ROW}px)`;
    return row;
  }

  /**
   * @param {HTMLElement} row
   * @param {Lock} lock
   * @param {number} index
   */
  update(row, lock, index) {
    const [title, holder, wait, waiting] = row.children;
    const waited = lock.waiters[0]?.waited_for_ms ?? 0;
    const longest = waited + Math.max(0, this.now() - this.at);
    say(title, lock.name);
    set(title, 'title', lock.name);
    say(holder, lock.holder ? `${lock.holder.owner} ${lock.holder.node}` : lock.state);
    set(holder, 'title', holder.textContent ?? '');
    say(wait, lock.waiting > 0 ? span(longest) : '');
    set(wait, 'class', `num ${longest >= LONG_MS ? 'wait' : ''}`);
    say(waiting, lock.waiting > 0 ? whole(lock.waiting) : '');
    set(row, 'data-lock', lock.name);
    set(row, 'aria-selected', String(lock.name === this.chosen));
    set(row, 'aria-posinset', index + 1);
    set(row, 'aria-setsize', this.length);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const page = Math.max(1, Math.floor(this.view.clientHeight / ROW) - 1);
    const last = this.length - 1;
    const at = this.place;
    /** @type {Record<string, number>} */
    const moves = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: last,
    };
    const to = moves[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    const index = Math.max(0, Math.min(last, to));
    const { scrollTop, clientHeight } = this.view;
    if (index * ROW < scrollTop) this.view.scrollTop = index * ROW;
    else if ((index + 1) * ROW > scrollTop + clientHeight) {
      this.view.scrollTop = (index + 1) * ROW - clientHeight;
    }
    this.place = index;
    const lock = this.lockAt(index);
    this.next = lock ? null : index;
    if (lock) this.choose(lock.name);
    this.look();
  }
}
