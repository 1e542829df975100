/** Runs to choose from: walk-throughs, faults in print, and each algorithm under load. */

/** @import { Entry } from './server.js' */
import { formatAddress } from './address.js';
import { html } from './dom.js';
import { thumbnail } from './thumbnail.js';
import { sentence, unbroken } from './words.js';

/** @typedef {{ algorithms: string[], open: (text: string) => void }} GalleryContext */

/** Demands that do not depend on the algorithm: rates are requests per message delay. */
const LOADS = [
  ['poisson:0.1', 'now and then'],
  ['poisson:1', 'often'],
  ['burst', 'all at once'],
];

export class Gallery extends HTMLElement {
  /**
   * @param {Entry[]} entries
   * @param {GalleryContext} context
   */
  show(entries, { algorithms, open }) {
    /** @type {Map<string, Entry[]>} */
    const groups = new Map();
    for (const entry of entries)
      groups.set(entry.group, [...(groups.get(entry.group) ?? []), entry]);
    const card = (/** @type {Entry} */ { name, title, ...entry }) => {
      const href = formatAddress({ kind: 'gallery', name, at: 0 });
      return html(
        'li',
        {},
        html(
          'a',
          { href, 'data-run': name },
          thumbnail(entry.picture),
          html('strong', {}, unbroken(title)),
          html('span', {}, entry.sentence),
        ),
      );
    };
    const sections = [...groups].map(([group, cards]) =>
      html(
        'section',
        {},
        html('h2', {}, sentence(group)),
        html('ul', { class: 'cards' }, cards.map(card)),
      ),
    );
    this.replaceChildren(
      html(
        'div',
        { class: 'lead' },
        html('h2', {}, 'Watch mutual exclusion at work'),
        html(
          'p',
          {},
          'Every run plays the code that ships. Take over at any step, or let a search find what goes wrong from there.',
        ),
        html('div', { class: 'row' }, this.#comparison(algorithms), this.#file(open)),
      ),
      ...sections,
    );
  }

  /** @param {string[]} algorithms */
  #comparison(algorithms) {
    const pick = (/** @type {string} */ label, /** @type {string} */ chosen) =>
      html(
        'select',
        { 'aria-label': label },
        algorithms.map((name) => html('option', { value: name, selected: name === chosen }, name)),
      );
    const a = pick('First algorithm', 'raymond');
    const b = pick('Second algorithm', 'ricart-agrawala');
    const nodes = html('input', {
      type: 'number',
      min: 2,
      max: 64,
      value: 9,
      'aria-label': 'Nodes',
    });
    const load = html(
      'select',
      { 'aria-label': 'Load' },
      LOADS.map(([value, name]) => html('option', { value }, name)),
    );
    const go = html('button', { type: 'submit' }, 'Compare');
    const form = html('form', { class: 'compare' }, a, 'with', b, nodes, 'nodes', load, go);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      location.hash = `compare:${a.value},${b.value},${nodes.value},${load.value}/0`;
    });
    return form;
  }

  /** @param {(text: string) => void} open */
  #file(open) {
    const input = html('input', { type: 'file', accept: '.txt,text/plain', class: 'file' });
    input.addEventListener('change', async () => {
      const file = input.files?.[0];
      if (file) open(await file.text());
      input.value = '';
    });
    return html('label', { class: 'button' }, 'Open a scenario', input);
  }
}
