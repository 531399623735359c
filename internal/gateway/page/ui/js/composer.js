// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Where people type. Nothing leaves the field but into the outbox, which gives back what does not arrive.

import { byId, button, el } from './dom.js';
import { draft, keep } from './drafts.js';
import { plain } from './text.js';

/** What a ChatMessage holds of a file, before base64. */
const FILE_BYTES = 512 * 1024;

export class Composer {
  /** @param {string} key of the draft @param {(body: any) => void} send @param {(words: string) => void} failed */
  constructor(key, send, failed) {
    Object.assign(this, { key, deliver: send, failed, files: [] });
    this.field = byId('compose');
    this.how = byId('how');
    this.model = byId('model');
    this.field.value = draft(key);
    this.how.value = 'Queue';
    this.#shown();
    this.field.oninput = () => keep(key, this.field.value);
    this.field.onkeydown = (event) => this.#key(event);
    this.field.onpaste = (event) => this.add(event.clipboardData?.files);
    byId('composer').onsubmit = (event) => { event.preventDefault(); this.send(); };
    byId('file').onchange = (event) => { this.add(event.target.files); event.target.value = ''; };
  }

  /** @param {any} configs of the models that may answer */
  models(configs) {
    const chosen = this.model.value;
    this.model.replaceChildren(el('option', { value: '' }, 'the chat’s model'), ...configs.filter((c) => !c.disabled)
      .map((c) => el('option', { value: c.name }, plain(c.name))));
    this.model.value = configs.some((c) => c.name === chosen) ? chosen : '';
  }

  #key(event) {
    if (event.key === 'Escape') this.field.blur();
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    // On a phone, Enter makes lines, and a button sends.
    if (matchMedia('(pointer: coarse)').matches && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.send(event.ctrlKey || event.metaKey ? 'Interrupt' : undefined);
  }

  /** @param {string} [how] in place of what is chosen */
  send(how = this.how.value) {
    const words = this.field.value;
    if (words.trim() === '' && this.files.length === 0) return;
    const body = this.files.length ? { parts: [...(words.trim() ? [{ type: 'Text', text: words }] : []),
      ...this.files.map((file) => ({ type: 'File', file }))] } : { content: words };
    if (how === 'Interrupt') body.whenBusy = 'Interrupt';
    if (how === 'Users') body.visibility = 'Users';
    if (this.model.value && how !== 'Users') body.modelConfig = this.model.value;
    this.deliver(body);
    this.field.value = '';
    this.files = [];
    this.how.value = 'Queue';
    keep(this.key, '');
    this.#shown();
  }

  /** Takes back what could not be sent, beside what was typed since. @param {any} body */
  back(body) {
    const words = body.content ?? body.parts?.find((part) => part.type === 'Text')?.text ?? '';
    this.files.push(...(body.parts ?? []).filter((part) => part.type === 'File').map((part) => part.file));
    this.field.value = [words, this.field.value].filter(Boolean).join('\n\n');
    keep(this.key, this.field.value);
    this.#shown();
  }

  /** @param {FileList|undefined|null} list */
  async add(list) {
    for (const given of list ?? []) {
      if (given.size > FILE_BYTES || given.size === 0) {
        this.failed(`${given.name} has ${given.size} bytes; a message holds files of 1 to ${FILE_BYTES}.`);
        continue;
      }
      const data = new Uint8Array(await given.arrayBuffer());
      this.files.push({ name: given.name.replace(/[\\/]/g, '_'), mediaType: (given.type || 'text/plain').split(';')[0],
        data: base64(data) });
    }
    this.#shown();
  }

  #shown() {
    byId('files').replaceChildren(...this.files.map((file) => el('li', {}, plain(file.name), ' ', button('Remove', () => {
      this.files = this.files.filter((other) => other !== file);
      this.#shown();
    }, { class: 'quiet', 'aria-label': `Remove ${plain(file.name)}` }))));
  }
}

/** @param {Uint8Array} bytes */
function base64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
