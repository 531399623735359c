// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The transcript. Of a long one the newest messages are drawn first, and older ones when somebody scrolls to them.
// A message that stays as it is keeps its element: what was unfolded, selected or typed within it stays, too.

import { arrange, button, el } from './dom.js';
import { LiveView } from './live.js';
import { messageNode } from './message.js';
import { keyOf, Turn } from './turn.js';

/** How many messages are drawn at first, and how many more at once. */
const FIRST = 10;
const PAGE = 100;
/** How near to the end somebody must be to be taken along. */
const NEAR = 80;
/** How near to the beginning somebody is who wants earlier ones. */
const EARLY = 800;

/** @typedef {{key: string, node: HTMLElement, entry?: any, turn?: Turn}} Item */

export class Transcript {
  /**
   * @param {HTMLElement} scroller
   * @param {{chatLink: (chat: string) => string, messageLink: (name: string) => string, edit: Function, remove: Function,
   *   drawn: (node: HTMLElement, entry: any) => void, turnBegan: () => string|undefined, older: () => Promise<boolean>,
   *   save: (file: any) => void}} page
   *   older brings messages from before the first that the stream has told
   */
  constructor(scroller, page) {
    this.scroller = scroller;
    this.page = { ...page, opened: new Set() };
    this.live = new LiveView(this.page);
    /** @type {Item[]} */
    this.items = [];
    this.from = 0;
    this.following = true;
    this.content = el('div', { class: 'content' });
    this.earlier = button('Show earlier messages', () => this.showEarlier(true), { class: 'earlier quiet', hidden: true });
    this.newest = button('Newest ↓', () => this.toEnd(), { class: 'newest', hidden: true });
    this.inner = el('div', { class: 'inner' }, this.earlier, this.content);
    scroller.replaceChildren(this.inner, this.newest);
    this.top = 0;
    scroller.onscroll = () => this.#scrolled();
    this.sizes = new ResizeObserver(() => this.#afterwards());
    this.sizes.observe(this.inner);
    this.sizes.observe(scroller);
  }

  close() {
    this.sizes.disconnect();
    this.scroller.onscroll = null;
    this.scroller.replaceChildren();
  }

  /** Shows what the story has become. @param {import('./story.js').Story} story */
  sync(story) {
    this.story = story;
    this.#draw();
    this.syncLive(story);
  }

  /** Shows the attempt under way. @param {import('./story.js').Story} story */
  syncLive(story) {
    if (story.live && !this.#newestTurn) this.#draw();
    const turn = this.#newestTurn;
    this.live.show(story.live, this.cards);
    if (turn && this.live.node.previousSibling !== turn.newest) turn.newest.after(this.live.node);
    turn?.node.classList.toggle('live', this.live.shown.size > 0);
    this.#afterwards();
  }

  /** The turn that answers the newest message; notes may follow it. */
  get #newestTurn() {
    return this.items.findLast(({ turn, entry }) => turn || (entry && entry.message.visibility !== 'Users'))?.turn;
  }

  /** Cards of the calls of the newest turn, by the calls' ids. */
  get cards() {
    return this.#newestTurn?.cards ?? new Map();
  }

  /** @param {boolean} [asked] whether somebody did; what could not be read is not asked for again by itself */
  async showEarlier(asked = false) {
    if (!this.#hasEarlier() || (this.refused && !asked)) return;
    this.loading ??= this.#drawEarlier().finally(() => { this.loading = null; });
    await this.loading;
  }

  async #drawEarlier() {
    this.refused = this.from <= this.#lead() && !(await this.page.older());
    if (this.refused) return;
    const before = this.scroller.scrollHeight - this.scroller.scrollTop;
    this.from = Math.max(0, this.from - PAGE);
    this.#draw();
    this.scroller.scrollTop = this.scroller.scrollHeight - before;
    this.top = this.scroller.scrollTop;
  }

  /** Scrolls to a message, which may be an older one. @param {string} name @returns {Promise<boolean>} whether it is there */
  async reveal(name) {
    for (;;) {
      for (const { entry, turn, node } of this.items) {
        const found = turn ? turn.reveal(name) : entry?.message.name === name && node;
        if (!found) continue;
        this.following = false;
        found.focus({ preventScroll: true });
        await scrolledTo(found);
        return true;
      }
      if (!this.#hasEarlier()) return false;
      // Older messages move the first one that is drawn to another place.
      const first = this.story.entries[this.from];
      await this.showEarlier(true);
      if (this.refused || this.story.entries[this.from] === first) return false;
    }
  }

  toEnd() {
    this.following = true;
    this.#end();
    this.newest.hidden = true;
  }

  /** How many results the story begins with whose calls are in a message that has not come. */
  #lead() {
    const { entries } = this.story;
    return entries[0]?.index > 0 ? Math.max(0, entries.findIndex((e) => e.message.role !== 'Tool')) : 0;
  }

  #hasEarlier() {
    return Boolean(this.story) && (this.from > 0 || this.story.entries[0]?.index > 0);
  }

  #draw() {
    const known = new Map(this.items.map((item) => [item.key, item]));
    let wanted = this.#wanted();
    if (known.size > 0 && !wanted.some(({ key }) => known.has(key))) {
      this.from = null;
      wanted = this.#wanted();
    }
    const last = wanted.findLast(({ entries }) => entries);
    const made = [];
    this.items = wanted.map((one) => {
      const item = known.get(one.key) ?? this.#make(one);
      if (!known.delete(one.key)) made.push(item);
      item.turn?.update(one, one === last ? this.story : null);
      return item;
    });
    for (const gone of known.values()) gone.node.remove();
    arrange(this.content, this.items.map((item) => item.node));
    for (const { entry, node } of made) if (entry) this.page.drawn(node, entry);
    this.earlier.hidden = !this.#hasEarlier();
  }

  /** @returns {Item} */
  #make({ key, entry, entries }) {
    if (entries) {
      const turn = new Turn(key, this.page);
      return { key, turn, node: turn.node };
    }
    return entry ? { key, entry, node: messageNode(entry, this.page) }
      : { key, node: el('div', { class: 'start', role: 'separator' }, 'The model sees what follows') };
  }

  /**
   * The messages of people, the turns that answer them, notes, and the mark where the model begins to see them.
   * @returns {{key: string, entry?: any, entries?: any[], began?: string, canceled?: string}[]}
   */
  #wanted() {
    const { entries, notes, status, busy, live } = this.story;
    if (this.from === null || this.items.length === 0) this.from = Math.max(0, entries.length - FIRST);
    // A turn is drawn whole: its steps are folded.
    while (this.from > 0 && entries[this.from]?.message.role !== 'User') this.from -= 1;
    this.from = Math.max(this.from, this.#lead());
    const first = entries[this.from]?.index > 0 ? entries[this.from].index : -1;
    const beside = [...notes.values()].filter((n) => n.index >= first)
      .sort((a, b) => a.index - b.index || a.message.createdAt.localeCompare(b.message.createdAt));
    const out = [];
    let turn = null;
    let key = 'turn of an earlier message';
    let began = '';
    const open = () => {
      turn = { key, entries: [], began, canceled: '' };
      out.push(turn);
    };
    entries.slice(this.from).forEach((entry, i) => {
      const { message } = entry;
      const ofTurn = ['Assistant', 'Tool'].includes(message.role)
        || (turn && message.role === 'System' && continues(entries, this.from + i, busy));
      // A note from within a turn follows it.
      while ((!turn || !ofTurn) && beside.length && beside[0].index <= entry.index) out.push(itemOf(beside.shift()));
      if (status?.contextStart > 0 && entry.index === status.contextStart && !(turn && ofTurn)) out.push({ key: `start@${entry.index}` });
      if (ofTurn) {
        if (!turn) open();
        turn.entries.push(entry);
        return;
      }
      if (turn) turn.canceled = message.callsCanceledReasonBefore ?? '';
      turn = null;
      key = `turn of ${keyOf(entry)}`;
      // One that waited in the queue is older than the turn before.
      began = [message.createdAt, entries[this.from + i - 1]?.message.createdAt ?? ''].sort().at(-1);
      out.push(itemOf(entry));
    });
    if ((busy || live) && !turn) open();
    return [...out, ...beside.map(itemOf)];
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

/** Scrolls to an element, until what is drawn above it on the way has its size. @param {HTMLElement} element */
async function scrolledTo(element) {
  for (let before = NaN, tries = 0; tries < 20 && element.getBoundingClientRect().top !== before; tries += 1) {
    element.scrollIntoView({ block: 'start' });
    before = element.getBoundingClientRect().top;
    await new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); });
  }
}

/** Whether the turn goes on after a summary of the context. */
function continues(entries, at, busy) {
  const next = entries.slice(at).find((entry) => entry.message.role !== 'System');
  return next ? next.message.role !== 'User' : busy;
}

function itemOf(entry) {
  return { key: keyOf(entry), entry };
}
