// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Keeps the focus where somebody is. What had it may go away or move: chats are sorted again, calls are decided, messages
// are deleted by others. A browser then drops the focus, and whoever works by keys begins at the top of the page.

import { byId } from './dom.js';

/**
 * Where the focus goes from a place that is gone, by the part of the page that it was in. None is a button or a field with
 * a draft: a second Enter decides nothing and sends nothing.
 */
const NEXT = {
  '#approvals': () => byId('approvals'),
  '#inbox': () => byId('inbox'),
  '#found': () => byId('found'),
  '#config': () => byId('config'),
  '#usage': () => byId('usage'),
  '#chats': () => document.querySelector('#chats a[aria-current]') ?? byId('filter'),
};

/** @type {HTMLElement|null} */
let last = null;
/** The part of the page that last was in. */
let part = '';

/** Keeps it from now on. */
export function keepFocus() {
  document.addEventListener('focusin', (event) => {
    last = /** @type {HTMLElement} */ (event.target);
    part = Object.keys(NEXT).find((selector) => last?.closest(selector)) ?? '';
  });
  new MutationObserver(restore).observe(document.body,
    { childList: true, subtree: true, attributes: true, attributeFilter: ['hidden', 'disabled'] });
}

/** @param {MutationRecord[]} changes */
function restore(changes) {
  const now = document.activeElement;
  if (!last || (now !== document.body && now !== last) || document.querySelector('dialog[open]')) return;
  if (usable(last)) {
    const moved = changes.some((change) => [...change.removedNodes].some((node) => node.contains(last)));
    if (moved && now !== last) last.focus({ preventScroll: true });
    return;
  }
  const to = [NEXT[part]?.(), byId('transcript'), byId('filter')].find((element) => element && usable(element));
  to?.focus({ preventScroll: true });
}

/** @param {any} element */
function usable(element) {
  return element.isConnected && !element.disabled && element.checkVisibility();
}
