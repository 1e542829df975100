/** Small parts that several sections use. */

import { html, say, set } from '../dom.js';

/** @type {ReturnType<typeof setTimeout> | undefined} */
let hiding;

/**
 * Says something briefly at the edge of the page.
 * @param {string} text
 */
export function tell(text) {
  const box = document.getElementById('said');
  if (!box) return;
  say(box, text);
  set(box, 'class', 'on');
  clearTimeout(hiding);
  hiding = setTimeout(() => set(box, 'class', ''), 2500);
}

/** @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    tell('Copied');
  } catch {
    tell('This browser does not let the page copy. Select the text instead.');
  }
}

/**
 * A command to copy: the page never acts.
 * @param {string} label
 * @param {string} command
 */
export function commandRow(label, command) {
  return html(
    'div',
    { class: 'command' },
    html('span', { class: 'label' }, label),
    html('code', { title: command }, command),
    html(
      'button',
      { type: 'button', 'aria-label': `Copy ${command}`, onclick: () => copy(command) },
      'Copy',
    ),
  );
}

/** A name of a lock, an owner or a node: marks of direction in it do not reach the rest. @param {string} text @param {string} [style] */
export function name(text, style = '') {
  return html('bdi', { class: style || undefined }, text);
}

/**
 * A picture that is drawn for the width that there is, so that its text keeps its size.
 */
export class Picture {
  /** @param {(width: number) => SVGElement} draw */
  constructor(draw) {
    this.element = html('div', { class: 'picture' });
    this.draw = draw;
    new ResizeObserver(() => this.redraw()).observe(this.element);
  }

  redraw() {
    const width = this.element.clientWidth;
    if (width > 0) this.element.replaceChildren(this.draw(width));
  }
}
