// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Dialogs: questions before something is lost, a new chat, a token.

import { ask, create, inNamespace, newName } from './api.js';
import { button, byId, el } from './dom.js';
import { keep, kept } from './drafts.js';
import { plain } from './text.js';

/** @param {string} title @param {...(Node|string)} content @returns {HTMLDialogElement} */
export function dialog(title, ...content) {
  const made = /** @type {HTMLDialogElement} */ (el('dialog', { 'aria-labelledby': 'dialog-title' },
    el('h2', { id: 'dialog-title' }, title), ...content));
  made.addEventListener('close', () => made.remove());
  document.body.append(made);
  made.showModal();
  return made;
}

/** @param {string} question @param {string} yes what the button says @returns {Promise<boolean>} */
export function confirmed(question, yes) {
  return new Promise((resolve) => {
    const shown = dialog('Are you sure?', el('p', {}, question), el('div', { class: 'row' },
      button(yes, () => { resolve(true); shown.close(); }, { class: 'danger' }), button('Cancel', () => shown.close())));
    shown.addEventListener('close', () => resolve(false));
  });
}

/** @param {string} namespace @param {(chat: string) => void} created */
export async function newChat(namespace, created) {
  const key = `${namespace}/new`;
  const name = el('input', { type: 'text', placeholder: 'made up', maxlength: 200, pattern: '[a-z0-9]([\\-a-z0-9.]*[a-z0-9])?' });
  const prompt = kept(el('textarea', { rows: 6, required: true }), key);
  const model = el('select', {}, el('option', { value: '' }, 'the default one'));
  const klass = el('select', {}, el('option', { value: '' }, 'the default one'));
  const wrong = el('p', { class: 'warning', role: 'alert' });
  const form = el('form', { method: 'dialog' }, el('label', {}, 'First message', prompt), el('label', {}, 'Model', model),
    el('label', {}, 'Class', klass), el('label', {}, 'Name', name), wrong,
    el('div', { class: 'row' }, el('button', { class: 'primary' }, 'Begin'), button('Cancel', () => shown.close())));
  const shown = dialog(`A new chat in ${namespace}`, form);
  prompt.focus();
  const begin = async () => {
    const chosen = name.value || newName('chat');
    const spec = { prompt: prompt.value, ...(model.value ? { modelConfigRef: { name: model.value } } : {}),
      ...(klass.value ? { chatClassName: klass.value } : {}) };
    try {
      await create(`${inNamespace(namespace)}/chats`, { name: chosen, spec }, (no) => { wrong.textContent = `${no.message} It is tried again.`; });
      keep(key, '');
      shown.close();
      created(chosen);
    } catch (no) {
      wrong.textContent = no.message;
    }
  };
  form.addEventListener('submit', (event) => { event.preventDefault(); begin(); });
  prompt.addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) begin(); });
  options(model, `${inNamespace(namespace)}/modelconfigs`, 'modelConfigs');
  options(klass, `${inNamespace(namespace)}/chatclasses`, 'chatClasses');
}

async function options(select, path, field) {
  const found = await ask('GET', path).catch(() => ({ [field]: [] }));
  for (const one of found[field]) if (!one.disabled) select.append(el('option', { value: one.name }, plain(one.name)));
}

/** Asks for a token until there is one. @param {string} why @param {(token: string, keep: boolean) => void} given */
export function signIn(why, given) {
  if (byId('sign-in')) return;
  const token = el('input', { type: 'password', autocomplete: 'off', required: true, spellcheck: 'false' });
  const stay = el('input', { type: 'checkbox' });
  const form = el('form', { method: 'dialog', id: 'sign-in' }, el('p', {}, why),
    el('label', {}, 'Token', token),
    el('p', { class: 'dim' }, 'Such as that of kubectl create token ACCOUNT. It is kept in this tab’s memory and shown to this server alone.'),
    el('label', { class: 'check' }, stay, ' Keep it for reloads, until the tab is closed'),
    el('div', { class: 'row' }, el('button', { class: 'primary' }, 'Go on')));
  const shown = dialog('Who are you?', form);
  shown.addEventListener('cancel', (event) => event.preventDefault());
  // A browser closes what refuses to be closed at the second Escape.
  shown.addEventListener('close', () => { if (!answered) signIn(why, given); });
  let answered = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    answered = true;
    shown.close();
    given(token.value.trim(), stay.checked);
  });
  token.focus();
}
