/** The manual's entry about a problem, shown where the problem is. */

import { html, say, set } from '../dom.js';

/** @type {Promise<string> | null} */
let manual = null;

/**
 * The anchor of a heading, as GitHub makes it.
 * @param {string} heading
 */
export function anchor(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

/**
 * The text below a heading, up to the next one of its level.
 * @param {string} text Markdown
 * @param {string} wanted the heading's anchor
 * @returns {string | null}
 */
export function section(text, wanted) {
  const lines = text.split('\n');
  let isCode = false;
  let level = 0;
  /** @type {string[]} */
  const found = [];
  for (const line of lines) {
    if (line.startsWith('```')) isCode = !isCode;
    const heading = isCode ? null : /^(#+) (.*)/.exec(line);
    if (level > 0 && heading && heading[1].length <= level) break;
    if (level > 0) found.push(line);
    else if (heading && anchor(heading[2]) === wanted) level = heading[1].length;
  }
  return level > 0 ? found.join('\n').trim() : null;
}

/**
 * What to do: a button that unfolds the text.
 * @param {string} link an anchor in operations.md
 */
export function whatToDo(link) {
  const text = html('pre', {
    class: 'manual',
    tabindex: 0,
    'aria-label': 'From the manual',
    hidden: true,
  });
  const button = html(
    'button',
    { type: 'button', class: 'link', 'aria-expanded': 'false' },
    'What to do',
  );
  button.addEventListener('click', async () => {
    text.hidden = !text.hidden;
    set(button, 'aria-expanded', String(!text.hidden));
    if (text.hidden || text.textContent) return;
    try {
      manual ??= load();
      const found = section(await manual, link);
      say(text, found ?? `docs/operations.md has no entry "${link}".`);
    } catch {
      manual = null;
      say(text, `The manual cannot be loaded: see docs/operations.md, "${link}".`);
    }
  });
  return { button, text };
}

async function load() {
  const response = await fetch('operations.md');
  if (!response.ok) throw new Error(response.statusText);
  return response.text();
}
