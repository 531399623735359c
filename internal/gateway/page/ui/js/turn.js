// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The reply to one message of a person: all that the model did for it. Steps that are over fold into one line. The newest
// step is always in view: it is the answer, what happens now, or what waits for people.

import { arrange, button, copyButton, el } from './dom.js';
import { verdict } from './call.js';
import { cancelCalls, footer, stepContent, wordsOf } from './message.js';
import { safe, when } from './text.js';
import { mark, standing } from './words.js';
import { workSummary } from './work.js';

/** @typedef {import('./story.js').Entry} Entry */

/** How many of the steps that are over have elements at once. */
const STEPS = 20;

/** @param {Entry} entry */
export const keyOf = (entry) => `${entry.message.uid}@${entry.historyVersion}@${entry.index}`;

/** One message of a model, with the results of its calls. It has an element only while it is shown. */
class Step {
  /** @param {Entry[]} entries @param {any} page */
  constructor(entries, page) {
    Object.assign(this, { entries, page, drawn: null, thoughts: [] });
  }

  get key() {
    return keyOf(this.entries[0]);
  }

  get node() {
    const [entry] = this.entries;
    this.drawn ??= el('section', { class: 'step', 'data-name': entry.message.name, tabindex: -1 },
      ...this.entries.flatMap((one) => stepContent(one, this.page)), entry.message.role === 'Assistant'
        && el('div', { class: 'facts' }, footer([entry.message]),
          button('Regenerate from here', () => this.page.remove(entry), { class: 'quiet' })));
    return this.drawn;
  }

  /** @param {Entry[]} entries that follow those that it has */
  add(entries) {
    this.entries.push(...entries);
    this.drawn?.append(...entries.flatMap((entry) => stepContent(entry, this.page)));
  }

  /** Takes the reasoning out of an answer. @returns {Element[]} nothing from a step with calls */
  takeThoughts() {
    if (!this.node.querySelector(':scope > .call')) {
      for (const thought of this.node.querySelectorAll(':scope > .reasoning')) {
        thought.remove();
        this.thoughts.push(thought);
      }
    }
    return this.thoughts;
  }

  forget() {
    this.drawn?.remove();
    Object.assign(this, { drawn: null, thoughts: [] });
    for (const part of this.entries.flatMap((entry) => entry.message.parts ?? [])) {
      this.page.cards.delete(part.toolCall?.id ?? part.toolResult?.id);
    }
  }
}

export class Turn {
  /**
   * @param {string} key
   * @param {{chatLink: (chat: string) => string, messageLink: (name: string) => string, remove: (entry: Entry) => void,
   *   fork: (entry: Entry) => void, opened: Set<string>}} page opened has what people have unfolded
   */
  constructor(key, page) {
    // Each turn has cards of its own, because models use the ids of calls again.
    Object.assign(this, { key, page: { ...page, cards: new Map() }, steps: [], drawn: [] });
    this.author = el('h3');
    this.time = el('time');
    this.tools = el('div', { class: 'tools' });
    this.summary = el('summary');
    this.list = el('div', { class: 'steps' });
    this.work = el('details', { class: 'work', open: page.opened.has(key), hidden: true }, this.summary, this.list);
    this.work.addEventListener('toggle', () => {
      page.opened[this.work.open ? 'add' : 'delete'](key);
      this.#arrange();
      this.#settle();
    });
    /** Behind which step the list ends; undefined: the last one. */
    this.until = undefined;
    this.earlier = button('', () => this.#showSteps(-STEPS), { class: 'earlier quiet' });
    this.later = button('', () => this.#showSteps(STEPS), { class: 'earlier quiet' });
    this.newest = el('div', { class: 'body' });
    this.now = el('p', { class: 'now', hidden: true });
    this.foot = el('div');
    this.node = el('article', { class: 'msg assistant', tabindex: -1 },
      el('header', {}, this.author, this.time, this.tools), this.work, this.newest, this.now, this.foot);
  }

  /** The cards of the calls that are shown, by their ids. */
  get cards() {
    return this.page.cards;
  }

  /**
   * @param {{entries: Entry[], canceled: string}} turn canceled is why calls have no result
   * @param {import('./story.js').Story|null} story of the newest turn
   */
  update(turn, story) {
    // A long chat has thousands of turns that stay as they are.
    const drawn = [turn.entries.length, turn.entries[0], turn.entries.at(-1), turn.canceled, story?.busy];
    const same = drawn.every((value, i) => value === this.drawn[i]);
    if (same && !story) return;
    if (!same) this.#draw(turn, Boolean(story?.busy));
    Object.assign(this, { drawn, canceled: turn.canceled, story });
    this.#settle();
    this.#showNow(story);
  }

  /** Shows a message of the turn. @param {string} name @returns {HTMLElement|undefined} where it is */
  reveal(name) {
    const step = this.steps.find(({ entries }) => entries.some((entry) => entry.message.name === name));
    if (!step || step === this.steps.at(-1)) return step && this.node;
    this.work.open = true;
    this.until = this.steps.indexOf(step);
    this.#showSteps(STEPS / 2);
    return step.node;
  }

  #draw(turn, busy) {
    const before = new Map(this.steps.map((step) => [step.key, step]));
    this.steps = stepsOf(turn.entries).map((entries) => {
      const step = before.get(keyOf(entries[0]));
      if (!step?.entries.every((entry, i) => entries[i] && keyOf(entry) === keyOf(entries[i]))) return new Step(entries, this.page);
      before.delete(step.key);
      step.add(entries.slice(step.entries.length));
      return step;
    });
    for (const gone of before.values()) gone.forget();
    this.#arrange();
    const replies = turn.entries.map((entry) => entry.message).filter((message) => message.role === 'Assistant');
    const last = replies.at(-1);
    this.node.dataset.name = last?.name ?? '';
    this.author.title = safe(last?.model?.config ?? '');
    const at = last?.finishedAt ?? last?.createdAt ?? '';
    this.time.textContent = at && when(at);
    this.time.setAttribute('datetime', at);
    const folded = this.steps.slice(0, -1).flatMap((step) => step.entries.map((entry) => entry.message));
    this.summary.textContent = workSummary(folded, replies, !busy);
    this.tools.replaceChildren(...(last ? this.#tools(turn.entries.findLast((entry) => entry.message === last)) : []));
    this.foot.replaceChildren(footer(replies, this.steps.length > 1));
  }

  #tools(entry) {
    const words = () => this.steps.map((step) => wordsOf(step.entries[0].message)).findLast(Boolean) ?? '';
    return [copyButton('Copy', words, 'Copy the reply'),
      copyButton('Link', () => this.page.messageLink(entry.message.name), 'Copy a link to the reply'),
      button('Fork', () => this.page.fork(entry), { class: 'quiet', title: 'Continue from here in another chat' }),
      button('Regenerate', () => this.page.remove(entry), { class: 'quiet' })];
  }

  /** Moves the list of steps. @param {number} by so many of them */
  #showSteps(by) {
    const last = this.steps.length - 1;
    const until = Math.max(STEPS, (this.until ?? last) + by);
    this.until = until < last ? until : undefined;
    this.#arrange();
    this.#settle();
  }

  #arrange() {
    const folded = this.steps.slice(0, -1);
    const newest = this.steps.at(-1);
    this.work.hidden = folded.length === 0;
    const until = this.until ?? folded.length;
    const shown = this.work.open ? folded.slice(Math.max(0, until - STEPS), until) : [];
    for (const step of folded) if (!shown.includes(step) || step.thoughts.length > 0) step.forget();
    arrange(this.newest, newest ? [newest.node] : []);
    const thoughts = folded.length > 0 ? newest.takeThoughts() : [];
    this.earlier.textContent = `Show earlier steps: ${until - STEPS}`;
    this.later.textContent = `Show later steps: ${folded.length - until}`;
    arrange(this.list, this.work.open ? [...(until > STEPS ? [this.earlier] : []), ...shown.map((step) => step.node),
      ...(until < folded.length ? [this.later] : thoughts)] : []);
  }

  /** Shows how calls stand that have no result. */
  #settle() {
    const { story } = this;
    const canceled = this.canceled || story?.status?.callsCanceledReason;
    if (canceled) cancelCalls(this.cards, canceled);
    for (const [id, card] of this.cards) {
      if (card.call.result !== undefined) continue;
      const pending = story?.waiting?.toolCalls.find((call) => call.id === id);
      if (pending?.decision) card.call.decision = pending.decision;
      if (pending?.decision) card.set('waits', verdict(pending.decision));
      else if (pending) card.set('waits', pending.kind === 'Client' ? 'waits for a client' : 'waits for people');
      else if (!story?.busy && card.state === 'called') card.set('none', 'has no result');
    }
  }

  /** Shows what happens now, and for how long it has. @param {import('./story.js').Story|null} story */
  #showNow(story) {
    const model = this.steps.at(-1)?.entries[0].message.model?.name || story?.status?.model;
    this.author.textContent = safe(model || 'Model');
    this.node.setAttribute('aria-label', `${this.author.textContent}, ${this.time.textContent || 'the reply under way'}`);
    this.now.hidden = !story?.busy;
    if (this.now.hidden) return;
    const words = standing(story.present);
    const began = this.page.turnBegan();
    if (this.now.dataset.shown === `${words} ${began}`) return;
    this.now.dataset.shown = `${words} ${began}`;
    this.now.replaceChildren(el('span', { class: `standing ${mark(story.present)}` }, words), ' ',
      began ? el('span', { 'data-since': began }) : '');
  }
}

/** @param {Entry[]} entries @returns {Entry[][]} a message of the model begins a step, and so does a summary of the context */
function stepsOf(entries) {
  const steps = [];
  for (const entry of entries) {
    if (steps.length === 0 || entry.message.role !== 'Tool') steps.push([entry]);
    else steps.at(-1).push(entry);
  }
  return steps;
}
