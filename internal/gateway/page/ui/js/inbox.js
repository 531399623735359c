// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// All approvals and questions of a namespace that wait for people, in one list.

import { ask, ofChat } from './api.js';
import { ApprovalPanel } from './approval.js';
import { arrange, el } from './dom.js';
import { clipped } from './text.js';
import { mark } from './words.js';

export class Inbox {
  /** @param {HTMLElement} root @param {string} namespace @param {(chat: string) => string} link @param {(words: string) => void} failed */
  constructor(root, namespace, link, failed) {
    Object.assign(this, { root, namespace, link, failed });
    /** @type {Map<string, {node: HTMLElement, panel: ApprovalPanel, note: HTMLElement, shown: string}>} */
    this.rows = new Map();
    this.reading = Promise.resolve();
    this.none = el('p', { class: 'empty' }, 'Nothing waits for you.');
  }

  /** @param {Iterable<any>} chats as the list has them */
  show(chats) {
    const waiting = [...chats].filter((chat) => mark(chat) === 'act').sort((a, b) => String(a.since).localeCompare(String(b.since)));
    const names = new Set(waiting.map((chat) => chat.name));
    for (const name of this.rows.keys()) if (!names.has(name)) this.rows.delete(name);
    arrange(this.root, waiting.length ? waiting.map((chat) => this.#row(chat)) : [this.none]);
  }

  /** The first thing to decide. */
  get first() {
    return [...this.rows.values()].map((row) => row.panel.first).find(Boolean);
  }

  #row(chat) {
    let row = this.rows.get(chat.name);
    if (!row) {
      const at = el('section', { class: 'approvals' });
      row = { note: el('p', { class: 'dim' }), shown: '', panel: new ApprovalPanel(at, this.namespace, chat.name, this.failed),
        node: el('section', {}, el('h3', {}, el('a', { href: this.link(chat.name) }, clipped(chat.title || chat.name, 80))), at) };
      row.node.append(row.note);
      this.rows.set(chat.name, row);
    }
    const shown = JSON.stringify(chat);
    // One after the other: the gateway serves few requests of a caller at a time.
    if (row.shown !== shown) this.reading = this.reading.then(() => this.#read(chat.name, row));
    row.shown = shown;
    return row.node;
  }

  async #read(name, row) {
    if (this.rows.get(name) !== row) return;
    try {
      const chat = await ask('GET', ofChat(this.namespace, name));
      const { status } = chat;
      const calls = status?.requiresAction?.toolCalls ?? [];
      const toolCalls = calls.filter((call) => call.kind !== 'Client');
      row.note.textContent = toolCalls.length < calls.length ? 'Other calls need results: open the chat.' : '';
      const waiting = toolCalls.length ? { ...status.requiresAction, historyVersion: status.history?.version, toolCalls } : null;
      row.panel.show(waiting, new Map(), chat);
    } catch (no) {
      row.note.textContent = `The calls cannot be read: ${no.message}`;
      row.shown = '';
    }
  }
}
