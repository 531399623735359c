// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Messages on their way. One leaves the box when the chat's stream shows it, or when somebody says what is wrong with it:
// then its words go back to who typed them.

import { ask, create, newName, ofChat, ofMessage } from './api.js';
import { draft, keep } from './drafts.js';
import { safe } from './text.js';

/** How long a message that exists may be absent from queue and history before somebody asks what has become of it. */
const PATIENCE = 3000;

export class Outbox {
  /**
   * @param {string} namespace @param {string} chat
   * @param {{changed: () => void, back: (body: any, why: string) => void, placed: (name: string) => string}} page
   */
  constructor(namespace, chat, page) {
    Object.assign(this, { namespace, chat, page });
    this.key = `${namespace}/${chat}/outbox`;
    /** @type {{body: any, state: string}[]} */
    this.items = (JSON.parse(draft(this.key) || '[]')).map((body) => ({ body, state: 'is being sent' }));
    this.closed = false;
    /** Settles once all messages so far have arrived, or were refused. */
    this.arrived = Promise.resolve();
    for (const item of this.items) this.#send(item, true);
  }

  /** @param {Object} body of the operation, without a name */
  send(body) {
    const item = { body: { name: newName(`${this.chat}-m`), ...body }, state: 'is being sent' };
    this.items.push(item);
    this.#save();
    this.#send(item);
  }

  /** Forgets what the stream has shown. */
  settle() {
    const left = this.items.filter((item) => this.page.placed(item.body.name) === '');
    if (left.length === this.items.length) return;
    this.items = left;
    this.#save();
  }

  close() {
    this.closed = true;
  }

  #save() {
    keep(this.key, this.items.length ? JSON.stringify(this.items.map((item) => item.body)) : '');
    this.page.changed();
  }

  /** Sends it after those before it: a chat takes messages in the order in which they arrive. */
  #send(item, again = false) {
    const next = () => this.#deliver(item, again);
    this.arrived = this.arrived.then(next, next);
  }

  async #deliver(item, again) {
    try {
      await create(`${ofChat(this.namespace, this.chat)}/messages`, item.body, (no) => {
        item.state = `waits: ${no.message} It is sent again`;
        this.page.changed();
      }, again);
      item.state = 'is sent';
      this.page.changed();
    } catch (no) {
      this.#back(item, no.message);
      return;
    }
    this.#watch(item).catch((no) => this.#back(item, no.message));
  }

  #back(item, why) {
    if (this.closed || !this.items.includes(item)) return;
    this.items = this.items.filter((other) => other !== item);
    this.#save();
    this.page.back(item.body, why);
  }

  /** A message that the chat has refused is in neither queue nor history. */
  async #watch(item) {
    for (;;) {
      await new Promise((resolve) => { setTimeout(resolve, PATIENCE); });
      if (this.closed || !this.items.includes(item)) return;
      let found;
      try {
        found = await ask('GET', ofMessage(this.namespace, this.chat, item.body.name));
      } catch (no) {
        if (no.passes) continue;
        throw no;
      }
      const ready = found.status?.conditions?.find((c) => c.type === 'Ready');
      if (found.status?.state === 'Rejected') {
        this.#back(item, safe(`${ready?.reason ?? 'Refused'}: ${ready?.message ?? 'the chat has refused it'}`));
        return;
      }
      item.state = ready?.message || 'waits for the chat';
      this.page.changed();
    }
  }
}
