/** The list of locks: by prefix, longest wait first. Draws only the rows that are in view. */

/** @import { Lock, LockPage } from './messages.js' */
import { html, Keyed, say, set } from '../dom.js';
import { list, span, whole } from './format.js';
import { name } from './parts.js';

const ROW = 28;
/** Rows above and below the view that are drawn too. */
const MARGIN = 4;
/** A wait that is shown in the colour of waiting. */
const LONG_MS = 60_000;

export class Locks {
  /**
   * @param {(query: { sort: string, prefix: string }) => Promise<LockPage>} ask
   * @param {(lock: string) => void} choose
   */
  constructor(ask, choose) {
    this.ask = ask;
    this.choose = choose;
    /** @type {Lock[]} */
    this.locks = [];
    this.chosen = '';
    this.isAsking = false;
    this.isStale = false;
    this.input = html('input', {
      type: 'search',
      placeholder: 'Begins with …',
      'aria-label': 'Locks whose names begin with',
      autocomplete: 'off',
      spellcheck: 'false',
      oninput: () => {
        this.view.scrollTop = 0;
        this.refresh();
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
        onscroll: () => this.draw(),
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
    new ResizeObserver(() => this.draw()).observe(this.view);
  }

  /** Asks for the list again. One request is under way at a time. */
  async refresh() {
    this.isStale = true;
    if (this.isAsking) return;
    this.isAsking = true;
    while (this.isStale) {
      this.isStale = false;
      try {
        this.show(await this.ask({ sort: 'wait', prefix: this.input.value }));
      } catch (error) {
        say(this.note, error instanceof Error ? error.message : String(error));
      }
    }
    this.isAsking = false;
  }

  /** @param {LockPage} page */
  show({ locks, total, silent, reason }) {
    this.locks = locks;
    const all = total ?? locks.length;
    const shown = locks.length < all ? `${whole(locks.length)} of ${whole(all)}` : whole(all);
    say(this.summary, `${shown}, longest wait first`);
    set(this.view, 'data-total', all);
    const missing =
      silent.length > 0 ? `${list(silent)} did not answer: locks may be missing.` : '';
    const narrow =
      locks.length < all ? 'Type the beginning of a name to find one of the others.' : '';
    const none = all === 0 ? 'No lock is held or waited for.' : '';
    say(this.note, [reason ?? missing, none || narrow].filter(Boolean).join(' '));
    this.draw();
    if (this.chosen === '' && locks.length > 0) this.choose(locks[0].name);
  }

  /** @param {string} lock */
  mark(lock) {
    this.chosen = lock;
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.view;
    this.rows.style.height = `${this.locks.length * ROW}px`;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - MARGIN);
    const last = Math.min(this.locks.length, Math.ceil((scrollTop + clientHeight) / ROW) + MARGIN);
    /** @type {[number, { lock: Lock, index: number }][]} */
    const items = [];
    for (let index = first; index < last; index++) {
      items.push([index, { lock: this.locks[index], index }]);
    }
    this.parts.syncInOrder(items);
    const active = this.locks.findIndex((lock) => lock.name === this.chosen);
    const isDrawn = active >= first && active < last;
    set(this.view, 'aria-activedescendant', isDrawn ? `lock-${active}` : undefined);
  }

  /** @param {number} index */
  row(index) {
    const row = html(
      'div',
      {
        class: 'row',
        role: 'option',
        id: `lock-${index}`,
        onclick: () => this.choose(this.locks[index]?.name ?? ''),
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
    const longest = lock.waiters[0]?.waited_for_ms ?? 0;
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
    set(row, 'aria-setsize', this.locks.length);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const page = Math.max(1, Math.floor(this.view.clientHeight / ROW) - 1);
    const last = this.locks.length - 1;
    const at = this.locks.findIndex((lock) => lock.name === this.chosen);
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
    this.choose(this.locks[index].name);
  }
}
