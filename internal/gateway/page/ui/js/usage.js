// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What the calls of models in a namespace have used, by day, chat or model. All messages are read for it, piece by piece.

import { ask, inNamespace } from './api.js';
import { button, byId, el } from './dom.js';
import { clipped, tokens } from './text.js';
import { costOf } from './work.js';

/** How many rows of a table are shown. */
const MOST = 100;
const GROUPS = { day: 'Day (UTC)', chat: 'Chat', model: 'Model' };

export class Usage {
  /** @param {string} namespace @param {(chat: string) => string} link */
  constructor(namespace, link) {
    Object.assign(this, { namespace, link, rows: [], messages: 0, next: '', stopped: false, by: 'day' });
    const choice = /** @type {HTMLSelectElement} */ (el('select', {}, ...Object.entries(GROUPS).map(([by, words]) => el('option', { value: by }, words))));
    choice.addEventListener('change', () => { this.by = choice.value; this.#draw(); });
    this.state = el('p', { role: 'status' });
    this.table = el('table');
    byId('usage-body').replaceChildren(el('label', {}, 'By ', choice), this.state, this.table);
    byId('usage').focus();
    this.#read();
  }

  /** @param {string} namespace */
  isFor(namespace) {
    return this.namespace === namespace;
  }

  stop() {
    this.stopped = true;
  }

  async #read() {
    try {
      do {
        this.state.textContent = `Reading… ${this.messages} messages so far.`;
        const found = await this.#piece();
        if (this.stopped) return;
        this.rows.push(...found.rows);
        this.messages += found.messages;
        this.next = found.continue ?? '';
        this.#draw();
      } while (this.next);
      this.state.textContent = `All ${this.messages} messages are read. Deleted ones are not in it.`;
    } catch (no) {
      if (!this.stopped) this.state.replaceChildren(`The reading has stopped: ${no.message} `, button('Try again', () => this.#read(), { class: 'quiet' }));
    }
  }

  /** A piece. The gateway reads a few at a time for each person. */
  async #piece() {
    for (;;) {
      try {
        return await ask('GET', `${inNamespace(this.namespace)}/usage?${new URLSearchParams({ continue: this.next })}`);
      } catch (no) {
        if (no.status !== 429 || this.stopped) throw no;
        await new Promise((resolve) => { setTimeout(resolve, 1000); });
      }
    }
  }

  #draw() {
    /** @type {Map<string, any[]>} */
    const groups = Map.groupBy(this.rows, (row) => row[this.by] || 'unknown');
    const all = [...groups].map(([of, rows]) => ({ of, ...sum(rows) }));
    all.sort(this.by === 'day' ? (a, b) => b.of.localeCompare(a.of) : (a, b) => b.money - a.money || b.tokens - a.tokens);
    const most = all.reduce((before, one) => Math.max(before, one.money || one.tokens), 1);
    const shown = all.slice(0, MOST).map((one) => this.#row(one, (one.money || one.tokens) / most));
    const left = all.length > MOST ? [el('tr', {}, el('td', { colspan: 5 }, `${all.length - MOST} more are not shown.`))] : [];
    const { calls, input, output, costs } = sum(this.rows);
    this.table.replaceChildren(
      el('thead', {}, el('tr', {}, ...[GROUPS[this.by], 'Calls', 'Tokens read', 'Tokens written', 'Cost'].map((words) => el('th', { scope: 'col' }, words)))),
      el('tbody', {}, ...shown, ...left),
      el('tfoot', {}, el('tr', {}, el('th', { scope: 'row' }, 'All'), ...[calls, tokens(input), tokens(output), costs].map((words) => el('td', {}, String(words))))));
  }

  #row(one, share) {
    const bar = el('div', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.width = `${Math.round(share * 100)}%`;
    const name = clipped(one.of, 80);
    return el('tr', {}, el('th', { scope: 'row' }, this.by === 'chat' ? el('a', { href: this.link(one.of) }, name) : name, bar),
      el('td', {}, String(one.calls)), el('td', {}, tokens(one.input)), el('td', {}, tokens(one.output)), el('td', {}, one.costs));
  }
}

/** What rows have together. Money of several currencies is only added up to sort by. @param {any[]} rows */
function sum(rows) {
  const spent = rows.flatMap((row) => row.cost ?? []);
  const total = (of) => rows.reduce((before, row) => before + of(row), 0);
  return { calls: total((row) => row.calls), tokens: total(({ usage }) => usage.totalTokens ?? 0),
    input: total(({ usage }) => (usage.inputTokens ?? 0) + (usage.cacheReadTokens ?? 0) + (usage.cacheWriteTokens ?? 0)),
    output: total(({ usage }) => usage.outputTokens ?? 0), money: spent.reduce((before, cost) => before + cost.microUnits, 0),
    costs: costOf(spent.map((cost) => ({ cost }))).join(', ') };
}
