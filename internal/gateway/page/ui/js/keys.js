// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Keys. Single letters count only where nothing is typed, and can be turned off.

import { el } from './dom.js';
import { dialog } from './dialogs.js';

const OFF = 'parley.keys.off';

/** @typedef {{keys: string[], what: string, act: () => void}} Shortcut */

/** @param {Shortcut[]} shortcuts */
export function listen(shortcuts) {
  document.addEventListener('keydown', (event) => {
    const at = /** @type {HTMLElement} */ (event.target);
    const typing = at.matches('input, textarea, select, [contenteditable]');
    if (event.ctrlKey || event.metaKey || event.altKey || typing || document.querySelector('dialog[open]')) return;
    if (off() && event.key !== '?') return;
    const found = shortcuts.find((shortcut) => shortcut.keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found.act();
  });
}

function off() {
  try {
    return localStorage.getItem(OFF) === 'yes';
  } catch {
    return false;
  }
}

/** @param {Shortcut[]} shortcuts */
export function help(shortcuts) {
  const box = el('input', { type: 'checkbox' });
  box.checked = !off();
  box.addEventListener('change', () => {
    try {
      localStorage.setItem(OFF, box.checked ? 'no' : 'yes');
    } catch {
      // It counts no longer than this page.
    }
  });
  const rows = [...shortcuts.map(({ keys, what }) => [keys.join(' or '), what]), ['Enter', 'send what was typed, save an edit'],
    ['/', 'at the beginning of a message: a command'],
    ['Shift+Enter', 'another line'], ['Ctrl+Enter', 'send, and stop the turn under way'], ['Escape', 'leave a field']];
  const shown = dialog('Keys', el('dl', { class: 'keys' }, ...rows.flatMap(([keys, what]) => [el('dt', {}, el('kbd', {}, keys)),
    el('dd', {}, what)])), el('label', { class: 'check' }, box, ' Single keys do something'),
  el('div', { class: 'row' }, el('button', { type: 'button', class: 'primary', on: { click: () => shown.close() } }, 'Close')));
}
