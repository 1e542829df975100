/** Well or not: the verdict, problems, keepers and members. */

/** @import { Keeper, Member, Outside, Overview, Problem } from './messages.js' */
import { glyph, html, Keyed, say, set } from '../dom.js';
import { count, length, span, when } from './format.js';
import { whatToDo } from './manual.js';
import { commandRow, name } from './parts.js';

/** Problems that a node without a lease finds by itself, and now. */
const FIRST_HAND = ['no-lease', 'majority-lost'];
/** With more members, those with the shortest leases are shown. */
const MEMBERS_MAX = 64;

export class Well {
  /**
   * @param {HTMLElement} section
   * @param {(lock: string) => void} showLock
   */
  constructor(section, showLock) {
    this.verdict = html('h2', { class: 'verdict' });
    this.lead = html('p', { class: 'lead' });
    this.list = html('ol', { class: 'problems' });
    this.wellText = html('span');
    this.wellLine = html('p', { class: 'fine old', hidden: true }, glyph('well'), this.wellText);
    this.problems = new Keyed(
      this.list,
      (/** @type {{ problem: Problem, state: string }} */ it) => problemItem(it, showLock),
      () => {},
    );
    /** When the problems were examined, by the node's clock. */
    this.at = 0;
    /** @type {[Problem, HTMLElement][]} */
    this.times = [];
    this.keeperHead = html('h3');
    this.keeperList = html('ul', { class: 'keepers' });
    this.keepers = new Keyed(this.keeperList, keeperItem, updateKeeper);
    this.memberHead = html('th', { scope: 'col' });
    this.leaseHead = html('span');
    this.body = html('tbody');
    this.rows = new Keyed(this.body, memberRow, updateMember);
    this.more = html('p', { class: 'small muted' });
    this.figures = html('div', { class: 'figures' });
    section.append(
      html(
        'div',
        { class: 'split' },
        html('div', {}, this.verdict, this.lead, this.list, this.wellLine),
        html(
          'div',
          { class: 'old' },
          this.keeperHead,
          this.keeperList,
          this.table(),
          this.more,
          this.figures,
        ),
      ),
    );
  }

  table() {
    const head = (/** @type {string} */ text, /** @type {string} */ style) =>
      html('th', { scope: 'col', class: style }, text);
    return html(
      'table',
      { class: 'members' },
      html(
        'thead',
        {},
        html(
          'tr',
          {},
          this.memberHead,
          head('role', ''),
          html(
            'th',
            { scope: 'col' },
            this.leaseHead,
            html('span', { class: 'wide' }, '; the mark is a third'),
          ),
          head('left', 'num'),
          head('holds', 'num wide'),
          head('waiters', 'num wide'),
        ),
      ),
      this.body,
    );
  }

  /**
   * @param {Overview} overview
   * @param {Overview} informed the last one that knew the members
   * @param {number} now
   */
  show(overview, informed, now) {
    say(this.verdict, overview.verdict);
    say(this.lead, overview.detail);
    const items = overview.problems.map(
      (problem) => /** @type {const} */ ([keyOf(problem, overview.at_ms), problem]),
    );
    this.at = overview.at_ms;
    this.problems.syncInOrder(
      items.map(([key, problem]) => [key, { problem, state: stateOf(problem, this.at) }]),
    );
    this.times = items.flatMap(([key, problem]) => {
      const time = this.problems.parts.get(key)?.querySelector('time');
      return time instanceof HTMLElement ? [[problem, time]] : [];
    });
    say(this.wellText, `Looked at and well: ${overview.well.join('; ')}.`);
    set(this.wellLine, 'hidden', overview.well.length === 0);
    this.showKeepers(overview.keepers);
    this.showMembers(informed, overview === informed, now);
    this.tick(now);
  }

  /** @param {Keeper[]} keepers */
  showKeepers(keepers) {
    const up = keepers.filter(({ state }) => state === 'leads' || state === 'follows').length;
    const down = keepers.filter(({ state }) => state === 'down').length;
    const unknown = keepers.length - up - down;
    const more = unknown > 0 ? `, ${unknown} unknown` : '';
    const majority = Math.floor(keepers.length / 2) + 1;
    say(
      this.keeperHead,
      `Keepers: ${up} of ${keepers.length} up${more}, a majority is ${majority}`,
    );
    this.keepers.syncInOrder(keepers.map((keeper) => [keeper.name, keeper]));
  }

  /**
   * @param {Overview} overview
   * @param {boolean} isNew
   * @param {number} now
   */
  showMembers({ members, outside, leader, lease_ms: lease, at_ms: at }, isNew, now) {
    const left = (/** @type {Member} */ it) => it.lease_left_ms ?? Infinity;
    const shown =
      members.length > MEMBERS_MAX
        ? [...members].sort((a, b) => left(a) - left(b)).slice(0, MEMBERS_MAX)
        : members;
    say(this.memberHead, `Members: ${members.length}${isNew ? '' : `, ${span(now - at)} ago`}`);
    say(this.leaseHead, `Lease of ${length(lease)}`);
    /** @type {[string, Entry][]} */
    const entries = [
      ...shown.map(
        (member) =>
          /** @type {[string, Entry]} */ ([`in ${member.name}`, { member, lease, leader }]),
      ),
      ...outside.map(
        (node) => /** @type {[string, Entry]} */ ([`out ${node.name}`, { outside: node, now }]),
      ),
    ];
    this.rows.syncInOrder(entries);
    const hidden = members.length - shown.length;
    say(
      this.more,
      hidden > 0 ? `and ${count(hidden, 'member', 'members')} with longer leases` : '',
    );
  }

  /** Times that pass while nothing is pushed. @param {number} now */
  tick(now) {
    for (const [problem, time] of this.times) say(time, when(problem, this.at, now));
  }
}

/**
 * Whether a problem was found, is over, or could not be examined.
 * @param {Problem} problem
 * @param {number} at when the problems were examined
 */
function stateOf({ is_over: isOver, last_seen_ms: seen }, at) {
  if (isOver) return 'over';
  return seen < at ? 'unexamined' : 'found';
}

/**
 * A problem's element is made again if anything but the time differs.
 * @param {Problem} problem
 * @param {number} at
 */
function keyOf(problem, at) {
  const { code, level, title, since_ms: since, text, link, lock, commands } = problem;
  const state = stateOf(problem, at);
  return JSON.stringify([code, level, title, since, state, text, link, lock, commands]);
}

/**
 * @param {{ problem: Problem, state: string }} it
 * @param {(lock: string) => void} showLock
 */
function problemItem({ problem, state }, showLock) {
  const { code, level, title, text, link, lock, commands } = problem;
  const [mark, style] =
    state === 'over'
      ? ['well', 'muted']
      : level === 'critical'
        ? ['fault', 'fault']
        : ['waiting', 'wait'];
  const manual = link && state !== 'over' ? whatToDo(link) : null;
  return html(
    'li',
    {
      'data-code': code,
      'data-level': level,
      'data-state': state,
      class: FIRST_HAND.includes(code) ? 'old own' : 'old',
    },
    glyph(mark),
    html(
      'div',
      {},
      html(
        'div',
        { class: 'top' },
        html('h3', { dir: 'auto' }, title),
        html('time', { class: style }),
      ),
      state !== 'over' &&
        html(
          'p',
          { dir: 'auto' },
          text,
          !!lock && ' ',
          !!lock &&
            html(
              'button',
              { type: 'button', class: 'link', onclick: () => showLock(lock) },
              'Show this lock',
            ),
          !!manual && ' ',
          !!manual && manual.button,
        ),
      !!manual && manual.text,
      state !== 'over' &&
        html(
          'div',
          {},
          commands.map((it) => commandRow(it.label, it.command)),
        ),
    ),
  );
}

/** @param {Keeper} keeper */
function keeperItem({ name: text }) {
  return html('li', { 'data-keeper': text }, name(text, 'mono'), html('small'));
}

/**
 * @param {HTMLElement} item
 * @param {Keeper} keeper
 */
function updateKeeper(item, { state }) {
  set(item, 'class', state === 'down' ? 'down' : '');
  set(item, 'data-state', state);
  const small = item.querySelector('small');
  if (small) say(small, state === 'down' ? '✕ down' : state);
}

/**
 * @typedef {{ member: Member, lease: number, leader?: string | null } | { outside: Outside, now: number }} Entry
 */

/** @param {Entry} entry */
function memberRow(entry) {
  if ('outside' in entry) {
    return html(
      'tr',
      { class: 'fault', 'data-outside': entry.outside.name },
      html('td', { class: 'mono' }, name(entry.outside.name)),
      html('td', { class: 'small' }),
      html('td', { colspan: 4, class: 'state' }, glyph('fault'), html('span')),
    );
  }
  return html(
    'tr',
    { 'data-member': entry.member.name },
    html('td', { class: 'mono' }, name(entry.member.name)),
    html('td', { class: 'muted small' }),
    html(
      'td',
      { class: 'bar' },
      html(
        'div',
        {
          class: 'lease',
          role: 'meter',
          'aria-label': `Lease of ${entry.member.name}`,
          'aria-valuemin': 0,
        },
        html('i'),
      ),
    ),
    html('td', { class: 'num' }),
    html('td', { class: 'num wide' }),
    html('td', { class: 'num wide' }),
  );
}

/**
 * @param {HTMLElement} row
 * @param {Entry} entry
 */
function updateMember(row, entry) {
  const cells = row.children;
  if ('outside' in entry) {
    const { is_keeper: isKeeper, state, reason, since_ms: since } = entry.outside;
    say(cells[1], isKeeper ? 'keeper' : '');
    const text = cells[2].querySelector('span');
    const ago = since ? ` ${span(entry.now - since)} ago` : '';
    if (text) say(text, `${state}${ago}`);
    set(cells[2], 'title', reason ?? undefined);
    return;
  }
  const { member, lease, leader } = entry;
  // The leader's clock may be a little ahead of the member's.
  const left = member.lease_left_ms === null ? null : Math.min(member.lease_left_ms, lease);
  say(cells[1], member.name === leader ? 'leads' : member.is_keeper ? 'keeper' : '');
  const meter = cells[2].firstElementChild;
  const bar = meter?.firstElementChild;
  if (meter && bar instanceof HTMLElement) {
    const share = (left ?? 0) / lease;
    set(meter, 'aria-valuemax', lease);
    set(meter, 'aria-valuenow', left ?? 0);
    set(bar, 'class', share < 1 / 3 ? 'low' : '');
    bar.style.width = `${(100 * share).toFixed(1)}%`;
  }
  say(cells[3], left === null ? '?' : `${(left / 1000).toFixed(1)} s`);
  say(cells[4], String(member.holds ?? '?'));
  say(cells[5], String(member.waiters ?? '?'));
  set(cells[5], 'class', `num wide ${member.waiters ? 'wait' : 'muted'}`);
}
