// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// One message of the transcript.

import { button, el } from './dom.js';
import { CallCard } from './call.js';
import { link, markdown } from './markdown.js';
import { money, person, plain, safe, took, tokens, when } from './text.js';

/** Images that a browser shows without running what is in them. */
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

const GIVEN_UP = {
  Cancelled: 'cancelled', Interrupted: 'interrupted', TimedOut: 'nobody answered in time', Failed: 'the turn failed',
  Edited: 'a message was edited or deleted',
};

/** What a message says as text, for editing. */
export function wordsOf(message) {
  if (message.content) return message.content;
  return (message.parts ?? []).filter((p) => p.type === 'Text').map((p) => p.text ?? '').join('\n\n');
}

/**
 * @param {import('./story.js').Entry} entry
 * @param {{cards: Map<string, CallCard>, chatLink: (chat: string) => string, edit: Function, remove: Function}} page
 * @returns {HTMLElement}
 */
export function messageNode(entry, page) {
  const { message } = entry;
  const role = message.visibility === 'Users' ? 'note' : message.role.toLowerCase();
  const node = el('article', { class: `msg ${role}`, tabindex: -1, 'data-name': message.name, 'data-role': role });
  node.setAttribute('aria-label', `${authorOf(message, role)}, ${when(message.createdAt)}`);
  if (role === 'tool') {
    node.append(...resultsOf(message, page));
    node.hidden = node.childNodes.length === 0;
    return node;
  }
  node.append(head(message, role, entry, page));
  if (message.callsCanceledReasonBefore) giveUp(page.cards, message.callsCanceledReasonBefore);
  const body = el('div', { class: 'body' });
  if (role === 'system') body.append(summary(message, page));
  else if (message.visibility === 'Model') body.append(el('p', { class: 'dim' }, 'Said to the model alone.'));
  else body.append(...bodyOf(message, page));
  node.append(body, foot(message));
  return node;
}

function authorOf(message, role) {
  if (role === 'user') return person(message.createdBy) || 'User';
  if (role === 'note') return `Note of ${person(message.createdBy) || 'somebody'}`;
  if (role === 'system') return 'Summary';
  return safe(message.model?.name || 'Model');
}

function head(message, role, entry, page) {
  const edited = message.editedBy ? el('span', { class: 'dim', title: safe(message.editedBy) },
    `edited by ${person(message.editedBy)}`) : null;
  const tools = el('div', { class: 'tools' });
  if (role === 'user' || role === 'note') tools.append(button('Edit', () => page.edit(entry), { class: 'quiet' }));
  tools.append(button('Copy', () => navigator.clipboard.writeText(wordsOf(message)), { class: 'quiet' }));
  const words = role === 'assistant' ? 'Regenerate' : 'Delete';
  if (role !== 'system') tools.append(button(words, () => page.remove(entry), { class: 'quiet' }));
  return el('header', {}, el('h3', { title: safe(message.createdBy || message.model?.config || '') }, authorOf(message, role)),
    el('time', { datetime: message.createdAt }, when(message.createdAt)), edited, tools);
}

/** The parts of a message, in their order. @returns {Node[]} */
function bodyOf(message, page) {
  const out = [];
  if (message.content) out.push(prose(message.content, message.role));
  const sources = [];
  for (const part of message.parts ?? []) {
    switch (part.type) {
      case 'Text':
        if (part.text) out.push(prose(part.text, message.role));
        break;
      case 'Reasoning':
        if (part.text) out.push(reasoning(part.text, took(part.startedAt, part.finishedAt)));
        break;
      case 'ToolCall': out.push(cardOf(part, page).node); break;
      case 'ToolResult': page.cards.get(part.toolResult.id)?.answer(part.toolResult.output ?? '', part.toolResult.isError,
        part.startedAt, part.finishedAt); break;
      case 'File': out.push(file(part.file)); break;
      case 'Source': sources.push(part.source); break;
      default: out.push(el('p', { class: 'dim' }, `A part of type ${safe(part.type)}, which this page does not know.`));
    }
  }
  if (sources.length) out.push(sourcesOf(sources));
  return out;
}

/** Text of a message. That of people is shown as they typed it, too: Markdown keeps their lines. */
function prose(text, role) {
  const node = el('div', { class: role === 'User' ? 'prose typed' : 'prose', dir: 'auto' });
  node.append(markdown(text));
  return node;
}

/** @param {string} text @param {string} duration */
export function reasoning(text, duration) {
  return el('details', { class: 'reasoning' }, el('summary', {}, duration ? `Reasoning, ${duration}` : 'Reasoning'),
    el('div', { class: 'prose', dir: 'auto' }, markdown(text)));
}

/** @param {{url?: string, title?: string}[]} sources */
export function sourcesOf(sources) {
  return el('ol', { class: 'sources', 'aria-label': 'Sources' }, ...sources.map((source) => {
    const to = link(source.url);
    to.append(safe(source.title || source.url || ''));
    return el('li', {}, to);
  }));
}

const REFUSALS = {
  NotAllowed: 'not allowed', InputTooLarge: 'too large to be approved', InputInvalid: 'its input is invalid',
};

function cardOf(part, page) {
  const { toolCall } = part;
  const card = new CallCard({ id: toolCall.id, name: toolCall.name, input: toolCall.input ?? '' }, page.chatLink);
  card.set(toolCall.refusal ? 'failed' : 'called', REFUSALS[toolCall.refusal]);
  page.cards.set(toolCall.id, card);
  return card;
}

/** Results go to the cards of their calls. @returns {Node[]} those whose calls are not shown */
function resultsOf(message, page) {
  const alone = [];
  for (const part of message.parts ?? []) {
    const result = part.toolResult;
    if (!result) continue;
    let card = page.cards.get(result.id);
    if (!card) {
      card = new CallCard({ id: result.id, name: result.name, input: '' }, page.chatLink);
      page.cards.set(result.id, card);
      alone.push(card.node);
    }
    card.call.decision = message.decisions?.find(({ id }) => id === result.id);
    card.answer(result.output ?? '', result.isError, part.startedAt, part.finishedAt);
  }
  return alone;
}

/** @param {Map<string, CallCard>} cards @param {string} why those without a result will get none */
export function giveUp(cards, why) {
  for (const card of cards.values()) {
    if (card.call.result === undefined && card.state !== 'none') card.set('none', `no result: ${GIVEN_UP[why] ?? safe(why)}`);
  }
}

function summary(message, page) {
  const account = message.compaction;
  const words = account ? `The model sees this in place of ${safe(account.messages)} messages` : 'The model sees this';
  return el('details', { class: 'summary' }, el('summary', {}, words), ...bodyOf(message, page));
}

/** @param {{name: string, mediaType: string, data?: string, url?: string, configMapKeyRef?: any}} given */
function file(given) {
  const name = plain(given.name);
  if (given.url) {
    const to = link(given.url);
    to.append(name);
    return el('p', { class: 'file' }, to, ` ${safe(given.mediaType)}`);
  }
  if (!given.data) {
    const ref = given.configMapKeyRef;
    return el('p', { class: 'file' }, `${name}, ${safe(given.mediaType)}`,
      ref ? `, in ConfigMap ${safe(ref.name)}, key ${safe(ref.key)}` : '');
  }
  const save = button(`Save ${name}`, () => download(given), { class: 'quiet' });
  if (!IMAGES.includes(given.mediaType)) return el('p', { class: 'file' }, `${name}, ${safe(given.mediaType)} `, save);
  return el('figure', { class: 'file' },
    el('img', { src: `data:${given.mediaType};base64,${given.data}`, alt: name, loading: 'lazy' }), el('figcaption', {}, name, ' ', save));
}

function download({ name, data }) {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  // Whatever it says that it is: it is saved, and not shown.
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }));
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** How a reply ended that is not simply complete. */
const OUTCOMES = {
  MaxTokensReached: 'cut: it reached its limit of output tokens', Refused: 'the model refused to answer',
  Paused: 'paused by the provider',
};

/** What a reply cost, and what is to be known of it. */
function foot(message) {
  const node = el('footer', {});
  const { usage, cost, outcome } = message;
  if (outcome === 'Interrupted') node.append(el('span', { class: 'badge warn' }, 'interrupted'));
  if (message.truncated) node.append(el('span', { class: 'badge warn' }, 'cut at what a message holds'));
  const note = OUTCOMES[message.replyOutcome];
  if (note) node.append(el('span', { class: 'badge warn', title: safe(message.finishReason ?? '') }, note));
  if (usage) {
    node.append(el('span', { title: 'tokens read and written' },
      `${tokens(usage.inputTokens ?? 0)} in, ${tokens(usage.outputTokens ?? 0)} out`));
    if (usage.cacheReadTokens) node.append(el('span', {}, `${tokens(usage.cacheReadTokens)} cached`));
  }
  if (cost) node.append(el('span', {}, money(cost)));
  for (const warning of message.warnings ?? []) node.append(el('p', { class: 'warning' }, safe(warning)));
  return node;
}
