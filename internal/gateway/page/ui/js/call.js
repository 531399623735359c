// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// A call of a tool: what was called, with what, how it goes, and what came of it.

import { el, fill } from './dom.js';
import { code, markdown } from './markdown.js';
import { diff, replacement } from './diff.js';
import { clipped, parsed, plain, safe, span, terminal, took, when } from './text.js';

/** More of an output is shown when somebody asks for it. */
const MOST = 30_000;

const STATES = {
  writing: 'is being written', called: 'is next', waits: 'waits', running: 'runs', ok: 'done', failed: 'failed',
  denied: 'denied', none: 'has no result',
};

const MARKS = { writing: '…', called: '…', waits: '?', running: '●', ok: '✓', failed: '✗', denied: '✗', none: '–' };

export class CallCard {
  /**
   * @param {{id: string, name: string, input?: string, at?: string}} call
   * @param {{chatLink: (chat: string) => string, opened: Set<string>}} page opened has what people have unfolded
   */
  constructor(call, page) {
    this.call = call;
    this.page = page;
    this.state = 'called';
    this.mark = el('span', { class: 'mark', 'aria-hidden': 'true' });
    this.title = el('span', { class: 'tool' });
    this.brief = el('span', { class: 'brief' });
    this.said = el('span', { class: 'state' });
    this.body = el('div', { class: 'callbody' });
    this.node = el('details', { class: 'call', open: page.opened.has(call.id) },
      el('summary', {}, this.mark, this.title, this.brief, this.said), this.body);
    this.node.addEventListener('toggle', () => {
      page.opened[this.node.open ? 'add' : 'delete'](call.id);
      this.#fill();
    });
    this.show(call);
  }

  /** Shows what is known of the call by now. @param {Object} call */
  show(call) {
    Object.assign(this.call, call);
    this.title.textContent = safe(this.call.name || 'a tool');
    this.brief.textContent = clipped(brief(this.call), 120);
    if (call.state === 'done') this.#end();
    else if (call.state) this.set(call.state);
    // A command is worth watching while it runs.
    if (this.call.name === 'execute' && this.state === 'running' && !this.opened) this.open();
    this.#changed();
  }

  /** @param {string} output @param {boolean} failed @param {string} [from] @param {string} [until] */
  answer(output, failed, from, until) {
    Object.assign(this.call, { result: output, isError: failed, at: from || this.call.at, until: until || this.call.until });
    this.#end();
    this.#changed();
  }

  /** Says how the call ended. */
  #end() {
    const state = outcome(this.call);
    this.set(state, state === 'denied' ? clipped(verdict(this.call.decision), 200) : undefined);
  }

  /** @param {string} state @param {string} [words] in place of those for the state */
  set(state, words) {
    this.state = state;
    this.mark.textContent = MARKS[state] ?? '';
    this.node.dataset.state = state;
    const ended = took(this.call.at, this.call.until);
    this.said.textContent = words ?? [STATES[state], ended].filter(Boolean).join(', ');
    delete this.said.dataset.since;
    if (state === 'running' && this.call.at) this.said.dataset.since = this.call.at;
  }

  open() {
    this.opened = true;
    this.node.open = true;
    this.#fill();
  }

  #changed() {
    if (this.node.open) this.#fill();
  }

  #fill() {
    if (!this.node.open) return;
    const at = this.body.querySelector('pre.term');
    const follows = at && at.scrollTop + at.clientHeight >= at.scrollHeight - 8;
    const decision = this.call.decision ? [el('p', { class: 'settled' }, verdict(this.call.decision))] : [];
    fill(this.body, ...decision, ...details(this.call, this.page.chatLink));
    const now = this.body.querySelector('pre.term');
    if (now && (follows || !at)) now.scrollTop = now.scrollHeight;
  }
}

/** @param {{result?: string, isError?: boolean, decision?: any}} call that has a result @returns {'ok'|'failed'|'denied'} */
export function outcome(call) {
  if (call.decision?.decision === 'Deny') return 'denied';
  const result = parsed(call.result);
  return call.isError || result?.success === false ? 'failed' : 'ok';
}

/** What a call does, in one line. A model can give a tool what it does not take, such as a text for a list. */
function brief({ name, input }) {
  const given = parsed(input) ?? {};
  switch (name) {
    case 'execute': return given.command ?? '';
    case 'edit_files': return [...new Set([given.edits ?? []].flat().map((edit) => edit?.path))].join(', ');
    case 'write_file': return given.path ?? '';
    case 'advisor': case 'ask_user_question': case 'propose_plan': return '';
    default: {
      const values = Object.values(given).filter((v) => ['string', 'number', 'boolean'].includes(typeof v));
      return values.join(' · ');
    }
  }
}

/**
 * What a call does and what came of it, as its tool is best read. What people decide by is shown whole.
 * @param {{name: string, input?: string, output?: string, result?: string, isError?: boolean}} call
 * @param {(chat: string) => string} chatLink @returns {Node[]}
 */
export function details(call, chatLink) {
  const given = parsed(call.input);
  const result = call.result === undefined ? undefined : parsed(call.result);
  if (call.isError) return [...inputOf(call, given), labelled('Error', text(call.result))];
  try {
    if (given && SPECIAL[call.name]) return SPECIAL[call.name](given, result, call, chatLink);
  } catch {
    // A model can give a tool what it does not take.
  }
  return [...inputOf(call, given), ...(call.result === undefined ? live(call) : [labelled('Result', json(call.result, result))])];
}

/** What a call is given, as its tool is best read; nothing for other tools. @returns {Node[]} */
export function summaryOf(call, given = parsed(call.input)) {
  try {
    return given && INPUTS[call.name] ? INPUTS[call.name](given) : [];
  } catch {
    return []; // A model can give a tool what it does not take.
  }
}

/**
 * Whether the summary of a call is all of its input, character by character: a command of one line in plain letters with
 * single spaces between them, in JSON without anything that is read otherwise than it is written.
 */
export function isWhole({ name, input }) {
  const { command: run, workdir = '', ...more } = parsed(input) ?? {};
  const isLine = (text) => typeof text === 'string' && /^[ -~]*$/.test(text) && !/^ | $| {2}/.test(text);
  return name === 'execute' && isLine(run) && isLine(workdir) && Object.keys(more).length === 0
    && JSON.stringify(parsed(input)) === input.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
}

/** What a call is given, whether it is known or not. @returns {Node[]} */
export function inputOf(call, given = parsed(call.input)) {
  const summary = summaryOf(call, given);
  if (summary.length > 0) return summary;
  return call.input && call.input !== '{}' ? [labelled('Input', json(call.input, given))] : [];
}

const INPUTS = {
  __proto__: null, // A tool can have any name, such as constructor.
  execute: (given) => [command(given)],
  edit_files: (given) => (given.edits ?? []).map((edit) => labelled(plain(edit.path),
    replacement(edit.old_text ?? '', edit.new_text ?? ''))),
  write_file: (given) => [labelled(plain(given.path), text(given.content))],
  propose_plan: (given) => [el('div', { class: 'prose', dir: 'auto' }, markdown(String(given.plan ?? '')))],
  ask_user_question: (given) => (given.questions ?? []).map((q) => el('p', { class: 'question' }, safe(q.question))),
};

const SPECIAL = {
  __proto__: null,
  execute: (given, result, call) => [terminalOf(given, result, call)],
  edit_files: (given, result) => (result?.files ? result.files.map((f) => labelled(plain(f.path), diff(f.diff ?? '')))
    : INPUTS.edit_files(given)),
  write_file: (given) => INPUTS.write_file(given),
  propose_plan: (given) => INPUTS.propose_plan(given),
  ask_user_question: (given, result) => (result?.answers ?? given.questions ?? []).map((q) => el('p', { class: 'question' },
    el('strong', {}, safe(q.question)), ' ', q.answer ? safe(q.answer) : '')),
  spawn_agent: (given, result, call, chatLink) => [...inputOf(call, given), ...subChat(result, call, chatLink)],
  advisor: (given, result, call) => [...Object.values(given).map((v) => el('p', {}, safe(String(v)))),
    ...(call.result === undefined ? [] : [el('div', { class: 'prose', dir: 'auto' },
      markdown(String(result?.advice ?? call.result)))])],
};

function subChat(result, call, chatLink) {
  if (call.result === undefined) return [];
  const chat = result?.chat ?? result?.name;
  return [chat ? el('p', {}, 'Sub-chat ', el('a', { href: chatLink(chat) }, safe(chat))) : labelled('Result',
    json(call.result, result))];
}

function command(given) {
  return el('pre', { class: 'term', tabindex: 0, 'aria-label': 'command' }, el('span', { class: 'prompt' }, '$ '),
    plain(given.command ?? ''), given.workdir ? el('span', { class: 'dim' }, `\n(in ${plain(given.workdir)})`) : null);
}

/** A command as in a terminal, its output as far as it has come. */
function terminalOf(given, result, call) {
  const output = result?.output ?? call.output ?? '';
  const ended = [];
  if (result) {
    if (result.exit_code !== undefined) ended.push(`exit code ${result.exit_code}`);
    if (result.signal) ended.push(result.signal);
    if (result.background_process_id) ended.push(`runs on as ${result.background_process_id}`);
    if (result.wall_duration_ms) ended.push(span(result.wall_duration_ms));
  }
  return el('pre', { class: 'term', tabindex: 0, 'aria-label': 'terminal' }, el('span', { class: 'prompt' }, '$ '),
    el('span', { class: 'command' }, plain(given.command ?? '')), '\n', terminal(output.slice(-MOST)),
    ended.length ? el('span', { class: result.success === false ? 'ended bad' : 'ended' }, `\n[${safe(ended.join(', '))}]`) : null,
    result?.note ? el('span', { class: 'dim' }, `\n${safe(result.note)}`) : null);
}

function live(call) {
  return call.output ? [el('pre', { class: 'term', tabindex: 0, 'aria-label': 'output' }, terminal(call.output.slice(-MOST)))] : [];
}

/** @param {{decision: string, by?: string, at?: string, comment?: string}} decision @returns {string} who decided what, and when */
export function verdict({ decision, by, at, comment }) {
  return [decision === 'Deny' ? 'Denied' : 'Approved', by && ` by ${plain(by)}`, at && `, ${when(at)}`, comment && `: ${safe(comment)}`]
    .filter(Boolean).join('');
}

/** All of some JSON, with nothing left out or decoded: a new line for each member, and after each \\n of a string. */
export function exactly(source = '') {
  let depth = 0;
  const indent = () => '  '.repeat(Math.max(0, depth));
  const onNewLine = (character) => `${character}\n${indent()}`;
  const laid = source.replace(/"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}[\],:]|[^"{}[\],:]+/g, (token) => {
    switch (token) {
      case '{}': case '[]': return token;
      case '{': case '[': depth++; return onNewLine(token);
      case '}': case ']': depth--; return `\n${indent()}${token}`;
      case ',': return onNewLine(token);
      case ':': return ': ';
      default: return token.replace(/\\(.)(?!"$)/g, (escape, kind) => (kind === 'n' ? `${escape}\n${indent()}    ` : escape));
    }
  });
  return el('pre', { class: 'wrap', tabindex: 0 }, plain(laid));
}

export function labelled(label, ...nodes) {
  return el('div', { class: 'labelled' }, el('div', { class: 'label' }, label), ...nodes);
}

/** JSON, folded if it is long. */
function json(source, value) {
  if (typeof value === 'string') return text(value);
  if (value === undefined) return text(source);
  const pretty = JSON.stringify(value, null, 2);
  if (pretty.split('\n').length <= 14) return code(plain(pretty), 'json');
  return el('details', { class: 'fold' }, el('summary', {}, clipped(JSON.stringify(value), 100)), text(pretty));
}

/** @param {string} said */
export function text(said = '') {
  const shown = el('pre', { class: 'wrap', tabindex: 0 }, plain(said.slice(0, MOST)));
  if (said.length <= MOST) return shown;
  const more = el('button', { type: 'button', class: 'quiet',
    on: { click: () => { shown.textContent = plain(said); more.remove(); } } }, `Show all ${said.length} characters`);
  return el('div', {}, shown, more);
}
