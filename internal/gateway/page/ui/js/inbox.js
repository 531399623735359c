// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// All approvals and questions of a namespace that wait for people, in one list.

import { ask, ofChat } from './api.js';
import { ApprovalPanel } from './approval.js';
import { arrange, el, onFrame } from './dom.js';
import { clipped } from './text.js';
import { mark } from './words.js';

export class Inbox {
  /** @param {HTMLElement} root @param {string} namespace @param {(chat: string) => string} link @param {(words: string) => void} failed */
  constructor(root, namespace, link, failed) {
    Object.assign(this, { root: el('div'), namespace, link, failed });
    /** @type {Map<string, {node: HTMLElement, panel: ApprovalPanel, note: HTMLElement, shown: string}>} */
    this.rows = new Map();
    this.reading = Promise.resolve();
    this.chats = [];
    this.draw = () => this.show(this.chats);
    root.replaceChildren(this.root);
    for (const left of ['pointerleave', 'focusout']) this.root.addEventListener(left, () => onFrame(this.draw));
    this.none = el('p', { class: 'empty' }, 'Nothing waits for you.');
  }

  /**
   * Shows what waits. While somebody is in the list, no row moves: new ones come last, and settled ones stay.
   * @param {Iterable<any>} chats as the list has them
   */
  show(chats) {
    this.chats = [...chats];
    const held = this.root.matches(':hover, :focus-within');
    const waiting = this.chats.filter((chat) => mark(chat) === 'act').sort((a, b) => String(a.since).localeCompare(String(b.since)));
    const names = new Set(waiting.map((chat) => chat.name));
    for (const [name, row] of this.rows) {
      if (names.has(name)) continue;
      if (held) row.panel.settle();
      else this.rows.delete(name);
    }
    const nodes = new Set([...(held ? this.root.children : []), ...waiting.map((chat) => this.#row(chat))]);
    nodes.delete(this.none);
    arrange(this.root, nodes.size ? [...nodes] : [this.none]);
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
      if (waiting) row.panel.show(waiting, () => '', chat);
      else row.panel.settle();
    } catch (no) {
      row.note.textContent = `The calls cannot be read: ${no.message}`;
      row.shown = '';
    }
  }
}
