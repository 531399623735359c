// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Changes of texts, with their signs before the lines, so that colours alone tell nothing.

import { el } from './dom.js';
import { plain } from './text.js';

/** More than the input of a call that people decide about can have. */
const MOST = 20_000;
const KINDS = { '+': 'add', '-': 'del', '@': 'hunk' };

/** A unified diff. @param {string} unified */
export function diff(unified) {
  return rows(unified.replace(/\n$/, '').split('\n').map((line) => ({ line,
    kind: /^(---|\+\+\+) /.test(line) ? 'hunk' : KINDS[line[0]] ?? '' })));
}

/** What takes the place of what. @param {string} before @param {string} after */
export function replacement(before, after) {
  const of = (text, sign) => (text === '' ? [] : text.replace(/\n$/, '').split('\n')
    .map((line) => ({ kind: KINDS[sign], line: sign + line })));
  return rows([...of(before, '-'), ...of(after, '+')]);
}

function rows(lines) {
  const left = lines.length - MOST;
  return el('pre', { class: 'diff', tabindex: 0, 'aria-label': 'changes' },
    ...lines.slice(0, MOST).map(({ kind, line }) => el('span', { class: kind }, plain(line) || ' ')),
    left > 0 ? `${left} more lines` : null);
}
