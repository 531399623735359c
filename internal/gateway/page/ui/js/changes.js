// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What is changed in the workspace of a chat.

import { attempt } from './actions.js';
import { ask, bytes, ofChat } from './api.js';
import { dialog } from './dialogs.js';
import { diff } from './diff.js';
import { button, el, fill } from './dom.js';
import { save } from './files.js';
import { plain } from './text.js';

const count = (n, of) => `${n} ${of}${n === 1 ? '' : 's'}`;

export class Changes {
  /** @param {string} namespace @param {string} chat */
  constructor(namespace, chat) {
    Object.assign(this, { chat, path: `${ofChat(namespace, chat)}/changes`, opened: new Set(), body: null });
  }

  open() {
    this.body = el('div', { class: 'changes' }, el('p', { class: 'dim', role: 'status' }, 'Reading the workspace…'));
    const shown = dialog('Changes', this.body, el('div', { class: 'row' }, button('Refresh', () => this.refresh()),
      button('Close', () => shown.close())));
    shown.classList.add('wide');
    shown.addEventListener('close', () => { this.body = null; });
    this.refresh();
  }

  /** Reads the changes again, if they are shown. */
  async refresh() {
    if (!this.body) return;
    let content;
    try {
      const found = await ask('GET', this.path);
      content = [...(found.repositories ?? []).map((one) => this.#repository(one)), this.#others(found),
        ...(found.notes ?? []).map((note) => el('p', { class: 'dim' }, plain(note)))].filter(Boolean);
    } catch (no) {
      content = [el('p', { class: 'warning', role: 'alert' }, no.message)];
    }
    if (this.body) fill(this.body, ...(content.length ? content : [el('p', {}, 'Nothing is changed.')]));
  }

  #repository(found) {
    const { path, branch, upstream, commits = [], files = [] } = found;
    const names = [branch || 'no branch', upstream].filter(Boolean).map(plain).join(' → ');
    return el('section', {}, el('h3', {}, plain(path)),
      el('p', { class: 'dim' }, `${names} · ${count(commits.length, 'commit')}${found.moreCommits ? ' and more' : ''}, `
        + `${count(files.length + (found.omitted ?? 0), 'changed file')} `,
      files.length > 0 && button('Save as patch', () => this.#save(path), { class: 'quiet' })),
      found.error && el('p', { class: 'warning' }, plain(found.error)),
      commits.length > 0 && el('ul', {}, ...commits.map(({ id, subject }) => el('li', {}, el('code', {}, plain(id)), ` ${plain(subject)}`))),
      ...this.#files(path, found));
  }

  #others(found) {
    return found.files?.length > 0 && el('section', {}, el('h3', {}, 'Outside of Git repositories'),
      !found.repositories?.length && button('Save as patch', () => this.#save(''), { class: 'quiet' }), ...this.#files('', found));
  }

  #files(within, { files = [], omitted = 0 }) {
    return [...files.map((file) => this.#file(`${within}/${file.path}`, file)),
      omitted > 0 && el('p', { class: 'dim' }, `${omitted} more`)];
  }

  #file(key, { path, oldPath, status, binary, added = 0, removed = 0, diff: unified = '', note = '' }) {
    const shown = el('details', { class: 'file', open: this.opened.has(key) },
      el('summary', {}, el('code', {}, oldPath ? `${plain(oldPath)} → ${plain(path)}` : plain(path)), ` ${status} `,
        binary ? 'binary' : el('span', {}, el('span', { class: 'plus' }, `+${added}`), ' ', el('span', { class: 'minus' }, `−${removed}`))));
    const draw = () => fill(shown, shown.firstElementChild, note && el('p', { class: 'dim' }, plain(note)), unified && diff(unified));
    if (this.opened.has(key)) draw();
    shown.addEventListener('toggle', () => {
      this.opened[shown.open ? 'add' : 'delete'](key);
      if (shown.open) draw();
    });
    return shown;
  }

  async #save(repository) {
    await attempt('Nothing was saved', async () => save(`${this.chat}.patch`,
      await bytes(`${this.path}.patch?repository=${encodeURIComponent(repository)}`)));
  }
}
