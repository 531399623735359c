// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Dialogs: questions before something is lost, a new chat, a token.

import { ask, create, inNamespace, newName } from './api.js';
import { EFFORTS, MODES } from './commands.js';
import { button, byId, el, onEnter } from './dom.js';
import { keep, kept } from './drafts.js';
import { clipped, plain } from './text.js';
import { namesIn, toolChoice } from './toolchoice.js';

/** @param {string} title @param {...(Node|string)} content @returns {HTMLDialogElement} */
export function dialog(title, ...content) {
  const made = /** @type {HTMLDialogElement} */ (el('dialog', { 'aria-labelledby': 'dialog-title' },
    el('h2', { id: 'dialog-title' }, title), ...content));
  made.addEventListener('close', () => made.remove());
  document.body.append(made);
  made.showModal();
  return made;
}

/** The button that closes a dialog without an answer. @param {() => HTMLDialogElement} shown @param {object} [attributes] */
const cancelButton = (shown, attributes) => button('Cancel', () => {
  shown().dispatchEvent(new Event('cancel'));
  shown().close();
}, attributes);

/** Calls back once a dialog is closed, by Escape or Cancel at once: its close event comes with the next frame, which may take a while. */
function onClose(shown, act) {
  for (const event of ['cancel', 'close']) shown.addEventListener(event, act);
}

/** @param {string} question @param {string} yes what the button says @returns {Promise<boolean>} */
export function confirmed(question, yes) {
  return new Promise((resolve) => {
    const shown = dialog('Are you sure?', el('p', {}, question), el('div', { class: 'row' },
      // An Enter that is held or pressed twice confirms nothing.
      button(yes, () => { resolve(true); shown.close(); }, { class: 'danger' }), cancelButton(() => shown, { autofocus: true })));
    onClose(shown, () => resolve(false));
  });
}

/** @param {string} title @param {string} label @param {string} value @returns {Promise<string|null>} null: nothing is to change */
export function promptFor(title, label, value) {
  return new Promise((resolve) => {
    const field = el('input', { type: 'text' });
    field.value = value;
    const form = el('form', { method: 'dialog' }, el('label', {}, label, field), el('div', { class: 'row' },
      el('button', { class: 'primary' }, 'Save'), cancelButton(() => shown)));
    const shown = dialog(title, form);
    form.addEventListener('submit', () => resolve(field.value));
    onClose(shown, () => resolve(null));
    field.select();
  });
}

/** @param {string} title @param {string} label of the choice @param {string} yes @returns {Promise<boolean|null>} null: nothing is to be done */
export function chosen(title, label, yes) {
  return new Promise((resolve) => {
    const field = el('input', { type: 'checkbox' });
    const form = el('form', { method: 'dialog' }, el('label', { class: 'check' }, field, ` ${label}`), el('div', { class: 'row' },
      el('button', { class: 'primary' }, yes), cancelButton(() => shown)));
    const shown = dialog(title, form);
    form.addEventListener('submit', () => resolve(field.checked));
    onClose(shown, () => resolve(null));
  });
}

/** @param {string} namespace @param {(chat: string) => void} created @param {{model?: string, class?: string}} [given] chosen already */
export async function newChat(namespace, created, given = {}) {
  const key = `${namespace}/new`;
  const text = (placeholder, more = {}) => el('input', { type: 'text', placeholder, ...more });
  const choice = (...values) => el('select', {}, el('option', { value: '' }, 'default'), ...values.map((value) => el('option', {}, value)));
  const name = text('chosen for you, or such as fix-the-build', { maxlength: 200, title: 'Lower-case letters, digits, - and .', pattern: '[a-z0-9]([\\-a-z0-9.]*[a-z0-9])?' });
  const prompt = kept(el('textarea', { rows: 4, required: true }), key);
  const model = choice();
  const klass = choice();
  const about = el('p', { class: 'dim' });
  const effort = choice(...EFFORTS);
  const mode = choice(...MODES);
  const system = kept(el('textarea', { rows: 3 }), `${key}/system`);
  const prompts = el('div', { class: 'row prompts', role: 'group', 'aria-label': 'First messages' });
  const template = el('select', {}, el('option', { value: '' }, 'default'));
  const keeps = el('input', { type: 'checkbox' });
  const storage = el('label', { class: 'check', hidden: true }, keeps, ' Keep its files in a volume, also when it stops');
  template.addEventListener('change', () => { storage.hidden = !template.value; });
  const allow = text('all, or names such as execute, read_file');
  const approval = text('none, or names such as execute, k8s_*');
  const wrong = el('p', { class: 'warning', role: 'alert' });
  const submit = el('button', { class: 'primary' }, 'Begin');
  const madeUp = newName('chat');
  const form = el('form', { method: 'dialog' }, el('label', {}, 'First message', prompt), prompts, el('label', {}, 'Class', klass), about,
    el('label', {}, 'Model', model), el('label', {}, 'Workspace', template), storage, el('label', {}, 'Name', name),
    el('details', {}, el('summary', {}, 'More settings'), el('label', {}, 'System prompt', system), el('label', {}, 'Tools', allow), el('label', {}, 'Tools whose calls wait for approval', approval),
      toolChoice({ Allow: allow, 'Ask first': approval }), el('label', {}, 'Mode', mode),
      el('label', {}, 'Effort', effort)), wrong,
    el('div', { class: 'row' }, submit, button('Cancel', () => shown.close())));
  const shown = dialog(`A new chat in ${namespace}`, form);
  for (const [at, chosen] of [[model, given.model], [klass, given.class]]) if (chosen) at.append(el('option', { selected: true }, chosen));
  prompt.focus();
  const specOf = () => {
    const tools = { ...(namesIn(allow).length && { allow: namesIn(allow) }),
      ...(namesIn(approval).length && { approval: namesIn(approval) }) };
    return { prompt: prompt.value, ...(model.value && { modelConfigRef: { name: model.value } }),
      ...(klass.value && { chatClassName: klass.value }), ...(system.value.trim() && { systemPrompt: system.value }),
      ...(template.value && { workspace: { podTemplateRef: { name: template.value, ...(keeps.checked && { storage: {} }) } } }),
      ...(Object.keys(tools).length && { tools }), ...(mode.value && { mode: mode.value }),
      ...(effort.value && { reasoningEffort: effort.value }) };
  };
  const begin = async () => {
    if (submit.disabled) return;
    submit.disabled = true;
    const chosen = name.value || madeUp;
    try {
      await create(`${inNamespace(namespace)}/chats`, { name: chosen, spec: specOf() },
        (no) => { wrong.textContent = `${no.message} It is tried again.`; }, false, () => shown.open);
      keep(key, '');
      keep(`${key}/system`, '');
      shown.close();
      created(chosen);
    } catch (no) {
      wrong.textContent = no.message;
      submit.disabled = false;
    }
  };
  form.addEventListener('submit', (event) => { event.preventDefault(); begin(); });
  prompt.addEventListener('keydown', (event) => onEnter(event, () => form.requestSubmit()));
  options(model, namespace, 'modelConfigs', (one) => [one.model && `${one.name}: ${one.model}, ${one.provider}`,
    one.default && '(default)', one.ready === false && '(not ready)']).then((all) => {
    if (!all.length || all.some((one) => one.default && !one.disabled)) return;
    model.options[0].textContent = 'none: choose one, or a class that has one';
  });
  options(template, namespace, 'templates', (one) => [one.description ? `${one.name}:` : one.name, one.description]);
  const classes = options(klass, namespace, 'chatClasses', () => []);
  const describe = async () => {
    const found = (await classes).find((one) => (klass.value ? one.name === klass.value : one.default));
    about.textContent = found ? plain([klass.value ? '' : `${found.name}:`, found.description].filter(Boolean).join(' ')) : '';
    prompts.replaceChildren(...(found?.firstPrompts ?? []).map((words) => button(clipped(words, 80), () => {
      // Typed, so that undo brings back what was there.
      prompt.select();
      document.execCommand('insertText', false, words);
    }, { title: plain(words) })));
  };
  klass.addEventListener('change', describe);
  describe();
}

/**
 * Offers what the caller may list. @param {HTMLElement} at @param {string} namespace @param {string} field of the answer
 * @param {(one: any) => any[]} words beside the name
 */
async function options(at, namespace, field, words) {
  const found = await ask('GET', `${inNamespace(namespace)}/${field.toLowerCase()}`).catch(() => ({}));
  for (const one of found[field] ?? []) {
    const there = [.../** @type {any} */ (at).options].find((option) => option.value === one.name);
    const option = there ?? el('option', { value: one.name });
    option.textContent = plain(words(one).filter(Boolean).join(' ') || one.name);
    if (!there && !one.disabled) at.append(option);
  }
  return found[field] ?? [];
}

/**
 * Asks for a token until there is one. @param {string} why @param {(token: string, keep: boolean) => void} given
 * @param {{open: () => void, resume: () => Promise<boolean>}} [provider] where people sign in instead
 */
export function signIn(why, given, provider) {
  if (byId('sign-in')) return;
  const token = el('input', { type: 'password', autocomplete: 'off', required: true, spellcheck: 'false' });
  const stay = el('input', { type: 'checkbox' });
  const submit = el('div', { class: 'row' }, el('button', { class: provider ? '' : 'primary' }, provider ? 'Use the token' : 'Sign in'));
  const ofToken = [el('label', {}, 'Token', token),
    el('p', { class: 'dim' }, 'For example, from kubectl create token ACCOUNT. It stays in the memory of this tab and is sent only to this server.'),
    el('label', { class: 'check' }, stay, ' Keep it until the tab is closed, also when it reloads'), submit];
  const atProvider = provider && button('Sign in', provider.open, { class: 'primary' });
  const form = el('form', { method: 'dialog', id: 'sign-in' }, el('p', { class: 'why' }, why), ...(provider
    ? [el('div', { class: 'row' }, atProvider), el('details', {}, el('summary', {}, 'Use a token'), ...ofToken)] : ofToken));
  const shown = dialog('Sign in', form);
  shown.addEventListener('cancel', (event) => event.preventDefault());
  const ended = new AbortController();
  // A browser closes what refuses to be closed at the second Escape.
  shown.addEventListener('close', () => { ended.abort(); if (!answered) signIn(why, given, provider); });
  let answered = false;
  const done = () => {
    answered = true;
    shown.close();
    shown.remove(); // Its close event comes a frame later. A token that is refused at once opens the next dialog before that.
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    done();
    given(token.value.trim(), stay.checked);
  });
  // The person may have signed in in another tab.
  document.addEventListener('visibilitychange', async () => {
    if (provider && !document.hidden && await provider.resume()) done();
  }, { signal: ended.signal });
  (atProvider ?? token).focus();
}

/** Shows who has signed in. @param {{username: string, groups: string[]}} who @param {() => void} signOut */
export function account(who, signOut) {
  const shown = dialog('Account', el('p', {}, plain(who.username)),
    el('ul', { 'aria-label': 'Groups' }, ...(who.groups ?? []).map((group) => el('li', {}, plain(group)))),
    el('div', { class: 'row' }, button('Sign out', signOut, { class: 'danger' }), button('Close', () => shown.close(), { autofocus: true })));
}
