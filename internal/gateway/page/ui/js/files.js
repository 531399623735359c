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

const inBase64 = (bytes) => Math.ceil(bytes / 3) * 4;
const kib = (bytes) => `${Math.ceil(bytes / 1024)} KiB`;

export class Files {
  /** @param {(words: string) => void} failed */
  constructor(failed) {
    Object.assign(this, { failed, items: [] });
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

  /** @param {FileList|undefined|null} list */
  async add(list) {
    for (const file of list ?? []) {
      const refused = this.#refusal(file);
      if (refused) {
        this.failed(`${plain(file.name)} was not attached: ${refused}`);
        continue;
      }
      const data = base64(new Uint8Array(await file.arrayBuffer()));
      this.items.push({ name: file.name.replace(/[\\/]/g, '_').slice(-255),
        mediaType: (file.type || 'text/plain').split(';')[0].toLowerCase(), data });
      this.#show();
    }
  }

  /** The parts of the message, which leave the composer. */
  take() {
    const parts = this.items.map((file) => ({ type: 'File', file }));
    this.items = [];
    this.#show();
    return parts;
  }

  /** @param {any[]} parts of a message that was not sent */
  giveBack(parts) {
    this.items.push(...parts.filter((part) => part.type === 'File').map((part) => part.file));
    this.#show();
  }

  #refusal({ size }) {
    if (size === 0) return 'it is empty.';
    const data = inBase64(size);
    if (data > FILE) return `it has ${kib(size)}, and a file of a message has at most ${kib(FILE * 3 / 4)}. Put it into the workspace.`;
    const sum = this.items.reduce((all, file) => all + file.data.length, data);
    return sum > MESSAGE ? `the files of a message have at most ${kib(MESSAGE * 3 / 4)} together. Send it with another message.` : '';
  }

  #show() {
    byId('files').replaceChildren(...this.items.map((file) => el('li', {},
      IMAGES.includes(file.mediaType) && el('img', { src: `data:${file.mediaType};base64,${file.data}`, alt: '' }), plain(file.name), ' ',
      button('Remove', () => {
        this.items = this.items.filter((other) => other !== file);
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
