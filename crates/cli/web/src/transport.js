/** The bar below: play, step, speed, and the whole run on one line. */

/** @import { Player } from './player.js' */
import { html, say, set, svg } from './dom.js';

const SPEEDS = [0.5, 1, 2, 4, 8];

/** A line that can be played: a run, or two of them on one axis of time. */
/**
 * @typedef {Object} Track
 * @property {number} at
 * @property {number} length
 * @property {number[]} entries positions
 * @property {number[]} captions positions
 * @property {number[]} faults positions
 */

export class Transport extends HTMLElement {
  width = 0;
  /** @type {Track | undefined} */
  track;

  /** @type {Player | undefined} */
  player;

  play = key('Play', 'space', '', () => this.player?.toggle());
  range = html('input', { type: 'range', min: 0, step: 1, 'aria-label': 'Step' });
  dots = ['entries', 'captions', 'faults'].map((name) => svg('path', { class: name }));
  marks = svg('svg', { height: 32, 'aria-hidden': 'true' }, this.dots);
  position = html('span', { class: 'mono position' });

  /** @param {Player} player */
  connect(player) {
    this.player = player;
    this.play.classList.add('play');
    this.range.addEventListener('input', () => player.go(Number(this.range.value)));
    const next = key('Next entry', 'n', 'M2 3l7 5-7 5zM10 3h2.5v10H10z', () => player.nextEntry());
    next.classList.add('next');
    next.append('Next entry');
    const speeds = SPEEDS.map((v) => html('option', { value: v, selected: v === 1 }, `${v}×`));
    const speed = html('select', { 'aria-label': 'Speed' }, speeds);
    speed.addEventListener('change', () => player.setSpeed(Number(speed.value)));
    this.append(
      html(
        'div',
        { class: 'keys', role: 'toolbar', 'aria-label': 'Play and step' },
        key('To the start', 'home', 'M3 3h2v10H3zM13 3v10L6 8z', () => player.go(0)),
        key('Back', '←', 'M11 3v10L4 8z', () => player.go(player.at - 1)),
        this.play,
        key('Step', '→', 'M5 3v10l7-5z', () => player.go(player.at + 1)),
        key('To the end', 'end', 'M11 3h2v10h-2zM3 3v10l7-5z', () => player.go(Infinity)),
        next,
      ),
      html('div', { class: 'scrub' }, this.marks, this.range),
      this.position,
      speed,
    );
    new ResizeObserver(([entry]) => {
      this.width = entry.contentRect.width;
      if (this.track) this.#mark(this.track);
    }).observe(this.range);
  }

  /**
   * @param {Track} track
   * @param {boolean} playing
   */
  show(track, playing) {
    const { range, position, play } = this;
    const { at, length } = track;
    if (range.max !== String(length)) range.max = String(length);
    range.value = String(at);
    range.style.setProperty('--done', length > 0 ? `${(at / length) * 100}%` : '0%');
    say(position, `${String(at).padStart(String(length).length, '\u2007')} / ${length}`);
    set(play, 'aria-label', playing ? 'Pause' : 'Play');
    const icon = /** @type {SVGPathElement} */ (play.querySelector('path'));
    set(icon, 'd', playing ? 'M3 2h4v12H3zM9 2h4v12H9z' : 'M4 2v12l10-6z');
    if (this.track?.entries !== track.entries || this.track.length !== length) this.#mark(track);
    this.track = track;
  }

  /**
   * Draws entries, captions and faults: one path each, and at most one mark per two pixels.
   * @param {Track} track
   */
  #mark(track) {
    const x = (/** @type {number} */ p) => 8 + (p / Math.max(1, track.length)) * (this.width - 16);
    /** @type {(positions: number[], draw: (x: number) => string) => string} */
    const path = (positions, draw) => {
      const columns = new Set(positions.map((p) => Math.round(x(p) / 2) * 2));
      return [...columns].map(draw).join('');
    };
    const [entries, captions, faults] = this.dots;
    set(
      entries,
      'd',
      path(track.entries, (at) => `M${at} 5h0`),
    );
    set(
      captions,
      'd',
      path(track.captions, (at) => `M${at} 27h0`),
    );
    set(
      faults,
      'd',
      path(track.faults, (at) => `M${at - 4} 1l8 8m0 -8l-8 8`),
    );
  }
}

/**
 * @param {string} label
 * @param {string} short the key on the keyboard
 * @param {string} d path of the icon
 * @param {() => void} act
 */
function key(label, short, d, act) {
  const icon = svg('path', { d, fill: 'currentColor' });
  const picture = svg('svg', { width: 16, height: 16, 'aria-hidden': 'true' }, icon);
  const title = `${label} (${short})`;
  return html('button', { type: 'button', 'aria-label': label, title, onclick: act }, picture);
}
