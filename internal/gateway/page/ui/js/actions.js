// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What can be done with a chat, from its head and from the list.

import { ask, newName, ofChat } from './api.js';
import { confirmed, promptFor } from './dialogs.js';
import { copyText, toast } from './dom.js';
import { asMarkdown } from './export.js';
import { save } from './files.js';
import { isPinned, pin } from './pins.js';
import { clipped, plain, safe } from './text.js';

/** @param {string} failed what is said before the reason @param {() => Promise<any>} what */
export async function attempt(failed, what) {
  try {
    return await what();
  } catch (no) {
    toast(`${failed}: ${no.message}`, true);
    return undefined;
  }
}

export class ChatActions {
  /** @param {string} namespace @param {string} chat @param {() => any} summary of the chat, as the list has it */
  constructor(namespace, chat, summary) {
    Object.assign(this, { namespace, chat, summary, path: ofChat(namespace, chat) });
  }

  /** Asks the chat for something once. @param {string} kind */
  async request(kind) {
    await attempt('Nothing was done', async () => {
      const made = await ask('POST', `${this.path}/requests`, { kind, token: newName('page') });
      if (made.outcome === 'Refused') throw new Error(safe(made.message));
      if (kind !== 'Interrupt') toast(made.outcome ? `${kind}: done.` : `${kind}: the chat has not acted yet.`);
    });
  }

  /** @param {Object} spec fields to change; null takes one away @param {string} [done] what is said on success */
  async change(spec, done) {
    if (await attempt('Nothing was changed', () => ask('PATCH', this.path, { spec })) && done) toast(done);
  }

  async rename() {
    const title = await promptFor('Rename the chat', 'Title', this.summary()?.title ?? '');
    if (title !== null) await this.change({ title: title.trim() || null });
  }

  /** @returns {Promise<boolean>} whether the chat is deleted */
  async delete() {
    if (!await confirmed(`Chat ${plain(this.chat)} is deleted with its messages and sub-chats.`, 'Delete the chat')) return false;
    return Boolean(await attempt('It was not deleted', () => ask('DELETE', this.path)));
  }

  /** All of the chat as Markdown. */
  text() {
    return asMarkdown(this.path, clipped(this.summary()?.title || this.chat, 200));
  }

  async copy() {
    await attempt('Nothing was copied', async () => {
      await copyText(await this.text());
      toast('The chat is on the clipboard.');
    });
  }

  async export() {
    await attempt('Nothing was exported', async () => save(`${this.chat}.md`, new TextEncoder().encode(await this.text())));
  }

  pin() {
    pin(this.namespace, this.chat, !isPinned(this.namespace, this.chat));
  }
}
