// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The files of the message that is being written. They come from the button, from the clipboard, and by drag and drop.

import { button, byId, el } from './dom.js';
import { plain } from './text.js';

/** Images that a browser shows without running what is in them. */
export const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

/** What a ChatMessage holds of one file in base64, and of all together. */
const FILE = 700 * 1024;
const MESSAGE = 1024 * 1024;
/** What the gateway stores of one file. */
const STORED = 3.5 * 1024 * 1024;

const inBase64 = (bytes) => Math.ceil(bytes / 3) * 4;
const kib = (bytes) => `${Math.ceil(bytes / 1024)} KiB`;

/** What is attached in each chat, and what is being read for it. A reload loses it. */
const attached = new Map();
/** @type {Files|null} whose files the page shows */
let shown = null;

export class Files {
  /**
   * @param {string} key of the chat @param {(words: string) => void} failed
   * @param {(bytes: Uint8Array) => Promise<any>} upload of a file that is too large for a message
   */
  constructor(key, failed, upload) {
    /** @type {{items: any[], reading: Promise<boolean>|null}} */
    this.of = attached.get(key) ?? { items: [], reading: null };
    attached.set(key, this.of);
    Object.assign(this, { failed, upload });
    shown = this;
    byId('file').onchange = (event) => { this.add(event.target.files); event.target.value = ''; };
    byId('compose').onpaste = (event) => this.add(event.clipboardData?.files);
    const chat = byId('chat');
    const over = (event) => {
      event.preventDefault();
      chat.classList.toggle('dropping', event.type === 'dragover');
    };
    Object.assign(chat, { ondragover: over, ondragleave: over,
      ondrop: (event) => { over(event); this.add(event.dataTransfer?.files); } });
    this.#show();
  }

  close() {
    shown = null;
  }

  get items() {
    return this.of.items;
  }

  /**
   * Runs a function once all files are read, if each is attached and the chat is still shown then.
   * @param {() => void} act @returns {boolean} whether it waits
   */
  wait(act) {
    this.of.reading?.then((all) => { if (all && shown === this) act(); });
    return this.of.reading !== null;
  }

  /** @param {FileList|undefined|null} list */
  add(list) {
    const files = [...(list ?? [])];
    if (files.length === 0) return;
    const reading = Promise.resolve(this.of.reading ?? true).then(async (all) => await this.#read(files) && all).finally(() => {
      if (this.of.reading === reading) this.of.reading = null;
    });
    this.of.reading = reading;
  }

  /** @param {File[]} files @returns {Promise<boolean>} whether all are attached */
  async #read(files) {
    let all = true;
    for (const file of files) {
      try {
        const content = await this.#content(file);
        this.items.push({ name: file.name.replace(/[\\/]/g, '_').slice(-255),
          mediaType: (file.type || 'text/plain').split(';')[0].toLowerCase(), ...content });
      } catch (why) {
        this.failed(`${plain(file.name)} was not attached: ${why.message}`);
        all = false;
      }
      this.#show();
    }
    return all;
  }

  /** The parts of the message, which leave the composer. */
  take() {
    const parts = this.items.splice(0).map((file) => ({ type: 'File', file }));
    this.#show();
    return parts;
  }

  /** @param {any[]} parts of a message that was not sent */
  giveBack(parts) {
    this.items.push(...parts.filter((part) => part.type === 'File').map((part) => part.file));
    this.#show();
  }

  /** The content in the message, or a reference to it. @param {File} file */
  async #content(file) {
    if (file.size === 0) throw new Error('it is empty.');
    if (file.size > STORED) throw new Error(`it has ${kib(file.size)}, and a file has at most ${kib(STORED)}. Put it into the workspace.`);
    const bytes = new Uint8Array(await file.arrayBuffer());
    const data = inBase64(file.size);
    const sum = this.items.reduce((all, other) => all + (other.data?.length ?? 0), data);
    if (data > FILE || sum > MESSAGE) return { stored: await this.upload(bytes) };
    return { data: base64(bytes) };
  }

  #show() {
    if (shown?.of !== this.of) return;
    byId('files').replaceChildren(...this.items.map((file) => el('li', {},
      file.data && IMAGES.includes(file.mediaType) && el('img', { src: `data:${file.mediaType};base64,${file.data}`, alt: '' }), plain(file.name), ' ',
      button('Remove', () => {
        this.items.splice(this.items.indexOf(file), 1);
        this.#show();
      }, { class: 'quiet', 'aria-label': `Remove ${plain(file.name)}` }))));
  }
}

/** Saves a file, whatever it says that it is: it is not shown. @param {string} name @param {Uint8Array} bytes */
export function save(name, bytes) {
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }));
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** @param {Uint8Array} bytes */
function base64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
