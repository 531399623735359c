// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What chats of a namespace are configured by: the models, classes, quotas and templates, and a form for each.

import { ask, bytes, inNamespace } from './api.js';
import { button, byId, copyButton, el, toast } from './dom.js';
import { fields } from './form.js';
import { clipped, plain } from './text.js';
import { yaml } from './yaml.js';

const TITLES = { ChatModelConfig: 'Models', ChatClass: 'Classes', ChatQuota: 'Quotas' };
/** Numbers that a browser cannot keep. */
const LONG_NUMBER = /[:[,]\s*-?\d{16,}/;

/** Forms with changes that are not saved, by namespace and place. They are shown again as they were drafts. @type {Map<string, Form>} */
const drafts = new Map();

/** Whether there are changes that are not saved. */
export const unsaved = () => drafts.size > 0;

export class Configuration {
  /**
   * @param {string} namespace @param {string} place "" or "RESOURCE/NAME" @param {(place: string) => string} link
   * @param {(given: {model?: string, class?: string}) => void} startChat
   */
  constructor(namespace, place, link, startChat) {
    Object.assign(this, { namespace, place, link, startChat, root: byId('config-body'), stopped: false });
    byId('config').focus();
    this.#start();
  }

  /** @param {string} namespace @param {string} place */
  isFor(namespace, place) {
    return this.namespace === namespace && this.place === place;
  }

  /** What is read after the page shows something else is shown nowhere. */
  stop() {
    this.stopped = true;
  }

  #show(...nodes) {
    if (!this.stopped) this.root.replaceChildren(...nodes);
  }

  #start() {
    const form = drafts.get(`${this.namespace}/${this.place}`);
    if (form) {
      this.#show(...form.nodes);
      return;
    }
    this.#show(el('p', { class: 'dim' }, 'Reading…'));
    this.#open().catch((no) => this.#show(el('p', { class: 'warning', role: 'alert' }, `The configuration cannot be read: ${no.message} `,
      button('Try again', () => this.#start(), { class: 'quiet' }))));
  }

  async #open() {
    const { kinds } = await ask('GET', `${inNamespace(this.namespace)}/configurations`);
    const [resource, name] = this.place.split('/');
    const kind = kinds.find((one) => one.resource === resource);
    if (kind) this.#show(...(await openForm(this, kind, name ?? '')).nodes);
    else await this.#list(kinds);
  }

  /** What a list says of changes that wait in a form. @param {string} place */
  #draft(place) {
    return drafts.has(`${this.namespace}/${place}`) ? ['changes are not saved'] : [];
  }

  /** Objects with changes that are not saved, which are gone or not among those that are listed. */
  #unlisted({ resource, objects }) {
    const start = `${this.namespace}/${resource}/`;
    return [...drafts.keys()].filter((key) => key.startsWith(start) && key !== start).map((key) => ({ name: key.slice(start.length) }))
      .filter(({ name }) => !objects.some((one) => one.name === name));
  }

  async #list(kinds) {
    const { templates, message } = await ask('GET', `${inNamespace(this.namespace)}/templates`).catch((no) => ({ templates: [], message: no.message }));
    this.#show(...kinds.map((kind) => el('section', {}, el('h3', {}, TITLES[kind.kind] ?? plain(kind.kind)),
      kind.refused && el('p', { class: 'dim' }, plain(kind.refused)),
      el('ul', {}, ...[...kind.objects, ...this.#unlisted(kind)].map((one) => el('li', {}, el('a', { href: this.link(`${kind.resource}/${one.name}`) }, plain(one.name)),
        el('span', { class: 'meta' }, ` ${[...states(one), ...this.#draft(`${kind.resource}/${one.name}`)].join(' · ')}`), one.summary && el('div', { dir: 'auto' }, clipped(one.summary, 200))))),
      kind.more && el('p', { class: 'dim' }, 'There are more, which are not listed.'),
      !kind.refused && !kind.objects.length && el('p', { class: 'dim' }, 'There are none.'),
      kind.create && el('a', { class: 'button', href: this.link(`${kind.resource}/`) },
        [`New ${kind.kind}`, ...this.#draft(`${kind.resource}/`)].join(' · ')),
      !kind.create && !kind.refused && el('p', { class: 'dim' }, 'You may not create one.'))),
    el('section', {}, el('h3', {}, 'Templates of workspaces'), message ? el('p', { class: 'dim' }, message)
      : el('ul', {}, ...templates.map((one) => el('li', {}, plain(one.name), one.description && el('div', { dir: 'auto' }, clipped(one.description, 200)))))));
  }
}

/** Reads what a form needs. @param {Configuration} at @param {any} kind @param {string} name empty: of a new object */
async function openForm(at, kind, name) {
  const path = (of) => `${inNamespace(at.namespace)}/configurations/${kind.resource}/${encodeURIComponent(of)}`;
  const [schema, raw] = await Promise.all([ask('GET', `/configurations/${kind.resource}/schema`), name ? bytes(path(name)) : null]);
  const text = raw ? new TextDecoder().decode(raw) : '';
  const { object, update } = raw ? JSON.parse(text) : { object: {}, update: kind.create };
  let why = update ? '' : 'You may not change it: nothing here is saved.';
  if (LONG_NUMBER.test(text)) why = 'It has a number with more digits than a browser keeps: change it with kubectl.';
  return new Form({ at, kind, name, path, schema, object, why });
}

/** A form for an object, with its manifest. */
class Form {
  /** @param {{at: Configuration, kind: any, name: string, path: (name: string) => string, schema: any, object: any, why: string}} of */
  constructor(of) {
    Object.assign(this, of);
    const { at, kind, name, object, schema, why } = of;
    this.fields = fields(schema, object.spec ?? {});
    this.nameField = /** @type {HTMLInputElement} */ (el('input', { type: 'text', required: true, maxlength: 253, title: 'Lower-case letters, digits, - and .', pattern: '[a-z0-9]([\\-a-z0-9.]*[a-z0-9])?' }));
    this.result = el('p', { role: 'status' });
    this.manifest = el('pre', { tabindex: 0, 'aria-label': 'Manifest' });
    this.busy = false;
    // Enter in a field saves nothing.
    const acts = [button('Save', () => this.#put(false), { class: 'primary' }), button('Check', () => this.#put(true), { title: 'The API server checks it and saves nothing' })];
    const about = kind.objects.find((one) => one.name === name);
    this.tryIt = this.#tryIt(about);
    this.discard = button('Discard the changes', () => { this.#mark(false); location.hash = at.link(''); }, { class: 'quiet', hidden: true });
    this.form = /** @type {HTMLFormElement} */ (el('form', {}, why && el('p', { class: 'warning' }, why), !name && el('div', { class: 'field' }, el('label', {}, 'Name', this.nameField)), ...this.fields.nodes,
      el('div', { class: 'acts' }, this.result, el('div', { class: 'row' }, ...(why ? [] : acts), this.discard, this.tryIt))));
    this.form.addEventListener('submit', (event) => event.preventDefault());
    for (const change of ['input', 'change', 'click']) this.form.addEventListener(change, () => this.#draw());
    this.manifest.textContent = this.#text();
    this.nodes = [el('p', {}, el('a', { href: at.link('') }, 'All configuration')), el('h3', {}, name ? `${kind.kind} ${name}` : `New ${kind.kind}`),
      ...(about ? [el('p', { class: 'dim' }, [...states(about), plain(about.message ?? '')].filter(Boolean).join(' · '))] : []),
      el('div', { class: 'config' }, this.form, el('section', {}, el('h4', {}, 'Manifest', copyButton('Copy', () => this.manifest.textContent ?? '', 'Copy the manifest')), this.manifest))];
  }

  #say(words, bad = false) {
    this.result.textContent = words;
    this.result.className = bad ? 'warning' : '';
  }

  #text() {
    return yaml({ apiVersion: 'parley.dev/v1beta1', kind: this.kind.kind,
      metadata: { name: this.name || this.nameField.value, namespace: this.at.namespace }, spec: this.fields.read() ?? {} });
  }

  /** Shows the manifest. What was said of another one is not said of it. */
  #draw() {
    let text = '';
    let wrong = '';
    try {
      text = this.#text();
    } catch (no) {
      wrong = no.message;
    }
    if (text === this.manifest.textContent && text) return;
    this.manifest.textContent = text;
    this.#say(wrong, true);
    this.#mark(true);
  }

  /** @param {boolean} changed whether there is something to save */
  #mark(changed) {
    const key = `${this.at.namespace}/${this.at.place}`;
    if (changed && !this.why) drafts.set(key, this);
    else drafts.delete(key);
    this.discard.hidden = !changed || Boolean(this.why);
    if (this.tryIt) this.tryIt.hidden = changed; // A chat would use what is saved.
  }

  async #put(dryRun) {
    if (this.busy || !this.form.reportValidity()) return;
    this.busy = true;
    this.#say(dryRun ? 'Checking…' : 'Saving…');
    try {
      const spec = this.fields.read() ?? {};
      const sent = this.manifest.textContent;
      await this.#send(spec, dryRun);
      if (dryRun) this.#say('The API server accepts it. Nothing is saved.');
      else this.#saved(sent);
    } catch (no) {
      this.#say(no.message, true);
      if (!this.form.isConnected) toast(`${this.kind.kind} ${this.name || this.nameField.value}: ${no.message}`, true);
    } finally {
      this.busy = false;
    }
  }

  /** @param {any} spec @param {boolean} dryRun */
  async #send(spec, dryRun) {
    const path = this.path(this.name || this.nameField.value);
    const { metadata } = this.object;
    const put = (version) => ask('PUT', `${path}${dryRun ? '?dryRun=true' : ''}`, { spec, ...(version && { resourceVersion: version }) });
    try {
      await put(metadata?.resourceVersion);
    } catch (no) {
      if (no.status !== 409 || !metadata) throw no;
      // The operator writes statuses meanwhile, which changes nothing of what people say.
      const now = (await ask('GET', path)).object.metadata;
      if (now.generation !== metadata.generation || now.uid !== metadata.uid) throw no;
      await put(now.resourceVersion);
    }
  }

  /** @param {string|null} sent the manifest that is saved */
  #saved(sent) {
    const words = `${this.kind.kind} ${this.name || this.nameField.value} is saved.`;
    const more = this.manifest.textContent !== sent;
    this.#mark(false);
    toast(more ? `${words} What you changed meanwhile is not: open it again.` : words);
    if (this.form.isConnected) location.hash = this.at.link('');
  }

  /** A chat shows whether a model or a class works. @param {any} about the object in the list */
  #tryIt(about) {
    const given = { ChatModelConfig: { model: this.name }, ChatClass: { class: this.name } }[this.kind.kind];
    if (!about || about.disabled || !given) return null;
    return button('Try it in a chat', () => this.at.startChat(given), { class: 'quiet' });
  }
}

/** @param {any} one of a list */
function states(one) {
  return [one.default && 'default', one.disabled && 'disabled', one.ready && one.ready !== 'True' && `not ready: ${plain(one.reason ?? '')}`].filter(Boolean);
}
