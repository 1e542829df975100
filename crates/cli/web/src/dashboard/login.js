/**
 * A node that serves this page may want a token. A browser cannot send it with a WebSocket, so the
 * page exchanges it for a cookie. `soloist ui` has the token itself, and never wants one.
 *
 * The cookie is sent only below a path that the node tells the page, the pass. The page keeps it in
 * a storage that other ports of the same host do not share, as they do cookies.
 */

import { say } from '../dom.js';

/** Where the pass is kept. */
const PASS = 'pass';

export class Login {
  /**
   * @param {HTMLElement} form
   * @param {() => void} enter called when the node has accepted the token
   */
  constructor(form, enter) {
    this.form = form;
    this.input = form.querySelector('input');
    this.error = form.querySelector('p');
    this.enter = enter;
    /** The pass, if there is no storage. */
    this.given = '';
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.submit();
    });
  }

  /** The path of the session, seen from the page. */
  session() {
    const pass = this.pass();
    return pass ? `${pass}session` : '../v1/session';
  }

  pass() {
    return stored() ?? this.given;
  }

  /** Shows the form if the node refused the connection for want of a token. */
  async look() {
    if (!this.form.hidden) return;
    const pass = this.pass();
    if (pass) {
      const known = await status(`${pass}login`);
      if (known === 204 || known === 0) return;
      // The node was restarted, or the browser has lost the cookie.
      this.keep('');
    }
    if ((await status('login')) !== 401) return;
    this.form.hidden = false;
    this.input?.focus();
  }

  async submit() {
    const { input, error } = this;
    if (!input || !error) return;
    const headers = { authorization: `Bearer ${input.value.trim()}` };
    const answer = await ask('login', { method: 'POST', headers });
    if (answer?.ok) {
      this.keep((await answer.json()).pass);
      input.value = '';
      say(error, '');
      this.form.hidden = true;
      this.enter();
    } else {
      say(error, answer?.status === 401 ? 'This is not the token.' : 'The node does not answer.');
    }
  }

  /** @param {string} pass */
  keep(pass) {
    this.given = pass;
    try {
      localStorage.setItem(PASS, pass);
    } catch {
      // Without storage, another tab asks for the token again.
    }
  }
}

/** The pass that is stored, or null if there is none or no storage. */
function stored() {
  try {
    return localStorage.getItem(PASS);
  } catch {
    return null;
  }
}

/**
 * The node's answer, or null if there is none.
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function ask(path, init) {
  try {
    return await fetch(path, init);
  } catch {
    // No answer, or a token that no header can carry.
    return null;
  }
}

/**
 * The status of the node's answer, or 0 if there is none.
 * @param {string} path
 */
async function status(path) {
  return (await ask(path))?.status ?? 0;
}
