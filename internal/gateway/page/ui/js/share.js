// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The readers of a chat: spec.sharing, and what condition Shared reports about them.

import { ask, ofChat } from './api.js';
import { dialog } from './dialogs.js';
import { button, copyButton, el, fill } from './dom.js';
import { fully, plain, readable } from './text.js';

const HOUR = 3600e3;
const PERIODS = [['1 hour', HOUR], ['1 day', 24 * HOUR], ['3 days', 72 * HOUR], ['1 week', 7 * 24 * HOUR], ['no end', 0]];
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export class Share {
  /** @param {string} namespace @param {string} name @param {any} chat @param {string} [link] that readers can open */
  constructor(namespace, name, chat, link) {
    Object.assign(this, { namespace, path: ofChat(namespace, name) });
    this.list = el('ul', { class: 'readers', 'aria-label': 'Readers' });
    this.state = el('p', { class: 'dim', role: 'status' });
    this.failure = el('p', { class: 'warning', role: 'alert' });
    this.kind = el('select', {}, ...['User', 'Group', 'ServiceAccount'].map((kind) => el('option', {}, kind)));
    this.name = el('input', { type: 'text', maxlength: 253, required: true, pattern: '.*\\S.*', autocomplete: 'off', spellcheck: 'false' });
    this.period = el('select', {}, ...PERIODS.map(([words, ms]) => el('option', { value: ms }, words)));
    const form = el('form', { method: 'dialog' }, el('label', {}, 'Kind', this.kind), el('label', {}, 'Name', this.name),
      el('label', {}, 'For how long', this.period), el('div', { class: 'row' }, el('button', {}, 'Add')));
    form.addEventListener('submit', (event) => { event.preventDefault(); this.#add(); });
    this.shown = dialog(`Share ${plain(name)}`, el('p', {}, 'Readers see the chat, its sub-chats and all messages. '
      + 'Whoever may read the chats of the namespace can read this one as well.'), this.list, this.state, form, this.failure,
    el('div', { class: 'row' }, button('Save', ({ target }) => this.#save(target), { class: 'primary' }),
      link && copyButton('Copy link', () => link, 'Copy link'), button('Close', () => this.#close())));
    this.shown.addEventListener('cancel', (event) => { event.preventDefault(); this.#close(); });
    this.name.focus();
    this.#read(chat);
  }

  #close() {
    if (same(this.readers, this.saved) || this.warned === this.readers) {
      this.shown.close();
      return;
    }
    this.warned = this.readers;
    this.failure.textContent = 'The change is not saved. Save it, or close again to discard it.';
  }

  #add() {
    const [kind, name, period] = [this.kind.value, this.name.value.trim(), Number(this.period.value)];
    // Without milliseconds, as the API server returns it.
    const until = period && { until: new Date(Date.now() + period).toISOString().replace(/\.\d+/, '') };
    const there = this.readers.find((one) => one.kind === kind && one.name === name);
    if ((there?.namespace ?? this.namespace) !== this.namespace) { // The API has one reader of each kind and name.
      this.failure.textContent = `${this.#describe(there)} is a reader: remove it first, or add yours as User system:serviceaccount:${this.namespace}:${name}.`;
      return;
    }
    this.readers = [...this.readers.filter((one) => one !== there), { kind, name, ...until }];
    this.name.value = this.failure.textContent = '';
    this.#draw();
    this.name.focus();
  }

  async #save(pressed) {
    this.failure.textContent = '';
    this.shown.inert = true;
    const failure = await this.#write().catch((no) => no.message);
    this.shown.inert = false;
    this.failure.textContent = failure ?? '';
    pressed.focus();
  }

  async #write() {
    if (this.name.value.trim()) throw new Error('Add the name to the list, or empty the field.');
    // The status changes all the time: what must not have changed since is the list.
    const chat = await ask('GET', this.path);
    const sharing = chat.spec.sharing ?? [];
    if (!same(sharing, this.saved) && !same(sharing, this.readers)) {
      this.#read(chat);
      throw new Error('The readers were changed in the meantime, and are shown now. Make your change again.');
    }
    this.#read(await ask('PATCH', this.path, { resourceVersion: chat.metadata.resourceVersion, spec: { sharing: this.readers } }));
  }

  #read(chat) {
    this.saved = this.readers = chat.spec.sharing ?? [];
    this.#observe(chat);
  }

  /** Shows what the operator reports, and reads the chat again until that is about what is saved. */
  #observe({ metadata, status }) {
    const shared = status?.conditions?.find(({ type }) => type === 'Shared');
    const current = status?.observedGeneration >= metadata.generation && shared?.reason !== 'Sharing';
    this.report = current ? readable(shared?.message) : 'It is saved. The operator has not applied it yet.';
    this.#draw();
    clearTimeout(this.timer);
    const timer = this.timer = current ? 0 : setTimeout(async () => {
      const chat = this.shown.open && await ask('GET', this.path).catch((no) => { this.failure.textContent = no.message; });
      if (chat && this.timer === timer) this.#observe(chat);
    }, 2000);
  }

  #draw() {
    fill(this.list, ...this.readers.map((one) => el('li', { class: 'row' }, this.#describe(one), button('Remove', () => {
      this.readers = this.readers.filter((other) => other !== one);
      this.#draw();
      this.name.focus();
    }, { 'aria-label': `Remove ${this.#describe(one)}` }))), this.readers.length === 0 && el('li', {}, 'No one'));
    this.state.textContent = same(this.readers, this.saved) ? this.report : 'Not saved yet.';
  }

  #describe({ kind, name, namespace = this.namespace, until }) {
    const end = !until ? 'no end' : `${Date.parse(until) > Date.now() ? 'until' : 'ended'} ${fully(until)}`;
    return `${kind} ${plain(name)}${kind === 'ServiceAccount' ? ` of namespace ${plain(namespace)}` : ''}, ${end}`;
  }
}
