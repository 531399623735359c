// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Calls that wait for people or a client, with what will be done in view.

import { ask, create, newName, ofChat } from './api.js';
import { confirmed } from './dialogs.js';
import { button, el, onEnter } from './dom.js';
import { exactly, inputOf, isWhole, labelled, summaryOf, verdict } from './call.js';
import { diff } from './diff.js';
import { keep, kept } from './drafts.js';
import { link, markdown } from './markdown.js';
import { countdown, parsed, plain } from './text.js';
import { callsWait } from './words.js';

const CAUSES = {
  ToolChanged: 'Its server says something else of this tool than before.',
  PlanMode: 'The chat is in mode Plan, and nobody knows whether this changes something.',
  ReviewRequired: 'This is what it will do:',
};

export class ApprovalPanel {
  /** @param {HTMLElement} root @param {string} namespace @param {string} chat @param {(words: string) => void} failed */
  constructor(root, namespace, chat, failed) {
    Object.assign(this, { root, namespace, chat, failed, version: 0 });
    root.hidden = true;
    root.replaceChildren();
  }

  /**
   * @param {any} waiting @param {(id: string) => string} inputOf a call, from the history @param {any} [chat] if it was read already
   */
  show(waiting, inputOf, chat) {
    const version = waiting?.historyVersion ?? 0;
    if (version === this.version) {
      this.#decided(waiting?.toolCalls ?? []);
      return;
    }
    this.version = version;
    this.root.hidden = !waiting;
    this.root.replaceChildren();
    this.chatRead = chat && Promise.resolve(chat);
    if (!waiting) return;
    // What is approved is what the status says, under its digest: the parts of the stream are not asked.
    const calls = waiting.toolCalls.map((call) => (call.kind === 'Client'
      ? { ...call, input: inputOf(call.id) || call.input } : call));
    const clients = calls.filter((call) => call.kind === 'Client');
    const others = calls.filter((call) => call.kind !== 'Client');
    this.root.append(el('h3', {}, `${callsWait(calls.length)} `,
      el('span', { class: 'until', 'data-until': waiting.deadline }, countdown(Date.parse(waiting.deadline) - Date.now())),
      calls.length === 1 ? ' left, then it is cancelled' : ' left, then they are cancelled'),
    ...others.map((call) => this.#call(call)), clients.length ? this.#results(clients) : '');
  }

  /** Names drafts and groups of choices: models use the ids of calls again, also in other chats. @param {any} call */
  #key(call) {
    return `${this.namespace}/${this.chat}/${this.version}/${call.id}`;
  }

  /** The first button that decides. */
  get first() {
    return this.root.querySelector('.decide button:not([disabled]), .decide input, .decide textarea');
  }

  #call(call) {
    const form = el('div', { role: 'group', class: 'pending', 'data-call': call.id, 'aria-label': `call of ${plain(call.name)}` },
      el('h4', {}, plain(call.name)), ...what(call));
    const decide = el('div', { class: 'decide' });
    const key = this.#key(call);
    const fields = call.approvalCause === 'InputRequired' ? inputs(call, `answer/${key}`) : null;
    const comment = kept(el('input', { type: 'text', placeholder: 'Comment for the model, such as why you deny it', 'aria-label': 'A comment for the model' }),
      `comment/${key}`);
    const act = async (decision) => {
      if (decision === 'Approve' && fields && !fields.isComplete()) return false;
      const done = await this.#decide(call, decision, { comment: comment.value, content: fields?.content() }, decide);
      if (done) for (const draft of [`comment/${key}`, ...(fields?.keys ?? [])]) keep(draft, '');
      return done;
    };
    const scope = `later calls of ${plain(call.name)} run without asking, also in new sub-chats`;
    const always = button(`Approve; ${scope}`, async () => {
      if (!await confirmed(`The call is approved, and ${scope}. The chat’s class may still require approval.`, 'Approve all')) return;
      if (await act('Approve')) await this.#stopAsking(call.name);
    }, { hidden: true });
    if (!call.approvalCause) {
      this.chatRead ??= this.#read();
      this.chatRead.then((chat) => { always.hidden = !withoutApproval(chat, call.name); }, () => {});
    }
    decide.append(...(fields ? [fields.node, el('details', { class: 'dim' }, el('summary', {}, 'All of the question'),
      exactly(call.inputRequests))] : []), el('div', { class: 'row' },
      button(fields ? 'Answer' : 'Approve', () => act('Approve'), { class: 'primary' }), fields ? '' : always,
      button('Deny', () => act('Deny')), comment));
    form.append(decide);
    this.#settled(call, decide);
    return form;
  }

  #read() {
    return ask('GET', ofChat(this.namespace, this.chat));
  }

  /** Lets the tool run in this chat without approval. @param {string} tool */
  async #stopAsking(tool) {
    try {
      const chat = await this.#read();
      const spec = withoutApproval(chat, tool);
      if (spec) await ask('PATCH', ofChat(this.namespace, this.chat), { resourceVersion: chat.metadata.resourceVersion, spec });
    } catch (no) {
      this.failed(`The call is approved, but later calls of ${plain(tool)} still ask: ${no.message}`);
    }
  }

  /** @returns {Promise<boolean>} whether the decision was taken */
  async #decide(call, decision, { comment, content }, at) {
    for (const control of at.querySelectorAll('button')) control.disabled = true;
    try {
      await create(`${ofChat(this.namespace, this.chat)}/approvals`, { name: newName(this.chat), toolCallID: call.id, decision,
        ...(decision === 'Approve' ? { digest: call.digest } : {}), ...(comment ? { comment } : {}),
        ...(content && decision === 'Approve' ? { content } : {}) });
      // Somebody else may have decided first, as the status then says.
      if (!at.querySelector('.settled')) this.#settled({ ...call, decision: { decision } }, at);
      return true;
    } catch (no) {
      for (const control of at.querySelectorAll('button')) control.disabled = false;
      this.failed(`Nothing was decided: ${no.message}`);
      return false;
    }
  }

  #settled(call, at) {
    if (!call.decision) return;
    const others = this.root.querySelectorAll('.pending').length > 1;
    settledBy(at, `${verdict(call.decision)}.${others ? ' It goes on once all are decided.' : ''}`);
  }

  /** Leaves the calls in place, which wait no longer. */
  settle() {
    for (const at of this.root.querySelectorAll('.decide')) {
      if (!at.querySelector('.settled')) settledBy(at, 'Decided elsewhere, or no longer needed.');
    }
  }

  /** Shows what was decided: of two decisions at once, the first one counts. */
  #decided(calls) {
    for (const call of calls) {
      const at = this.root.querySelector(`[data-call="${CSS.escape(call.id)}"] .decide`);
      if (at && call.decision) this.#settled(call, at);
    }
  }

  #results(calls) {
    const fields = calls.map((call) => {
      const key = `result/${this.#key(call)}`;
      return { call, key, field: kept(el('textarea', { rows: 2, 'aria-label': `Result of ${plain(call.name)}`,
        placeholder: 'JSON, or words' }), key) };
    });
    const send = button(calls.length > 1 ? 'Send the results' : 'Send the result', async () => {
      const results = fields.map(({ call, field }) => ({ id: call.id,
        output: parsed(field.value) === undefined ? JSON.stringify(field.value) : field.value }));
      send.disabled = true;
      try {
        await create(`${ofChat(this.namespace, this.chat)}/results`, { name: newName(`${this.chat}-results`), results });
        for (const { key } of fields) keep(key, '');
      } catch (no) {
        send.disabled = false;
        this.failed(`The results were not taken: ${no.message}`);
      }
    }, { class: 'primary' });
    for (const { field } of fields) field.addEventListener('keydown', (event) => onEnter(event, () => send.click()));
    return el('div', { role: 'group', class: 'pending', 'aria-label': 'results of a client' },
      ...fields.flatMap(({ call, field }) => [el('h4', {}, `${plain(call.name)} needs a result`), ...what(call),
        el('div', { class: 'decide' }, field)]), send);
  }
}

/** Says how a call was settled. What follows it stays where it is: somebody may be about to press it. */
function settledBy(at, words) {
  if (at.querySelector('.settled')?.textContent === words) return;
  at.style.minHeight = `${at.getBoundingClientRect().height}px`;
  at.replaceChildren(el('p', { class: 'settled' }, words));
}

/**
 * What the chat's spec has once calls of the tool do not wait. @param {any} chat @param {string} tool
 * @returns {any} null if others decide that they wait, or a pattern that names other tools, too
 */
function withoutApproval({ spec = {}, status }, tool) {
  if (['tools', 'mcpServers'].some((field) => status?.settings?.fromClass?.includes(field))) return null;
  const own = spec.tools?.approval ?? [];
  const server = spec.mcpServers?.find(({ name }) => tool.startsWith(`${name}__`));
  const theirs = server?.requireApproval ?? [];
  const name = tool.slice((server?.name.length ?? 0) + 2);
  const isPattern = (of) => (pattern) => pattern.endsWith('*') && of.startsWith(pattern.slice(0, -1));
  if (own.some(isPattern(tool)) || theirs.some(isPattern(name)) || !(own.includes(tool) || theirs.includes(name))) return null;
  const without = (list, one) => list.filter((other) => other !== one);
  return {
    ...(own.includes(tool) && { tools: { approval: without(own, tool) } }),
    ...(theirs.includes(name) && { mcpServers: spec.mcpServers.map((one) => (one === server
      ? { ...one, requireApproval: without(theirs, name) } : one)) }),
  };
}

/** What will be done. */
function what(call) {
  const out = [];
  if (CAUSES[call.approvalCause]) out.push(el('p', {}, CAUSES[call.approvalCause]));
  if (call.proposal) return [...out, diff(call.proposal)];
  if (call.approvalCause === 'InputRequired') return out;
  if (call.kind === 'Client') return [...out, ...inputOf(call)];
  return [...out, ...summaryOf(call), ...(isWhole(call) ? [] : [labelled('All of the input', exactly(call.input))])];
}

/**
 * A form for what a call asks for. Answers to several requests are apart, by the ids of the requests.
 * @returns {{node: HTMLElement, content: () => string, isComplete: () => boolean, keys: string[]}} isComplete shows what is
 *   missing or not valid; keys of its drafts
 */
function inputs(call, key) {
  /** @type {Map<string, {name: string, key: string, read: () => string|undefined}[]>} */
  const readers = new Map();
  const node = el('div', { class: 'inputs' });
  for (const [id, request] of Object.entries(objectOf(parsed(call.inputRequests)))) {
    const params = objectOf(objectOf(request).params);
    readers.set(id, []);
    node.append(el('div', { class: 'prose' }, markdown(wordsOf(params.message ?? id))));
    if (params.url) {
      const to = link(params.url);
      to.append(plain(wordsOf(params.url)));
      node.append(el('p', {}, to));
    }
    const { properties, required } = objectOf(params.requestedSchema);
    for (const [name, schema] of Object.entries(objectOf(properties))) {
      const of = `${key}/${id}/${name}`;
      const { label, read } = field(of, name, objectOf(schema), listOf(required).includes(name));
      node.append(label);
      readers.get(id)?.push({ name, key: of, read });
    }
  }
  const answers = () => [...readers].map(([id, all]) => [id, members(all.map(({ name, read }) => [name, read()]))]);
  return { node, isComplete: () => [...node.querySelectorAll('input')].every((input) => input.reportValidity()),
    keys: [...readers.values()].flat().map((one) => one.key),
    content: () => (readers.size > 1 ? members(answers()) : answers()[0]?.[1] ?? '{}') };
}

// A server's schema comes as it is, and may have anything in any place.
const objectOf = (value) => (typeof value === 'object' && value ? value : {});
const listOf = (value) => (Array.isArray(value) ? value : []);
const scalarOf = (value) => (['string', 'number'].includes(typeof value) ? value : null);
const wordsOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value) ?? '');

/** An object of members that are JSON already. @param {[string, string|undefined][]} all */
const members = (all) => `{${all.filter(([, json]) => json !== undefined).map(([name, json]) => `${JSON.stringify(name)}:${json}`).join()}}`;

/** A number that was typed. A long integer, such as an id, is more than a browser keeps. */
const numberOf = (typed) => (/^-?[1-9]\d*$/.test(typed) ? typed : String(Number(typed)));

function choicesOf({ items, ...schema }) {
  const plainOnes = [...listOf(schema.enum), ...listOf(items?.enum)].map((value) => ({ const: value, title: value }));
  return [...plainOnes, ...[...listOf(schema.oneOf), ...listOf(items?.anyOf)].filter((choice) => choice?.const !== undefined)];
}

/** One field of a form. @returns {{label: HTMLElement, read: () => string|undefined}} read returns JSON */
function field(key, name, schema, required) {
  const title = plain(wordsOf(schema.title || name)) + (required ? '' : ' (optional)');
  const about = schema.description ? el('span', { class: 'about' }, plain(wordsOf(schema.description))) : null;
  const choices = choicesOf(schema);
  if (choices.length > 0) return choosing(key, title, about, choices, schema, required);
  if (schema.type === 'boolean') {
    const box = el('input', { type: 'checkbox' });
    box.checked = schema.default === true;
    return { label: el('label', { class: 'check' }, box, ' ', title, about), read: () => String(box.checked) };
  }
  const whole = schema.type === 'integer'; // What is valid is counted in steps from the least value.
  const number = whole || schema.type === 'number';
  const secret = schema.format === 'password';
  const input = el('input', { type: number ? 'number' : secret ? 'password' : 'text', autocomplete: secret ? 'off' : null,
    step: whole ? 1 : 'any', min: whole ? Math.ceil(schema.minimum) : schema.minimum, max: schema.maximum, minlength: schema.minLength,
    maxlength: schema.maxLength, required, value: scalarOf(schema.default) });
  if (!secret) kept(input, key);
  return { label: el('label', {}, title, about, input),
    read: () => (input.value === '' ? undefined : number ? numberOf(input.value) : JSON.stringify(input.value)) };
}

function choosing(key, title, about, choices, schema, required) {
  const several = schema.type === 'array';
  const chosenFirst = several ? listOf(schema.default) : [schema.default];
  const boxes = choices.map((choice) => ({ value: choice.const,
    box: el('input', { type: several ? 'checkbox' : 'radio', name: key, required: required && !several,
      checked: chosenFirst.includes(choice.const) }), title: plain(wordsOf(choice.title || choice.const)) }));
  const read = () => {
    const chosen = boxes.filter(({ box }) => box.checked).map(({ value }) => value);
    return JSON.stringify(several ? chosen : chosen[0]);
  };
  return { label: el('fieldset', {}, el('legend', {}, title), about,
    ...boxes.map(({ box, title: words }) => el('label', { class: 'check' }, box, ' ', words))), read };
}
