/** Elements, made and changed one at a time: a step touches only what differs. */

/** @typedef {Record<string, string | number | boolean | undefined | ((event: any) => void)>} Attributes */
/** @typedef {Node | string | false | undefined} Child */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes] those whose names begin with `on` are listeners
 * @param {(Child | Child[])[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes]
 * @param {(Child | Child[])[]} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Attributes} attributes
 * @param {(Child | Child[])[]} children
 * @returns {E}
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else set(element, name, value);
  }
  for (const child of children.flat()) if (child) element.append(child);
  return element;
}

/**
 * Sets an attribute if it differs; false and undefined remove it.
 * @param {Element} element
 * @param {string} name
 * @param {string | number | boolean | undefined} value
 */
export function set(element, name, value) {
  if (value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/**
 * @param {Element} element
 * @param {Record<string, string | number | boolean | undefined>} values
 */
export function setAll(element, values) {
  for (const [name, value] of Object.entries(values)) set(element, name, value);
}

/**
 * Sets the text if it differs.
 * @param {Element} element
 * @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Children with keys: those that stay are kept and updated.
 * @template K, T
 * @template {Element} E
 */
export class Keyed {
  /**
   * @param {Element} parent
   * @param {(item: T, key: K) => E} create
   * @param {(element: E, item: T, key: K) => void} update
   */
  constructor(parent, create, update) {
    this.parent = parent;
    this.create = create;
    this.update = update;
    /** @type {Map<K, E>} */
    this.parts = new Map();
  }

  /** @param {Iterable<[K, T]>} items */
  sync(items) {
    const gone = new Set(this.parts.keys());
    for (const [key, item] of items) {
      gone.delete(key);
      let element = this.parts.get(key);
      if (!element) {
        element = this.create(item, key);
        this.parts.set(key, element);
        this.parent.append(element);
      }
      this.update(element, item, key);
    }
    for (const key of gone) this.drop(key);
  }

  /** As `sync`, for a parent without other children: they stand in this order. @param {[K, T][]} items */
  syncInOrder(items) {
    this.sync(items);
    for (const [i, [key]] of items.entries()) {
      const element = this.parts.get(key);
      const there = this.parent.children[i];
      if (element && there !== element) this.parent.insertBefore(element, there);
    }
  }

  /** @param {K} key */
  drop(key) {
    this.parts.get(key)?.remove();
    this.parts.delete(key);
  }

  clear() {
    for (const key of [...this.parts.keys()]) this.drop(key);
  }
}

/**
 * The path of a diamond, the sign of the token.
 * @param {number} r
 * @param {number} [x]
 * @param {number} [y]
 */
export function diamond(r, x = 0, y = 0) {
  return `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;
}

/**
 * A small sign for a legend or a list.
 * @param {string} name idle, waiting, inside, down, token, message, fault, well or plain
 */
export function glyph(name) {
  const marks = {
    token: () => svg('path', { d: diamond(6, 7, 7) }),
    message: () => svg('path', { d: 'M3 3L12 7L3 11Z' }),
    fault: () => svg('path', { d: 'M3 3l8 8m0 -8l-8 8' }),
    well: () => svg('path', { d: 'M2.5 7.5l3 3l6 -7' }),
    plain: () => svg('circle', { cx: 7, cy: 7, r: 3 }),
  };
  const mark =
    marks[/** @type {keyof typeof marks} */ (name)] ??
    (() => svg('circle', { cx: 7, cy: 7, r: 5 }));
  return svg(
    'svg',
    { class: `glyph ${name}`, width: 14, height: 14, 'aria-hidden': 'true' },
    mark(),
  );
}
