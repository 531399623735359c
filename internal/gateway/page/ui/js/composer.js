// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Where people type. Nothing leaves the field but into the outbox, which gives back what does not arrive.

import { Commands, EFFORTS } from './commands.js';
import { byId, el, onEnter } from './dom.js';
import { draft, keep } from './drafts.js';
import { Files } from './files.js';
import { plain } from './text.js';

export class Composer {
  /**
   * @param {string} key of the draft @param {(body: any) => void} send
   * @param {{change: (spec: any, done: string) => void, request: (kind: string) => void,
   *   failed: (words: string) => void, upload: (bytes: Uint8Array) => Promise<any>}} chat
   */
  constructor(key, send, chat) {
    Object.assign(this, { key, deliver: send, files: new Files(key, chat.failed, chat.upload) });
    this.field = byId('compose');
    this.how = byId('how');
    this.model = byId('model');
    this.effort = byId('effort');
    this.effort.replaceChildren(el('option', { value: '' }, 'Effort: the chat’s'), ...EFFORTS.map((name) => el('option', {}, name)));
    this.models([]);
    this.commands = new Commands(this.field, { ...chat, models: () => [...this.model.options].map((one) => one.value).filter(Boolean) });
    this.field.value = draft(key);
    this.#choose(draft(`${key}/how`));
    this.how.onchange = () => this.#choose(this.how.value);
    this.field.oninput = () => {
      keep(key, this.field.value);
      this.commands.complete();
    };
    this.field.onkeydown = (event) => {
      if (this.commands.key(event)) return;
      if (event.key === 'Escape') this.field.blur();
      const held = event.ctrlKey || event.metaKey;
      onEnter(event, () => this.send(held && this.how.value !== 'Users' ? 'Interrupt' : undefined));
    };
    byId('composer').onsubmit = (event) => { event.preventDefault(); this.send(); };
  }

  /** @param {any} configs of the models that may answer */
  models(configs) {
    const chosen = this.model.value;
    this.model.replaceChildren(el('option', { value: '' }, 'Model: the chat’s'), ...configs.filter((c) => !c.disabled)
      .map((c) => el('option', { value: c.name }, plain(c.name))));
    this.model.value = configs.some((c) => c.name === chosen) ? chosen : '';
  }

  /** @param {string} [how] in place of what is chosen */
  send(how = this.how.value) {
    if (this.files.wait(() => this.send(how))) return;
    const words = this.field.value;
    const files = this.files.items.length > 0;
    if (words.trim() === '' && !files) return;
    const ran = files ? 'no' : this.commands.run(words);
    if (ran === 'wrong') return;
    if (ran === 'no') {
      const body = files ? { parts: [...(words.trim() ? [{ type: 'Text', text: words }] : []), ...this.files.take()] } : { content: words };
      if (how === 'Interrupt') body.whenBusy = 'Interrupt';
      if (how === 'Users') body.visibility = 'Users';
      if (this.model.value && how !== 'Users') body.modelConfig = this.model.value;
      if (this.effort.value && how !== 'Users') body.reasoningEffort = this.effort.value;
      this.deliver(body);
    }
    this.field.value = '';
    this.#choose('');
    keep(this.key, '');
  }

  /** @param {string} how the message is sent: a draft of a note must not become a message for the model */
  #choose(how) {
    this.how.value = how || 'Queue';
    keep(`${this.key}/how`, how);
  }

  /** Takes back what could not be sent, beside what was typed since. @param {any} body */
  back(body) {
    const words = body.content ?? body.parts?.find((part) => part.type === 'Text')?.text ?? '';
    this.files.giveBack(body.parts ?? []);
    this.field.value = [words, this.field.value].filter(Boolean).join('\n\n');
    keep(this.key, this.field.value);
    const hows = [body.visibility ?? body.whenBusy, this.how.value];
    this.#choose(['Users', 'Interrupt'].find((how) => hows.includes(how)) ?? '');
    if (body.modelConfig && ![...this.model.options].some((one) => one.value === body.modelConfig)) {
      this.model.append(el('option', { value: body.modelConfig }, plain(body.modelConfig)));
    }
    this.model.value = body.modelConfig ?? this.model.value;
    this.effort.value = body.reasoningEffort ?? this.effort.value;
  }
}
