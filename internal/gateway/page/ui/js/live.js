// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The attempt under way: what the model says as it says it, and what its tools write meanwhile.

import { el } from './dom.js';
import { CallCard } from './call.js';
import { Growing } from './markdown.js';
import { sourcesOf } from './message.js';

export class LiveView {
  /** @param {{chatLink: (chat: string) => string, opened: Set<string>}} page */
  constructor(page) {
    this.page = page;
    this.node = el('div', { class: 'body' });
    this.clear();
  }

  clear() {
    this.attempt = '';
    /** @type {Map<any, {node: HTMLElement, show: (block: any) => void}>} */
    this.shown = new Map();
    this.cards = new Map();
    this.node.replaceChildren();
  }

  /**
   * @param {import('./story.js').Story['live']} live
   * @param {Map<string, CallCard>} cards of the calls that are committed
   */
  show(live, cards) {
    const attempt = live ? `${live.version}.${live.attempt}` : '';
    if (attempt !== this.attempt) {
      this.clear();
      this.attempt = attempt;
    }
    if (!live) return;
    for (const block of live.blocks) {
      const committed = block.type === 'Call' && cards.get(block.id);
      if (committed) {
        const { state, at, until, output, result, isError } = block;
        committed.show({ state: result === undefined && state === 'writing' ? 'running' : state, at, until, output,
          ...(result === undefined ? {} : { result, isError }) });
        continue;
      }
      this.#one(block, live.blocks.at(-1) === block);
    }
  }

  #one(block, newest) {
    let view = this.shown.get(block);
    if (!view) {
      view = this.#made(block);
      // Reasoning is over once something follows it.
      for (const at of this.node.querySelectorAll('.reasoning [data-since]')) at.removeAttribute('data-since');
      this.shown.set(block, view);
      this.node.append(view.node);
    } else if (!newest && block.type !== 'Call') return;
    view.show(block);
  }

  #made(block) {
    switch (block.type) {
      case 'Text': {
        const growing = new Growing();
        return { node: growing.node, show: (b) => growing.show(b.text) };
      }
      case 'Reasoning': {
        const growing = new Growing();
        const node = el('details', { class: 'reasoning' }, el('summary', {}, 'Reasoning ',
          el('span', block.at ? { 'data-since': block.at } : {})), growing.node);
        return { node, show: (b) => growing.show(b.text) };
      }
      case 'Source': return { node: sourcesOf([{ url: block.url, title: block.name }]), show: () => {} };
      default: {
        const card = new CallCard({ ...block }, this.page);
        this.cards.set(block.id, card);
        return { node: card.node, show: (b) => card.show(b) };
      }
    }
  }
}
