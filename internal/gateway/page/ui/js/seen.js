// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Which chats have changed since somebody looked at them. This browser remembers it.

const KEY = 'parley.seen';
/** So many chats are remembered; older ones count as seen. */
const MOST = 500;

/** @type {{since: string, chats: Object<string, string>}} when the browser began to remember, and when which chat was seen */
const seen = stored();
store(); // Otherwise a later visit would begin anew.

addEventListener('storage', ({ key }) => { // Another tab has marked them.
  if (key === KEY) Object.assign(seen, stored());
});

function stored() {
  try {
    const { since, chats } = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    return { since: since ?? new Date().toISOString(), chats: chats ?? {} };
  } catch {
    return { since: new Date().toISOString(), chats: {} };
  }
}

function store() {
  try {
    localStorage.setItem(KEY, JSON.stringify(seen));
  } catch {
    // It counts no longer than this page.
  }
}

/** When a chat changed, as text that sorts; empty if nobody knows. @param {any} chat */
function changed(chat) {
  const at = new Date(chat.since ?? chat.createdAt);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}

/** @param {string} namespace @param {any} chat as the list has it */
export function isUnread(namespace, chat) {
  const at = changed(chat);
  return at > seen.since && at > (seen.chats[`${namespace}/${chat.name}`] ?? '');
}

/** @param {string} namespace @param {any} chat that somebody looks at */
export function markSeen(namespace, chat) {
  if (!isUnread(namespace, chat)) return;
  seen.chats[`${namespace}/${chat.name}`] = changed(chat);
  const all = Object.entries(seen.chats).sort(([, a], [, b]) => b.localeCompare(a));
  for (const [old, at] of all.slice(MOST)) {
    delete seen.chats[old];
    if (at > seen.since) seen.since = at;
  }
  store();
}
