// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What can be done with a chat, from its head and from the list.

import { ask, create, inNamespace, newName, ofChat } from './api.js';
import { chosen, confirmed, promptFor } from './dialogs.js';
import { copyText, toast } from './dom.js';
import { asMarkdown } from './export.js';
import { save } from './files.js';
import { isPinned, pin } from './pins.js';
import { Share } from './share.js';
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
      // The summary is yet to be written.
      if (kind === 'Compact') toast('The context is being replaced by a summary.');
      else if (kind !== 'Interrupt') toast(made.outcome ? `${kind}: done.` : `${kind}: the chat has not acted yet.`);
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

  /**
   * Creates a chat that continues this one, with its settings.
   * @param {string} [message] the last one to copy; default: the newest @returns {Promise<string|undefined>} its name
   */
  async fork(message) {
    return attempt('No fork was created', async () => {
      const { spec = {}, status } = await ask('GET', this.path);
      const last = message ?? status?.history?.head;
      if (!last) throw new Error('The chat has no messages to continue from.');
      const own = spec.workspace ?? await this.classWorkspace(status?.chatClass?.name);
      const stored = storedWorkspace(own, status?.workspace?.podTemplateRef);
      const workspace = stored || (spec.workspace?.podTemplateRef && spec.workspace);
      const files = own && ' The files of its workspace are not copied.';
      const wanted = workspace && await chosen('Continue in another chat', stored ? 'Copy the files of the workspace'
        : 'With a workspace of the same template. The files are not in a volume and cannot be copied', 'Continue');
      if (wanted === null) return undefined;
      const named = wanted && (spec.workspace || own.podTemplateSelector); // A class may allow no other than its own.
      const name = newName(this.chat.slice(0, 180));
      const { settings, omitted } = forkSettings(wanted ? { ...spec, workspace: undefined } : spec);
      await create(`${inNamespace(this.namespace)}/chats`, { name, spec: { ...settings, ...(named && { workspace }),
        fork: { chat: this.chat, message: last, ...(wanted && stored && { workspace: 'Copy' }) } } });
      toast(`The fork has the settings of the chat${omitted.length ? `, but not: ${omitted.map(plain).join(', ')}` : ''}.${(!(wanted && stored) && files) || ''}`);
      return name;
    });
  }

  /** The workspace that a ChatClass gives its chats, as far as the user may read it. @param {string} [name] */
  async classWorkspace(name) {
    if (!name) return undefined;
    const path = `${inNamespace(this.namespace)}/configurations/chatclasses/${encodeURIComponent(name)}`;
    return (await ask('GET', path).catch(() => null))?.object?.spec?.defaults?.workspace;
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
    await attempt('Nothing was exported', async () => {
      save(`${this.chat}.md`, new TextEncoder().encode(await this.text()));
      toast(`The chat is saved as ${plain(this.chat)}.md.`);
    });
  }

  /** @param {string} link to the chat, if others can open one */
  async share(link) {
    const chat = await attempt('The readers cannot be shown', () => ask('GET', this.path));
    if (chat) new Share(this.namespace, this.chat, chat, link);
  }

  pin() {
    pin(this.namespace, this.chat, !isPinned(this.namespace, this.chat));
  }
}

/** What a fork has of the chat's spec. Access to anything but the conversation is the decision of who creates it. */
function forkSettings({ prompt, title, parentRef, archived, suspend, retention, fork, sharing, workspace, kubernetes, mcpServers = [], ...settings }) {
  const secret = mcpServers.filter((server) => server.headersFrom?.length);
  const open = mcpServers.filter((server) => !secret.includes(server));
  return { settings: { ...settings, ...(open.length && { mcpServers: open }) },
    omitted: [...(workspace ? ['workspace'] : []), ...(kubernetes ? ['kubernetes'] : []), ...secret.map(({ name }) => `MCP server ${name}`)] };
}

/** What a workspace with the same files is made from: its template, or the one that the model chose. Undefined: they are not in storage. */
function storedWorkspace({ podTemplateRef, podTemplateSelector, ...rest } = {}, decided) {
  const ref = podTemplateSelector ? decided && { ...decided, storage: podTemplateSelector.storage } : podTemplateRef;
  return ref?.storage && { ...rest, podTemplateRef: ref };
}
