// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Commands that people type in place of a message, such as /compact, and their completion.

import { byId, composes, el } from './dom.js';
import { plain } from './text.js';

export const EFFORTS = ['None', 'Minimal', 'Low', 'Medium', 'High', 'XHigh', 'Max'];
export const MODES = ['Plan', 'Explore'];
/** The value that takes a setting out of the chat. */
const UNSET = 'default';
const MOST = 9;

export class Commands {
  /**
   * @param {HTMLTextAreaElement} field
   * @param {{change: (spec: any, done: string) => void, request: (kind: string) => void, fork: () => void,
   *   failed: (words: string) => void, models: () => string[]}} chat
   */
  constructor(field, chat) {
    Object.assign(this, { field, root: byId('completions'), offers: [], at: 0, failed: chat.failed });
    const unset = (value) => (value === UNSET ? null : value);
    this.table = {
      '/model': { what: 'choose the model of the chat', values: chat.models, run: (name) => chat.change({ modelConfigRef: { name } }, `The model of the chat is now ${plain(name)}.`) },
      '/mode': { what: 'bound what the model may do', values: () => [...MODES, UNSET],
        run: (mode) => chat.change({ mode: unset(mode) }, `The mode of the chat is now ${mode}.`) },
      '/effort': { what: 'choose how much the model thinks', values: () => [...EFFORTS, UNSET],
        run: (effort) => chat.change({ reasoningEffort: unset(effort) }, `The effort of the chat is now ${effort}.`) },
      '/compact': { what: 'replace the context by a summary', run: () => chat.request('Compact') },
      '/fork': { what: 'continue in another chat from here', run: () => chat.fork() },
      '/clear': { what: 'begin a new context', run: () => chat.request('Clear') },
    };
    field.onblur = () => this.#offer([]);
  }

  /** Offers what the text may become. */
  complete() {
    const [, name, space, value = ''] = /^(\/[a-z]*)( ?)(\S*)$/.exec(this.field.value) ?? [];
    if (name === undefined) this.#offer([]);
    else if (!space) {
      this.#offer(Object.entries(this.table).filter(([known]) => known.startsWith(name))
        .map(([known, { what, values }]) => ({ text: values ? `${known} ` : known, what })));
    } else {
      this.#offer((this.table[name]?.values?.() ?? []).filter((known) => known.toLowerCase().startsWith(value.toLowerCase()))
        .map((known) => ({ text: `${name} ${known}`, what: '' })));
    }
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether the key was for the completion */
  key(event) {
    if (this.offers.length === 0 || composes(event)) return false;
    const offer = this.offers[this.at];
    switch (event.key) {
      case 'ArrowDown': case 'ArrowUp': this.#choose(this.at + (event.key === 'ArrowDown' ? 1 : -1)); break;
      case 'Escape': this.#offer([]); break;
      // What is whole already is sent by Enter.
      case 'Enter': if (event.shiftKey || offer.text.toLowerCase() === this.field.value.toLowerCase()) return false; // falls through
      case 'Tab': this.#take(offer); break;
      default: return false;
    }
    event.preventDefault();
    return true;
  }

  /** Runs a text that is a command. @param {string} text @returns {'no'|'done'|'wrong'} */
  run(text) {
    const [, typed, argument] = /^(\/[a-z-]+)(?:\s+([^]*?))?\s*$/i.exec(text) ?? [];
    if (!typed) return 'no';
    const name = typed.toLowerCase();
    const command = Object.hasOwn(this.table, name) && this.table[name];
    if (!command) {
      this.failed(`There is no command ${name}. Begin with a blank to send it as text.`);
      return 'wrong';
    }
    const values = command.values?.();
    const value = values?.find((known) => known.toLowerCase() === argument?.toLowerCase());
    if (values ? !value : argument) {
      this.failed(`${name} takes ${values ? `one of: ${values.join(', ')}` : 'nothing'}.`);
      return 'wrong';
    }
    command.run(value);
    this.#offer([]);
    return 'done';
  }

  #take(offer) {
    this.field.value = offer.text;
    this.field.dispatchEvent(new Event('input'));
  }

  #offer(offers) {
    this.offers = offers.slice(0, MOST);
    this.root.hidden = this.offers.length === 0;
    this.root.replaceChildren(...this.offers.map((offer, i) => el('li', { role: 'option', id: `completion-${i}`,
      // The field keeps the focus.
      on: { pointerdown: (event) => { event.preventDefault(); this.#take(offer); } } },
    el('code', {}, plain(offer.text)), ' ', offer.what)));
    this.#choose(0);
  }

  #choose(at) {
    this.at = (at + this.offers.length) % (this.offers.length || 1);
    [...this.root.children].forEach((li, i) => li.setAttribute('aria-selected', String(i === this.at)));
    if (this.offers.length) this.field.setAttribute('aria-activedescendant', `completion-${this.at}`);
    else this.field.removeAttribute('aria-activedescendant');
  }
}
