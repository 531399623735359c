// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Keeps what was typed and not sent yet, at each keystroke, for this tab: it survives a reload and a crash of the browser,
// and nothing is left behind when the tab is closed.

const PREFIX = 'parley.draft.';
const memory = new Map();

/** @param {string} key @returns {string} what was typed; empty if nothing was */
export function draft(key) {
  try {
    return memory.get(key) ?? sessionStorage.getItem(PREFIX + key) ?? '';
  } catch {
    return '';
  }
}

/** @param {string} key @param {string} text empty: there is nothing to keep any more */
export function keep(key, text) {
  memory.set(key, text);
  if (text === '') memory.delete(key);
  try {
    if (text === '') sessionStorage.removeItem(PREFIX + key);
    else sessionStorage.setItem(PREFIX + key, text);
  } catch {
    // Storage is full or forbidden: this page still has it.
  }
}

/** Forgets all that was typed in this tab. */
export function discard() {
  memory.clear();
  try {
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
    }
  } catch {
    // As above.
  }
}

/** Lets a field begin with its draft, and keep it. @param {HTMLInputElement|HTMLTextAreaElement} field @param {string} key */
export function kept(field, key) {
  field.value = draft(key) || field.value;
  field.addEventListener('input', () => keep(key, field.value));
  return field;
}
