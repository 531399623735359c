// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// A search in the messages of a namespace. It goes on until all were searched, many were found, or it is left.

import { ask, inNamespace } from './api.js';
import { button, byId, el } from './dom.js';
import { ago, clipped, plain } from './text.js';

/** After so many hits the person says whether to go on. */
const ENOUGH = 200;

export class Search {
  /**
   * @param {string} namespace @param {string} words @param {(...places: string[]) => string} address
   * @param {(chat: string) => string|undefined} title of a chat
   */
  constructor(namespace, words, address, title) {
    Object.assign(this, { namespace, words, address, title, next: '', messages: 0, hits: 0, stopped: false });
    byId('found-rows').replaceChildren();
    byId('filter').value ||= words;
    byId('found').focus();
    this.#run();
  }

  /** @param {string} namespace @param {string} words */
  isFor(namespace, words) {
    return this.namespace === namespace && this.words === words;
  }

  stop() {
    this.stopped = true;
  }

  async #run() {
    const enough = this.hits + ENOUGH;
    try {
      do {
        this.#report('Searching…');
        const query = new URLSearchParams({ q: this.words, continue: this.next });
        const found = await ask('GET', `${inNamespace(this.namespace)}/search?${query}`);
        if (this.stopped) return;
        this.next = found.continue ?? '';
        this.messages += found.messages;
        this.hits += found.hits.length;
        byId('found-rows').append(...found.hits.map((hit) => this.#row(hit)));
      } while (this.next && this.hits < enough);
      this.#report('', this.next && 'Search on');
    } catch (no) {
      if (!this.stopped) this.#report(`The search has stopped: ${no.message}`, 'Try again');
    }
  }

  /** Says how far it looked. @param {string} words @param {string} [more] what a button does */
  #report(words, more) {
    const far = `Found ${this.hits} in ${this.messages} messages${this.next ? ' so far' : ''}.`;
    byId('found-state').replaceChildren(`${words} ${far} `.trimStart(), more ? button(more, () => this.#run(), { class: 'quiet' }) : '');
  }

  #row({ chat, message, role, createdAt, excerpt }) {
    return el('li', {}, el('a', { href: this.address(this.namespace, chat, message) }, clipped(this.title(chat) || chat, 80)),
      el('span', { class: 'meta' }, ` ${plain(role)} · ${ago(createdAt)}`), el('div', { dir: 'auto' }, ...marked(plain(excerpt), this.words)));
  }
}

/** A text in which the words and phrases of a query are marked. @param {string} text @param {string} query */
function marked(text, query) {
  const terms = query.split('"').flatMap((piece, i) => (i % 2 ? [piece.trim()] : piece.split(/\s+/))).filter(Boolean)
    .sort((a, b) => b.length - a.length).map((term) => term.replace(/[^\p{L}\p{N}\s]/gu, '\\$&').replace(/\s+/g, ' '));
  if (!terms.length) return [text];
  return text.split(new RegExp(`(${terms.join('|')})`, 'i')).map((piece, i) => (i % 2 ? el('mark', {}, piece) : piece));
}
