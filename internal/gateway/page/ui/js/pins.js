// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Which chats somebody keeps at the top of the list. This browser remembers it.

const KEY = 'parley.pins';

/** @type {Set<string>} */
const pins = new Set(stored());

function stored() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]');
  } catch {
    return [];
  }
}

addEventListener('storage', ({ key }) => { // Another tab has changed them.
  if (key !== KEY) return;
  pins.clear();
  for (const pinned of stored()) pins.add(pinned);
});

/** @param {string} namespace @param {string} chat */
export const isPinned = (namespace, chat) => pins.has(`${namespace}/${chat}`);

/** @param {string} namespace @param {string} chat @param {boolean} on */
export function pin(namespace, chat, on) {
  pins[on ? 'add' : 'delete'](`${namespace}/${chat}`);
  try {
    localStorage.setItem(KEY, JSON.stringify([...pins]));
  } catch {
    // It counts no longer than this page.
  }
}
