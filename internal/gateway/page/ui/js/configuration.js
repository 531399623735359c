// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What chats of a namespace are configured by: the models, classes, quotas and templates, and a form for each.

import { ask, inNamespace } from './api.js';
import { button, byId, copyButton, el } from './dom.js';
import { fields } from './form.js';
import { clipped, plain } from './text.js';
import { yaml } from './yaml.js';

const TITLES = { ChatModelConfig: 'Models', ChatClass: 'Classes', ChatQuota: 'Quotas' };

export class Configuration {
  /**
   * @param {string} namespace @param {string} place "" or "RESOURCE/NAME" @param {(place: string) => string} link
   * @param {(given: {model?: string, class?: string}) => void} startChat
   */
  constructor(namespace, place, link, startChat) {
    Object.assign(this, { namespace, place, link, startChat, root: byId('config-body') });
    this.root.replaceChildren(el('p', { class: 'dim' }, 'Reading…'));
    byId('config').focus();
    this.#open().catch((no) => this.#show(el('p', { class: 'warning', role: 'alert' }, `The configuration cannot be read: ${no.message}`)));
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

  async #open() {
    const { kinds } = await ask('GET', `${inNamespace(this.namespace)}/configurations`);
    const [resource, name] = this.place.split('/');
    const kind = kinds.find((one) => one.resource === resource);
    if (!kind) await this.#list(kinds);
    else await this.#edit(kind, name ?? '');
  }

  async #list(kinds) {
    const { templates, message } = await ask('GET', `${inNamespace(this.namespace)}/templates`).catch((no) => ({ templates: [], message: no.message }));
    this.#show(...kinds.map((kind) => el('section', {}, el('h3', {}, TITLES[kind.kind] ?? plain(kind.kind)),
      kind.refused && el('p', { class: 'dim' }, plain(kind.refused)),
      el('ul', { class: 'rows' }, ...kind.objects.map((one) => el('li', {}, el('a', { href: this.link(`${kind.resource}/${one.name}`) }, one.name),
        el('span', { class: 'meta' }, ` ${states(one).join(' · ')}`), one.summary && el('div', { dir: 'auto' }, clipped(one.summary, 200))))),
      !kind.refused && !kind.objects.length && el('p', { class: 'dim' }, 'There are none.'),
      kind.create && el('a', { class: 'button', href: this.link(`${kind.resource}/`) }, `New ${kind.kind}`))),
    el('section', {}, el('h3', {}, 'Templates of workspaces'), message ? el('p', { class: 'dim' }, message)
      : el('ul', { class: 'rows' }, ...templates.map((one) => el('li', {}, one.name, one.description && el('div', { dir: 'auto' }, clipped(one.description, 200)))))));
  }

  async #edit(kind, name) {
    const path = (of) => `${inNamespace(this.namespace)}/configurations/${kind.resource}/${encodeURIComponent(of)}`;
    const [schema, object] = await Promise.all([ask('GET', `/configurations/${kind.resource}/schema`), name ? ask('GET', path(name)) : {}]);
    const form = fields(schema, object.spec ?? {});
    const named = /** @type {HTMLInputElement} */ (el('input', { type: 'text', required: true, maxlength: 253, pattern: '[a-z0-9]([\\-a-z0-9.]*[a-z0-9])?' }));
    const result = el('p', { role: 'status' });
    const manifest = el('pre', { tabindex: 0, 'aria-label': 'Manifest' });
    const show = (words, bad = false) => {
      result.textContent = words;
      result.className = bad ? 'warning' : '';
    };
    const manifestOf = () => yaml({ apiVersion: 'parley.dev/v1beta1', kind: kind.kind,
      metadata: { name: name || named.value, namespace: this.namespace }, spec: form.read() ?? {} });
    const draw = () => {
      try {
        manifest.textContent = manifestOf();
      } catch (no) {
        show(no.message, true);
      }
    };
    const put = async (dryRun) => {
      for (const control of controls) control.disabled = true;
      try {
        await ask('PUT', `${path(name || named.value)}${dryRun ? '?dryRun=true' : ''}`,
          { spec: form.read() ?? {}, ...(name && { resourceVersion: object.metadata.resourceVersion }) });
        if (dryRun) show('The API server accepts it. Nothing is saved.');
        else location.hash = this.link('');
      } catch (no) {
        show(no.message, true);
      } finally {
        for (const control of controls) control.disabled = false;
      }
    };
    const controls = [el('button', { class: 'primary' }, 'Save'), button('Check', () => filled.reportValidity() && put(true), { title: 'The API server checks it and saves nothing' })];
    const filled = /** @type {HTMLFormElement} */ (el('form', {}, !name && el('div', { class: 'field' }, el('label', {}, 'Name', named)), ...form.nodes));
    filled.addEventListener('submit', (event) => { event.preventDefault(); put(false); });
    for (const change of ['input', 'change', 'click']) filled.addEventListener(change, draw);
    draw();
    const may = name ? kind.update : kind.create;
    const about = kind.objects.find((one) => one.name === name);
    filled.append(el('div', { class: 'row' }, ...(may ? controls : [el('p', { class: 'dim' }, 'You may not change it.')]), this.#tryIt(kind, name)), result);
    this.#show(el('p', {}, el('a', { href: this.link('') }, 'All configuration')), el('h3', {}, name ? `${kind.kind} ${name}` : `New ${kind.kind}`),
      about && el('p', { class: 'dim' }, [...states(about), plain(about.message ?? '')].filter(Boolean).join(' · ')),
      el('div', { class: 'config' }, filled, el('section', {}, el('h4', {}, 'Manifest', copyButton('Copy', () => manifest.textContent ?? '', 'Copy the manifest')), manifest)));
  }

  /** A chat shows whether a model or a class works. */
  #tryIt(kind, name) {
    const given = { ChatModelConfig: { model: name }, ChatClass: { class: name } }[kind.kind];
    return name && given ? button('Try it in a chat', () => this.startChat(given), { class: 'quiet' }) : '';
  }
}

/** @param {any} one of a list */
function states(one) {
  return [one.default && 'default', one.disabled && 'disabled', one.ready && one.ready !== 'True' && `not ready: ${plain(one.reason ?? '')}`].filter(Boolean);
}
