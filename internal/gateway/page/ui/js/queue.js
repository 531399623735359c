// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What waits for its turn, in its order, and what can be done to it; and what is still on its way.

import { ask, ofMessage } from './api.js';
import { button, el } from './dom.js';
import { clipped, safe } from './text.js';
import { edit, edited } from './editor.js';

/**
 * @param {HTMLElement} root
 * @param {{queue: any[], sending: {body: any, state: string}[], failed: boolean}} now
 * @param {{namespace: string, chat: string, tell: (words: string) => void}} page
 */
export function showQueue(root, now, page) {
  root.hidden = now.queue.length + now.sending.length === 0;
  const kept = new Map([...root.querySelectorAll('li[data-key]')].map((li) => [li.dataset.key, li]));
  const items = [...now.queue.map((queued, place) => {
    const li = keyed(kept, `${queued.name}/${queued.preview ?? ''}/${queued.interrupts ?? ''}`, () => waiting(queued, page));
    li.querySelector('.place').textContent = `${place + 1}.`;
    li.querySelector('.held').textContent = queued.heldUntil ? 'is being edited' : '';
    return li;
  }),
  ...now.sending.map((item) => keyed(kept, `${item.body.name}/${item.state}`, () => sending(item)))];
  const before = [...root.querySelectorAll('li[data-key]')];
  if (before.length === items.length && before.every((li, i) => li === items[i])) return;
  const words = now.failed ? 'Waiting: the next message lets these begin' : 'Waiting for their turn';
  root.replaceChildren(el('h3', {}, words), el('ol', {}, ...items));
}

function keyed(kept, key, make) {
  const li = kept.get(key) ?? make();
  li.dataset.key = key;
  return li;
}

function waiting(queued, page) {
  const li = el('li', { tabindex: -1 });
  const { namespace, chat, tell } = page;
  const path = ofMessage(namespace, chat, queued.name);
  const act = (method, at, words) => async () => {
    try {
      await ask(method, at);
    } catch (no) {
      tell(`${words}: ${no.message}`);
    }
  };
  const change = (restored) => edit(li, { namespace, chat, name: queued.name,
    hint: 'It keeps its place in the queue, and is not started while you edit it.', waits: true, restored }, tell);
  li.append(el('span', { class: 'place' }),
    el('span', { class: 'words', dir: 'auto', title: safe(queued.name) }, safe(queued.preview || 'without a preview')),
    queued.interrupts ? el('span', { class: 'badge' }, 'cuts in') : '',
    el('span', { class: 'badge held' }),
    queued.model ? el('span', { class: 'badge' }, safe(queued.model)) : '',
    el('span', { class: 'tools' },
      queued.interrupts ? '' : button('Now', act('POST', `${path}/promote`, 'It was not promoted'),
        { class: 'quiet', title: 'Stop the turn under way and let this be next' }),
      button('Edit', () => change(false), { class: 'quiet' }),
      button('Delete', act('DELETE', path, 'It was not deleted'), { class: 'quiet' })));
  if (edited(namespace, queued.name)) change(true);
  return li;
}

function sending(item) {
  const words = item.body.content ?? item.body.parts?.find((part) => part.text)?.text ?? 'files';
  return el('li', { class: 'sending' }, el('span', { class: 'words', dir: 'auto' }, clipped(words, 200)),
    el('span', { class: 'badge' }, safe(item.state)));
}
