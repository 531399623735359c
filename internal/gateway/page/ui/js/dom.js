// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Makes elements. All text goes through text nodes: what a model or a stranger says is never read as HTML.

/**
 * @param {string} tag of the element, such as "p"
 * @param {Object<string, any>} [props] attributes; "on" is an object of listeners, "class" and "text" what they say,
 *   true an attribute without a value; null, undefined and false none
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else if (name === 'text') made.textContent = value;
    else made.setAttribute(name, value === true ? '' : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A button. @param {string} label @param {(event: Event) => void} act @param {Object<string, any>} [props] */
export function button(label, act, props = {}) {
  return el('button', { type: 'button', on: { click: act }, ...props }, label);
}

/** Replaces the children of a node, if that is there. @param {Element} parent @param {...(Node|string|null|false)} children */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false));
}

/**
 * Gives a parent these children. Those that it has already stay where they are as far as possible, and keep the focus.
 * @param {Element} parent @param {Node[]} nodes
 */
export function arrange(parent, nodes) {
  nodes.forEach((node, i) => { if (parent.childNodes[i] !== node) parent.insertBefore(node, parent.childNodes[i] ?? null); });
  while (parent.childNodes.length > nodes.length) parent.lastChild.remove();
}

/**
 * Whether a key is for an input method, such as to choose among characters. The one that ends a choice in Safari comes after
 * it, with this code.
 * @param {KeyboardEvent} event
 */
export const composes = (event) => event.isComposing || event.keyCode === 229;

/**
 * Acts if Enter sends: with Shift it makes a line, and on a phone, whose keyboard has no Shift+Enter, it always does.
 * @param {KeyboardEvent} event @param {() => void} act
 */
export function onEnter(event, act) {
  const held = event.ctrlKey || event.metaKey;
  if (event.key !== 'Enter' || event.shiftKey || composes(event) || (!held && matchMedia('(pointer: coarse)').matches)) return;
  event.preventDefault();
  if (!event.repeat) act();
}

/** @param {string} text for the clipboard */
export async function copyText(text) {
  if (!navigator.clipboard) throw new Error('the browser allows this only on pages that it reached by HTTPS or on this machine.');
  await navigator.clipboard.writeText(text);
}

/** A button that copies a text. @param {string} label @param {() => string|Promise<string>} text @param {string} what it does */
export function copyButton(label, text, what) {
  const copy = button(label, async () => {
    try {
      await copyText(await text());
      copy.textContent = 'Copied';
      announce('Copied.');
      setTimeout(() => { copy.textContent = label; }, 2000);
    } catch (no) {
      toast(`Nothing was copied: ${no.message}`, true);
    }
  }, { class: 'copy quiet', 'aria-label': what });
  return copy;
}

/** @param {string} id @returns {any} the element that index.html has */
export function byId(id) {
  return document.getElementById(id);
}

const frames = new Map();

/** Runs a function once before the next frame, however often it is asked for. @param {Function} draw */
export function onFrame(draw) {
  if (frames.has(draw)) return;
  const run = () => {
    const { frame, timer } = frames.get(draw);
    frames.delete(draw);
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    draw();
  };
  // A page that nobody sees has no frames, and is to be up to date when it is looked at.
  frames.set(draw, { frame: requestAnimationFrame(run), timer: setTimeout(run, 250) });
}

let speaking = 0;

/** Says something to those who listen to the page instead of looking at it. @param {string} words */
export function announce(words) {
  const at = byId('announcer');
  at.textContent = '';
  clearTimeout(speaking);
  speaking = setTimeout(() => { at.textContent = words; }, 100);
}

/** Shows a passing word at the bottom, in place of the same word. @param {string} words @param {boolean} [bad] */
export function toast(words, bad = false) {
  const shown = el('div', { class: bad ? 'toast bad' : 'toast', role: bad ? 'alert' : 'status' }, el('span', {}, words),
    button('Close', () => shown.remove(), { class: 'quiet' }));
  for (const other of byId('toasts').children) if (other.firstChild.textContent === words) other.remove();
  byId('toasts').append(shown);
  if (!bad) setTimeout(() => shown.remove(), 6000);
}
