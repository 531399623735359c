// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The transcript. Of a long one only the messages near the view have elements, in one window that follows the view.
// A message within it that stays as it is keeps its element: what was unfolded, selected or typed in it stays, too.

import { arrange, button, el } from './dom.js';
import { LiveView } from './live.js';
import { messageNode } from './message.js';
import { keyOf, Turn } from './turn.js';

/** How many messages are drawn at first, and how many are added at once. */
const FIRST = 10;
const MORE = 6;
/** How near to the end somebody must be to be taken along. */
const NEAR = 80;
/** How near to an end of the window, in pixels, the view makes it longer. */
const EARLY = 800;
/** Messages that are farther away are released, and those beyond EARLY if there are too many elements. */
const FAR = 2000;
/** From how many elements on there are too many, and at how many even the selection and the focus keep no message. */
const MANY = 1000;
const MOST = 1500;

/** @typedef {{key: string, node: HTMLElement, entry?: any, turn?: Turn}} Item */

export class Transcript {
  /**
   * @param {HTMLElement} scroller
   * @param {{chatLink: (chat: string) => string, messageLink: (name: string) => string, edit: Function, remove: Function,
   *   drawn: (node: HTMLElement, entry: any) => void, turnBegan: () => string|undefined, older: () => Promise<boolean>,
   *   save: (file: any) => void, load: (file: any) => Promise<Uint8Array>}} page
   *   older brings messages from before the first that the stream has told
   */
  constructor(scroller, page) {
    this.scroller = scroller;
    this.page = { ...page, opened: new Set() };
    this.live = new LiveView(this.page);
    /** @type {Item[]} */
    this.items = [];
    /** What the story consists of, and which of it has elements. */
    Object.assign(this, { all: [], from: 0, to: 0, following: true });
    /** @type {Map<string, boolean[]>} what is unfolded in messages that were released */
    this.unfolded = new Map();
    this.content = el('div', { class: 'content' });
    this.earlier = button('Show earlier messages', () => this.showEarlier(true), { class: 'earlier quiet', hidden: true });
    this.later = button('Show later messages', () => this.#extend(0, MORE), { class: 'earlier quiet', hidden: true });
    this.newest = button('Newest ↓', () => this.toEnd(), { class: 'newest', hidden: true });
    this.inner = el('div', { class: 'inner' }, this.earlier, this.content, this.later);
    scroller.replaceChildren(this.inner, this.newest);
    this.top = 0;
    scroller.onscroll = () => { this.#look(); this.#fit(); };
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
    if (story.live && this.#atEnd && !this.#newestTurn) this.#draw();
    const turn = this.#newestTurn;
    if (turn || !story.live) this.live.show(story.live, turn?.cards ?? new Map());
    if (turn && this.live.node.previousSibling !== turn.newest) turn.newest.after(this.live.node);
    turn?.node.classList.toggle('live', this.live.shown.size > 0);
    this.#afterwards();
  }

  /** Whether the newest message has an element. */
  get #atEnd() {
    return this.to === this.all.length;
  }

  /** The turn that answers the newest message, if it has an element; notes may follow it. */
  get #newestTurn() {
    return this.#atEnd ? this.items.findLast(({ turn, entry }) => turn || (entry && entry.message.visibility !== 'Users'))?.turn : undefined;
  }

  /** @param {boolean} [asked] whether somebody did; what could not be read is not asked for again by itself */
  async showEarlier(asked = false) {
    if (!this.#hasEarlier() || (this.refused && !asked)) return;
    if (this.from > 0) {
      this.#extend(MORE, 0);
      return;
    }
    this.loading ??= this.page.older().finally(() => { this.loading = null; });
    this.refused = !await this.loading;
    if (!this.refused && this.scroller.contains(this.inner)) this.#extend(MORE, 0);
  }

  /** Scrolls to a message, which may be an older one. @param {string} name @returns {Promise<boolean>} whether it is there */
  async reveal(name) {
    for (;;) {
      const at = this.all.findIndex(({ entry, entries }) => (entries ?? [entry]).some((one) => one?.message.name === name));
      if (at >= 0) {
        this.following = false;
        if (at < this.from || at >= this.to) this.#window(at - MORE, at + MORE);
        const { turn, node } = this.items[at - this.from];
        const found = turn?.reveal(name) ?? node;
        found.focus({ preventScroll: true });
        found.scrollIntoView({ block: 'start' });
        this.#fit();
        return true;
      }
      const { length } = this.story.entries;
      if (!(this.story.entries[0]?.index > 0) || !await this.page.older() || this.story.entries.length === length) return false;
      this.#draw();
    }
  }

  toEnd() {
    this.following = true;
    if (!this.#atEnd) this.#window(this.all.length - FIRST, this.all.length);
    this.#afterwards();
  }

  /** How many results the story begins with whose calls are in a message that has not come. */
  #lead() {
    const { entries } = this.story;
    return entries[0]?.index > 0 ? Math.max(0, entries.findIndex((e) => e.message.role !== 'Tool')) : 0;
  }

  #hasEarlier() {
    return Boolean(this.story) && (this.from > 0 || this.story.entries[0]?.index > 0);
  }

  /** Draws what the story has become. The window stays where it is, and at the end it takes in what is new. */
  #draw() {
    const drawn = new Set(this.items.map(({ key }) => key));
    const atEnd = this.#atEnd;
    this.all = this.#itemsOf();
    const from = this.all.findIndex(({ key }) => drawn.has(key));
    const to = atEnd ? this.all.length : this.all.findLastIndex(({ key }) => drawn.has(key)) + 1;
    this.#window(from < 0 ? this.all.length - FIRST : from, from < 0 ? this.all.length : to);
  }

  /** Gives elements to some of the story. @param {number} from @param {number} to the first that has none */
  #window(from, to) {
    this.from = Math.max(0, from);
    this.to = Math.min(this.all.length, to);
    const known = new Map(this.items.map((item) => [item.key, item]));
    const last = this.all.findLast(({ entries }) => entries);
    const made = [];
    this.items = this.all.slice(this.from, this.to).map((one) => {
      const item = known.get(one.key) ?? this.#make(one);
      if (!known.delete(one.key)) made.push(item);
      item.turn?.update(one, one === last ? this.story : null);
      return item;
    });
    for (const { key, node } of known.values()) {
      this.unfolded.set(key, foldsOf(node).map((fold) => fold.open));
      node.remove();
    }
    for (const { key, node } of made) foldsOf(node).forEach((fold, i) => { fold.open = this.unfolded.get(key)?.[i] ?? fold.open; });
    arrange(this.content, this.items.map((item) => item.node));
    for (const { entry, node } of made) if (entry) this.page.drawn(node, entry);
    this.earlier.hidden = !this.#hasEarlier();
    this.later.hidden = this.#atEnd;
  }

  /** Adds messages before and after those that have elements, or releases some, while what is in view stays. */
  #extend(before, after) {
    this.#mark();
    const { scrollHeight } = this.scroller;
    this.#window(this.from - before, this.to + after);
    if (!this.#stay() && before > 0) this.scroller.scrollTop += this.scroller.scrollHeight - scrollHeight;
    this.top = this.scroller.scrollTop;
    this.#mark();
  }

  /** Remembers where the messages in view are, and those below. */
  #mark() {
    const { top } = this.scroller.getBoundingClientRect();
    this.places = this.items.map(({ node }) => ({ node, box: node.getBoundingClientRect() })).filter(({ box }) => box.bottom > top)
      .map(({ node, box }) => ({ node, at: box.top - top }));
  }

  /** Scrolls so that the first of them that has an element is where it was. @returns {boolean} whether one has */
  #stay() {
    const stays = this.places?.find(({ node }) => node.isConnected);
    if (stays) this.scroller.scrollTop += stays.node.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top - stays.at;
    return Boolean(stays);
  }

  /** Lets the window reach beyond the view at both ends, and releases what is far away. */
  #fit() {
    const { scroller } = this;
    if (!this.story?.whole || scroller.clientHeight === 0) return;
    while (this.from > 0 && scroller.scrollTop < EARLY) this.#extend(MORE, 0);
    while (!this.#atEnd && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < EARLY) this.#extend(0, MORE);
    if (this.from === 0 && scroller.scrollTop < EARLY) this.showEarlier();
    this.#release();
  }

  #release() {
    const { top, bottom } = this.scroller.getBoundingClientRect();
    const count = this.content.getElementsByTagName('*').length;
    const reach = count > MANY ? EARLY : FAR;
    const stays = ({ node }) => {
      const box = node.getBoundingClientRect();
      return (box.bottom > top - reach && box.top < bottom + reach) || (count < MOST && isUsed(node));
    };
    const first = this.items.findIndex(stays);
    const last = this.items.findLastIndex(stays);
    if (first >= 0 && (first > 0 || last < this.items.length - 1)) this.#extend(-first, last + 1 - this.items.length);
    else this.#mark();
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
   * @returns {{key: string, entry?: any, entries?: any[], canceled?: string}[]}
   */
  #itemsOf() {
    const { notes, status, busy, live } = this.story;
    const entries = this.story.entries.slice(this.#lead());
    const first = entries[0]?.index > 0 ? entries[0].index : -1;
    const beside = [...notes.values()].filter((n) => n.index >= first)
      .sort((a, b) => a.index - b.index || a.message.createdAt.localeCompare(b.message.createdAt));
    const out = [];
    let turn = null;
    let key = 'turn of an earlier message';
    const open = () => {
      turn = { key, entries: [], canceled: '' };
      out.push(turn);
    };
    entries.forEach((entry, i) => {
      const { message } = entry;
      const ofTurn = ['Assistant', 'Tool'].includes(message.role)
        || (turn && message.role === 'System' && continues(entries, i, busy));
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
      out.push(itemOf(entry));
    });
    if ((busy || live) && !turn) open();
    return [...out, ...beside.map(itemOf)];
  }

  /** Notices whether people have left the end. */
  #look() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    const near = this.#atEnd && scrollTop + clientHeight >= scrollHeight - NEAR;
    // What grows above moves nobody up: only people do.
    if (near) this.following = true;
    else if (scrollTop < this.top - 2) this.following = false;
    this.top = scrollTop;
    this.newest.hidden = near || this.following;
  }

  #afterwards() {
    // What is above the view may have grown: an image has loaded.
    if (!this.following && this.scroller.scrollTop === this.top && this.#stay()) this.top = this.scroller.scrollTop;
    this.#look(); // A person may have scrolled, and the event is yet to come.
    if (this.following) this.#end();
    this.#fit();
    if (this.following) this.#end();
  }

  #end() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.top = this.scroller.scrollTop;
  }
}

const foldsOf = (node) => [...node.querySelectorAll('details')];

/** Whether somebody does something with an element: it has the focus, or what is selected. @param {HTMLElement} node */
function isUsed(node) {
  const selection = getSelection();
  return node.contains(document.activeElement) || (selection?.type === 'Range' && selection.containsNode(node, true));
}

/** Whether the turn goes on after a summary of the context. */
function continues(entries, at, busy) {
  const next = entries.slice(at).find((entry) => entry.message.role !== 'System');
  return next ? next.message.role !== 'User' : busy;
}

function itemOf(entry) {
  return { key: keyOf(entry), entry };
}
