// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The transcript. Of a long one the newest messages are made first, and older ones when somebody scrolls to them.
// A message that stays as it is keeps its element: what was unfolded, selected or typed within it stays, too.

import { button, el } from './dom.js';
import { verdict } from './call.js';
import { LiveView } from './live.js';
import { giveUp, messageNode } from './message.js';

/** How many messages are made at once. */
const PAGE = 50;
/** How near to the end somebody must be to be taken along. */
const NEAR = 80;
/** How near to the beginning somebody is who wants earlier ones. */
const EARLY = 800;

export class Transcript {
  /**
   * @param {HTMLElement} scroller
   * @param {{chatLink: (chat: string) => string, edit: Function, remove: Function, drawn: (node: HTMLElement, entry: any) => void,
   *   older: () => Promise<boolean>}} page older brings messages from before the first that the stream has told
   */
  constructor(scroller, page) {
    this.scroller = scroller;
    this.page = { ...page, cards: new Map() };
    this.live = new LiveView(page);
    /** @type {{key: string, entry: any, node: HTMLElement}[]} */
    this.items = [];
    this.from = 0;
    this.following = true;
    this.content = el('div', { class: 'content' });
    this.earlier = button('Show earlier messages', () => this.showEarlier(true), { class: 'earlier quiet', hidden: true });
    this.newest = button('Newest ↓', () => this.toEnd(), { class: 'newest', hidden: true });
    this.inner = el('div', { class: 'inner' }, this.earlier, this.content, this.live.node);
    scroller.replaceChildren(this.inner, this.newest);
    this.top = 0;
    scroller.onscroll = () => this.#scrolled();
    this.sizes = new ResizeObserver(() => { if (this.following) this.#end(); });
    this.sizes.observe(this.inner);
    this.sizes.observe(scroller);
  }

  close() {
    this.sizes.disconnect();
    this.scroller.onscroll = null;
  }

  /** Shows what the story has become. @param {import('./story.js').Story} story */
  sync(story) {
    this.story = story;
    const wanted = this.#wanted();
    let same = 0;
    while (same < this.items.length && same < wanted.length && this.items[same].key === wanted[same].key) same += 1;
    if (same === 0 && this.items.length > 0) this.from = null;
    const opened = this.#drop(same);
    const added = (same === 0 ? this.#wanted() : wanted).slice(same).map((item) => this.#make(item, this.page));
    this.content.append(...added.map((item) => item.node));
    this.items.push(...added);
    this.#states(opened);
    for (const item of added) this.page.drawn(item.node, item.entry);
    this.earlier.hidden = !this.#hasEarlier();
    this.#afterwards();
  }

  /** Shows the attempt under way. @param {import('./story.js').Story} story */
  syncLive(story) {
    this.live.show(story.live, this.page.cards, story.status?.model);
    this.#afterwards();
  }

  /** Cards of calls, by the calls' ids. */
  get cards() {
    return this.page.cards;
  }

  /** @param {boolean} [asked] whether somebody did; what could not be read is not asked for again by itself */
  async showEarlier(asked = false) {
    if (this.loading || !this.#hasEarlier() || (this.refused && !asked)) return;
    this.loading = true;
    try {
      this.refused = this.from <= this.#lead() && !(await this.page.older());
      if (this.refused) return;
      const before = this.scroller.scrollHeight - this.scroller.scrollTop;
      const known = this.items.length;
      const until = this.#wanted();
      this.from = Math.max(0, this.#indexOf(until[0]) - PAGE);
      const wanted = this.#wanted();
      // Calls without a result that older messages know of are not those that wait now.
      const cards = new Map();
      const added = wanted.slice(0, wanted.length - known).map((item) => this.#make(item, { ...this.page, cards }));
      for (const [id, card] of cards) if (!this.page.cards.has(id)) this.page.cards.set(id, card);
      this.content.prepend(...added.map((item) => item.node));
      this.items.unshift(...added);
      this.earlier.hidden = !this.#hasEarlier();
      this.scroller.scrollTop = this.scroller.scrollHeight - before;
      this.top = this.scroller.scrollTop;
    } finally {
      this.loading = false;
    }
  }

  toEnd() {
    this.following = true;
    this.#end();
    this.newest.hidden = true;
  }

  #indexOf(item) {
    return item ? this.story.entries.findIndex((e) => e.message.uid === item.entry.message.uid) : this.story.entries.length;
  }

  /** How many results the story begins with whose calls are in a message that has not come. */
  #lead() {
    const { entries } = this.story;
    return entries[0]?.index > 0 ? Math.max(0, entries.findIndex((e) => e.message.role !== 'Tool')) : 0;
  }

  #hasEarlier() {
    return Boolean(this.story) && (this.from > 0 || this.story.entries[0]?.index > 0);
  }

  /** The messages to show, with the notes between them, and the mark where the model begins to see them. */
  #wanted() {
    const { entries, notes, status } = this.story;
    if (this.from === null || this.items.length === 0) this.from = Math.max(0, entries.length - PAGE);
    // Results stand in the card of their call, which is in the message before.
    while (this.from > 0 && entries[this.from]?.message.role === 'Tool') this.from -= 1;
    this.from = Math.max(this.from, this.#lead());
    const shown = entries.slice(this.from);
    const first = entries[this.from]?.index > 0 ? entries[this.from].index : -1;
    const beside = [...notes.values()].filter((n) => n.index >= first)
      .sort((a, b) => a.index - b.index || a.message.createdAt.localeCompare(b.message.createdAt));
    const out = [];
    for (const entry of shown) {
      while (beside.length && beside[0].index <= entry.index) out.push(itemOf(beside.shift()));
      if (status?.contextStart > 0 && entry.index === status.contextStart) out.push({ key: `start@${entry.index}`, entry });
      out.push(itemOf(entry));
    }
    return [...out, ...beside.map(itemOf)];
  }

  #make({ key, entry }, page) {
    const node = key.startsWith('start@') ? el('div', { class: 'start', role: 'separator' }, 'The model sees what follows')
      : messageNode(entry, page);
    return { key, entry, node };
  }

  /** Takes away what is behind the first so many. @returns {Set<string>} the calls that were unfolded */
  #drop(count) {
    const opened = new Set();
    for (const [id, card] of this.live.cards) if (card.node.open) opened.add(id);
    for (const item of this.items.splice(count)) {
      item.node.remove();
      for (const part of item.entry.message.parts ?? []) {
        const id = part.toolCall?.id ?? part.toolResult?.id;
        const card = this.page.cards.get(id);
        if (card?.node.open) opened.add(id);
        if (part.toolCall) this.page.cards.delete(id);
        else if (card) card.show({ result: undefined, isError: false, state: 'called' });
      }
    }
    return opened;
  }

  /** How the calls stand that have no result. */
  #states(opened) {
    const { waiting, status, busy } = this.story;
    for (const [id, card] of this.page.cards) {
      if (opened.has(id)) card.open();
      const pending = waiting?.toolCalls.find((call) => call.id === id);
      if (pending?.decision) card.set('waits', verdict(pending.decision));
      else if (pending) card.set('waits', pending.kind === 'Client' ? 'waits for a client' : 'waits for people');
      else if (card.call.result === undefined && !busy && card.state === 'called') card.set('none', 'has no result');
    }
    if (status?.callsCanceledReason) giveUp(this.page.cards, status.callsCanceledReason);
  }

  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    const near = scrollTop + clientHeight >= scrollHeight - NEAR;
    // What grows above moves nobody up: only people do.
    if (near) this.following = true;
    else if (scrollTop < this.top - 2) this.following = false;
    this.top = scrollTop;
    this.newest.hidden = near || this.following;
    if (scrollTop < EARLY && !this.following) this.showEarlier();
  }

  #end() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.top = this.scroller.scrollTop;
  }

  #afterwards() {
    this.#scrolled(); // A person may have scrolled, and the event is yet to come.
    if (this.following) this.#end();
    if (this.story?.whole && this.scroller.scrollHeight <= this.scroller.clientHeight) this.showEarlier();
  }
}

function itemOf(entry) {
  return { key: `${entry.message.uid}@${entry.historyVersion}@${entry.index}`, entry };
}
