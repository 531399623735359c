// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The filter of the list of chats: words, and fields such as owner:jane or cost:0.5, all of which must match.

import { mark, standing } from './words.js';

const MARKS = { act: 'action', bad: 'failed', work: 'working', wait: 'waiting', rest: 'idle' };

/** @type {Object<string, (chat: any) => string>} the text in which the value of a field is looked for */
const FIELDS = {
  owner: (chat) => chat.createdBy ?? '',
  class: (chat) => chat.class ?? '',
  model: (chat) => chat.model ?? '',
  state: (chat) => [MARKS[mark(chat)], standing(chat), chat.reason, chat.archived ? 'archived' : ''].join(' '),
};
const ANY = ({ name, title, reason, phase, model }) => [name, title, reason, phase, model].join(' ');

const costs = (chat, least) => (chat.cost ?? []).some(({ microUnits }) => microUnits >= least * 1e6);

/** @param {string} text @returns {(chat: any) => boolean} */
export function matcher(text) {
  const tests = (text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []).map((term) => {
    const [, field, rest] = term.match(/^(?:(owner|class|model|state|cost):)?(.*)$/is);
    const [name, value] = [field?.toLowerCase(), rest.replaceAll('"', '').toLowerCase()];
    if (name === 'cost') return (chat) => costs(chat, Number(value));
    return (chat) => (FIELDS[name] ?? ANY)(chat).toLowerCase().includes(value);
  });
  return (chat) => tests.every((test) => test(chat));
}

/** The fields and values that chats have, to choose from. @param {Iterable<any>} chats @returns {string[]} */
export function suggestions(chats) {
  const found = new Set(['state:action', 'state:waiting', 'state:working', 'state:failed', 'state:idle', 'state:archived', 'cost:1']);
  for (const chat of chats) {
    for (const field of ['owner', 'class', 'model']) {
      const value = FIELDS[field](chat);
      if (value && !/["\n]/.test(value)) found.add(`${field}:${/\s/.test(value) ? `"${value}"` : value}`);
    }
  }
  return [...found].sort();
}
