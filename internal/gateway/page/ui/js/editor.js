// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Edits a message where it stands. What was typed is kept until it is saved or given up, also when the message changes
// meanwhile.

import { ask, ofMessage } from './api.js';
import { button, byId, composes, el, onEnter } from './dom.js';
import { draft, keep, kept } from './drafts.js';
import { wordsOf } from './message.js';
import { safe } from './text.js';

/** How often a message that waits is held, which lasts 5 minutes. */
const HOLD_AGAIN = 120_000;

const editKey = (namespace, name) => `edit/${namespace}/${name}`;

/**
 * @param {HTMLElement} at in which the editor stands; its other children are hidden meanwhile
 * @param {{namespace: string, chat: string, name: string, hint: string, sure?: () => Promise<boolean>, waits?: boolean,
 *   restored?: boolean}} of
 *   sure: asks before it is saved; waits: the chat does not start it meanwhile; restored: nobody asks for it now, and
 *   the focus stays with what somebody does
 * @param {(words: string) => void} failed
 */
export async function edit(at, of, failed) {
  if (at.querySelector(':scope > .editor')) return;
  const key = editKey(of.namespace, of.name);
  const path = ofMessage(of.namespace, of.chat, of.name);
  let heldUntil;
  let held = Promise.resolve();
  const hold = () => {
    held = ask('PUT', `${path}/hold`).then((message) => {
      heldUntil = message.metadata.annotations['parley.dev/hold-until'];
    }).catch((no) => failed(`It may be started while you edit it: ${no.message}`));
    return held;
  };
  const release = () => held.then(() => heldUntil && ask('DELETE', `${path}/hold?heldUntil=${encodeURIComponent(heldUntil)}`))
    .catch(() => {}); // The hold expires.
  if (of.waits) await hold();
  let found;
  try {
    found = await ask('GET', path);
  } catch (no) {
    failed(`It cannot be edited: ${no.message}`);
    release();
    return;
  }
  if (at.querySelector(':scope > .editor')) return;
  const field = el('textarea', { rows: 4, dir: 'auto', 'aria-label': 'The message' });
  field.value = wordsOf(found.spec);
  // What was typed before a reload may be of older words, which are kept with it.
  const words = JSON.stringify(field.value);
  const typed = draft(key);
  const outdated = typed !== '' && typed !== field.value && ![words, ''].includes(draft(`${key}/of`));
  if (typed === '') keep(`${key}/of`, words);
  kept(field, key);
  const rest = [...at.children];
  const close = () => {
    clearInterval(holding);
    keep(key, '');
    keep(`${key}/of`, '');
    form.remove();
    for (const child of rest) child.hidden = false;
    at.focus();
  };
  const submit = button('Save', () => save(), { class: 'primary' });
  const save = async () => {
    if (submit.disabled) return;
    submit.disabled = true;
    if (of.sure && !await of.sure()) {
      submit.disabled = false;
      return;
    }
    const files = (found.spec.parts ?? []).filter((part) => part.type === 'File');
    const said = files.length ? { parts: [...(field.value ? [{ type: 'Text', text: field.value }] : []), ...files] }
      : { content: field.value };
    try {
      await held; // A hold that arrives later stays.
      await ask('PATCH', path, { ...said, resourceVersion: await latest(of, found), heldUntil });
      close();
    } catch (no) {
      failed(no.status === 409 ? 'Somebody else has changed it meanwhile. What you typed is kept: look at it again.'
        : `It was not changed: ${no.message}`);
      submit.disabled = false;
    }
  };
  const cancel = () => {
    close();
    release();
  };
  const form = el('div', { class: 'editor' }, field,
    ...(outdated ? [el('p', { class: 'warning', role: 'alert' }, 'Somebody else has changed it since you began. It is now:'),
      el('pre', {}, safe(wordsOf(found.spec)))] : []),
    el('p', { class: 'dim' }, of.hint),
    el('div', { class: 'row' }, submit, button('Cancel', cancel)));
  const renew = () => {
    if (!form.isConnected) clearInterval(holding);
    else if (!submit.disabled) hold();
  };
  const holding = of.waits ? setInterval(renew, HOLD_AGAIN) : 0;
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !composes(event)) cancel();
    onEnter(event, save);
  });
  for (const child of rest) child.hidden = true;
  at.append(form);
  if (of.restored && ![document.body, byId('transcript')].includes(document.activeElement)) return;
  field.focus();
  form.scrollIntoView({ block: 'nearest' }); // The focus brings only the field into view.
}

/**
 * The version that the edit is of. The operator writes statuses meanwhile, which changes nothing of what people say.
 */
async function latest(of, found) {
  const now = await ask('GET', ofMessage(of.namespace, of.chat, of.name));
  return now.metadata.generation === found.metadata.generation && now.metadata.uid === found.metadata.uid
    ? now.metadata.resourceVersion : found.metadata.resourceVersion;
}

/** Whether somebody was editing a message, which may have left the queue since. @param {string} namespace @param {string} name */
export function edited(namespace, name) {
  return draft(editKey(namespace, name)) !== '';
}
