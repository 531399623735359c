// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The chats of a namespace, live: those that wait for people first, then those where something has happened last.

import { inNamespace } from './api.js';
import { arrange, button, byId, el, fill, onFrame } from './dom.js';
import { matcher, suggestions } from './filter.js';
import { notificationsEnabled } from './notify.js';
import { isPinned } from './pins.js';
import { isUnread, markSeen } from './seen.js';
import { follow } from './stream.js';
import { ago, clipped, dayOf, money, plain } from './text.js';
import { mark, SIGNED_OUT, standing } from './words.js';

export class ChatList {
  /** @param {string} namespace @param {{changed: () => void, state: Function, link: (chat: string) => string, menu: Function}} page */
  constructor(namespace, page) {
    Object.assign(this, { namespace, page, chats: new Map(), told: null, families: null, filter: '', current: '', rows: new Map(), headings: new Map(), synced: false });
    this.draw = () => this.#draw();
    this.stop = follow(`${inNamespace(namespace)}/chats?watch`, {
      events: (list) => { for (const event of list) this.#apply(event); onFrame(this.draw); this.page.changed(); },
      staysAwake: notificationsEnabled,
      state: (state, why) => {
        this.refused = state === 'refused' ? why : null;
        this.signedOut = why?.status === 401;
        page.state(state, why);
        onFrame(this.draw);
      },
    });
    byId('filter').oninput = (event) => { this.#filter(event.target.value); onFrame(this.draw); };
    byId('filter').onfocus = () => fill(byId('filters'), ...suggestions(this.chats.values()).map((value) => el('option', { value })));
    this.#filter('');
    byId('chats').replaceChildren();
    onFrame(this.draw);
  }

  #apply({ name, data }) {
    this.families = null;
    switch (name) {
      case 'added': case 'modified': (this.told ?? this.chats).set(data.name, data); break;
      case 'deleted': (this.told ?? this.chats).delete(data.name); break;
      case 'list_reset': this.told = new Map(); break;
      case 'synced':
        this.synced = true;
        if (this.told) this.chats = this.told;
        this.told = null;
        break;
      default:
    }
  }

  /** @param {string} chat */
  select(chat) {
    this.current = chat;
    onFrame(this.draw);
  }

  /** Draws again what a person has changed. */
  redraw() {
    onFrame(this.draw);
  }

  /** @param {string} chat @returns {any[]} its sub-chats, the oldest first */
  below(chat) {
    this.families ??= Map.groupBy(this.chats.values(), (one) => one.parent ?? '');
    return (this.families.get(chat) ?? [])
      .sort((a, b) => a.createdAt.localeCompare(b.createdAt) || a.name.localeCompare(b.name));
  }

  /** The chat that stands so many places after the current one. @param {number} by @returns {string} empty: none */
  neighbour(by) {
    const links = [...byId('chats').querySelectorAll('a')];
    const at = links.findIndex((link) => link.dataset.chat === this.current);
    return links[Math.min(links.length - 1, Math.max(0, at + by))]?.dataset.chat ?? '';
  }

  get waiting() {
    return [...this.chats.values()].filter((chat) => mark(chat) === 'act').length;
  }

  #filter(text) {
    [this.filter, this.matches] = [text.trim(), matcher(text)];
  }

  #draw() {
    const root = byId('chats');
    const order = [...this.chats.values()].filter((chat) => !chat.parent || !this.chats.has(chat.parent))
      .sort((a, b) => later(this.namespace, a, b));
    const rows = order.flatMap((chat) => this.#rows(chat, 0));
    const current = this.chats.get(this.current);
    if (current && !document.hidden) markSeen(this.namespace, current);
    let group = '';
    arrange(root, rows.flatMap(({ chat, depth }) => {
      const row = this.#row(chat, depth);
      const next = depth ? group : groupOf(this.namespace, chat);
      if (next === group) return [row];
      group = next;
      return [this.#heading(group), row];
    }));
    byId('list-empty').textContent = this.#empty(rows.length);
  }

  #empty(shown) {
    if (this.refused) return `The chats of ${this.namespace} cannot be listed: ${this.refused.message}`;
    if (shown > 0) return '';
    if (this.signedOut) return SIGNED_OUT;
    if (!this.synced) return 'The chats are being read…';
    return this.filter ? 'No chat matches.' : 'There is no chat yet.';
  }

  /** A chat with those below it; a filter shows what matches with what stands above that. */
  #rows(chat, depth) {
    const below = depth < 8 ? this.below(chat.name).flatMap((sub) => this.#rows(sub, depth + 1)) : [];
    return below.length > 0 || this.matches(chat) ? [{ chat, depth }, ...below] : [];
  }

  #heading(group) {
    const made = this.headings.get(group) ?? el('li', { class: 'group' }, group);
    this.headings.set(group, made);
    return made;
  }

  /** A row keeps its link and its button, and so the focus. @param {string} name of the chat */
  #make(name) {
    const link = el('a', { href: this.page.link(name), 'data-chat': name, title: plain(name) });
    const more = button('⋯', () => this.page.menu(name, more), { class: 'more quiet' });
    more.popoverTargetElement = byId('menu');
    const row = { li: el('li', {}, link, more), link, more, shown: '' };
    this.rows.set(name, row);
    return row;
  }

  #row(chat, depth) {
    const row = this.rows.get(chat.name) ?? this.#make(chat.name);
    const current = chat.name === this.current;
    const pinned = isPinned(this.namespace, chat.name);
    const unread = !current && isUnread(this.namespace, chat);
    const shown = JSON.stringify([chat, depth, current, pinned, unread]);
    if (row.shown === shown) return row.li;
    row.shown = shown;
    const title = clipped(chat.title || chat.name, 80);
    if (current) row.link.setAttribute('aria-current', 'page');
    else row.link.removeAttribute('aria-current');
    fill(row.link, el('span', { class: 'top' }, el('span', { class: 'title', dir: 'auto' }, pinned ? '★ ' : '', title,
      unread ? el('span', { class: 'sr' }, ', unread') : null),
      el('span', { class: 'age', 'data-since': chat.since }, chat.since ? ago(chat.since) : '')),
    el('span', { class: 'top' }, el('span', { class: `standing ${mark(chat)}` }, standing(chat)),
      el('span', { class: 'meta' }, [chat.forkOf ? 'fork' : '', chat.queued ? `${chat.queued} queued` : '', clipped(chat.model ?? '', 60),
        ...(chat.cost ?? []).map(money)].filter(Boolean).join(' · '))),
    chat.lastReply || chat.turn?.summary
      ? el('span', { class: 'last', dir: 'auto' }, clipped(unmarked(chat.turn?.summary || chat.lastReply), 120)) : null);
    row.more.setAttribute('aria-label', `Actions of ${title}`);
    row.li.className = `depth${Math.min(depth, 3)}${chat.archived ? ' archived' : ''}${unread ? ' unread' : ''}`;
    return row.li;
  }
}

function later(namespace, a, b) {
  const urgent = Number(mark(b) === 'act') - Number(mark(a) === 'act');
  const pinned = Number(isPinned(namespace, b.name)) - Number(isPinned(namespace, a.name));
  const archived = Number(Boolean(a.archived)) - Number(Boolean(b.archived));
  return urgent || pinned || archived || String(b.since ?? b.createdAt).localeCompare(String(a.since ?? a.createdAt))
    || a.name.localeCompare(b.name);
}

/** What a chat of the list stands below, in the order of later. */
function groupOf(namespace, chat) {
  if (mark(chat) === 'act') return 'Waits for you';
  if (isPinned(namespace, chat.name)) return 'Pinned';
  return chat.archived ? 'Archived' : dayOf(chat.since ?? chat.createdAt);
}

/** A line of Markdown without its marks. */
function unmarked(text) {
  return text.replace(/(^|\s)#{1,6}\s+|\*\*|`/g, '$1');
}
