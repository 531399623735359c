// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Colours of code. The library is loaded with the first code that it knows the language of. Its tokens become elements:
// what it makes as HTML is not used.

import { el } from './dom.js';

/** Longer code stays as it is: its tokens would take long to find. */
const MOST = 20_000;

/** Kinds of tokens by what they are coloured as. */
const KINDS = {
  keyword: 'keyword', built_in: 'keyword', operator: 'keyword', literal: 'number', number: 'number', string: 'string', regexp: 'string',
  comment: 'comment', quote: 'comment', doctag: 'comment', title: 'title', section: 'title', type: 'title', name: 'title', attr: 'attr',
  attribute: 'attr', property: 'attr', variable: 'attr', symbol: 'attr', meta: 'attr', addition: 'add', deletion: 'del',
};

let library;

/** Colours code. @param {HTMLElement} at that shows it @param {string} text @param {string} language */
export async function colour(at, text, language) {
  if (!language || text.length > MOST) return;
  try {
    library ??= import('../vendor/highlight.min.mjs');
    const { default: hljs } = await library;
    if (!hljs.getLanguage(language)) return;
    const { _emitter: tokens } = hljs.highlight(text, { language, ignoreIllegals: true });
    at.replaceChildren(...nodesOf(tokens.rootNode));
  } catch {
    library = undefined; // The connection may be lost. The code is legible without colours.
  }
}

function nodesOf({ children }) {
  return children.map((child) => {
    if (typeof child === 'string') return document.createTextNode(child);
    const kind = KINDS[child.scope?.split('.')[0]];
    return el('span', { class: kind && `hl-${kind}` }, ...nodesOf(child));
  });
}
