// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Messages of the transcript. turn.js puts those of models together.

import { button, copyButton, el } from './dom.js';
import { CallCard } from './call.js';
import { IMAGES, save } from './files.js';
import { link, markdown } from './markdown.js';
import { person, plain, safe, took, tokens, when } from './text.js';
import { costOf } from './work.js';

const CANCELED = {
  Cancelled: 'cancelled', Interrupted: 'interrupted', TimedOut: 'nobody answered in time', Failed: 'the turn failed',
  Edited: 'a message was edited or deleted',
};

/** What a message says as text, for editing. */
export function wordsOf(message) {
  if (message.content) return message.content;
  return (message.parts ?? []).filter((p) => p.type === 'Text').map((p) => p.text ?? '').join('\n\n');
}

/**
 * A message of a person, a note, or a summary of the context.
 * @param {import('./story.js').Entry} entry
 * @param {{chatLink: (chat: string) => string, messageLink: (name: string) => string, edit: Function, remove: Function}} page
 * @returns {HTMLElement}
 */
export function messageNode(entry, page) {
  const { message } = entry;
  const role = message.visibility === 'Users' ? 'note' : message.role.toLowerCase();
  const author = { note: `Note of ${person(message.createdBy) || 'somebody'}`, system: 'Summary' }[role]
    ?? (person(message.createdBy) || 'User');
  const body = el('div', { class: 'body' });
  if (role === 'system') body.append(summary(message, page));
  else if (message.visibility === 'Model') body.append(el('p', { class: 'dim' }, 'Said to the model alone.'));
  else body.append(...bodyOf(message, page));
  return el('article', { class: `msg ${role}`, tabindex: -1, 'data-name': message.name,
    'aria-label': `${author}, ${when(message.createdAt)}` }, head(message, role, author, entry, page), body, footer([message]));
}

function head(message, role, author, entry, page) {
  const edited = message.editedBy ? el('span', { class: 'dim', title: safe(message.editedBy) },
    `edited by ${person(message.editedBy)}`) : null;
  const tools = el('div', { class: 'tools' });
  if (role !== 'system') tools.append(button('Edit', () => page.edit(entry), { class: 'quiet' }));
  tools.append(copyButton('Copy', () => wordsOf(message), 'Copy the message'),
    copyButton('Link', () => page.messageLink(message.name), 'Copy a link to the message'));
  if (role !== 'system') tools.append(button('Delete', () => page.remove(entry), { class: 'quiet' }));
  return el('header', {}, el('h3', { title: safe(message.createdBy ?? '') }, author),
    el('time', { datetime: message.createdAt }, when(message.createdAt)), edited, tools);
}

/**
 * What a message shows within a turn. Results go to the cards of their calls.
 * @param {import('./story.js').Entry} entry @param {{cards: Map<string, CallCard>}} page @returns {Node[]}
 */
export function stepContent({ message }, page) {
  switch (message.role) {
    case 'Tool': return resultsOf(message, page);
    case 'System': return [summary(message, page)];
    default: return bodyOf(message, page);
  }
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
      case 'File': out.push(file(part.file, page)); break;
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
  const card = new CallCard({ id: toolCall.id, name: toolCall.name, input: toolCall.input ?? '' }, page);
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
      card = new CallCard({ id: result.id, name: result.name, input: '' }, page);
      page.cards.set(result.id, card);
      alone.push(card.node);
    }
    card.call.decision = message.decisions?.find(({ id }) => id === result.id);
    card.answer(result.output ?? '', result.isError, part.startedAt, part.finishedAt);
  }
  return alone;
}

/** @param {Map<string, CallCard>} cards @param {string} why those without a result will get none */
export function cancelCalls(cards, why) {
  for (const card of cards.values()) {
    if (card.call.result === undefined && card.state !== 'none') card.set('none', `no result: ${CANCELED[why] ?? safe(why)}`);
  }
}

function summary(message, page) {
  const account = message.compaction;
  const words = account ? `The model sees this in place of ${safe(account.messages)} messages` : 'The model sees this';
  return el('details', { class: 'summary' }, el('summary', {}, words), ...bodyOf(message, page));
}

/** @param {{name: string, mediaType: string, data?: string, url?: string, configMapKeyRef?: any, stored?: any}} given */
function file(given, page) {
  const name = plain(given.name);
  if (given.url) {
    const to = link(given.url);
    to.append(name);
    return el('p', { class: 'file' }, to, ` ${safe(given.mediaType)}`);
  }
  if (given.stored) {
    const saving = button(`Save ${name}`, () => page.save(given), { class: 'quiet' });
    if (!IMAGES.includes(given.mediaType)) return el('p', { class: 'file' }, `${name}, ${safe(given.mediaType)} `, saving);
    return el('figure', { class: 'file' }, preview(given, page), el('figcaption', {}, name, ' ', saving));
  }
  if (!given.data) {
    const ref = given.configMapKeyRef;
    return el('p', { class: 'file' }, `${name}, ${safe(given.mediaType)}`,
      ref ? `, in ConfigMap ${safe(ref.name)}, key ${safe(ref.key)}` : '');
  }
  const bytes = () => Uint8Array.from(atob(given.data), (character) => character.charCodeAt(0));
  const saving = button(`Save ${name}`, () => save(given.name, bytes()), { class: 'quiet' });
  if (!IMAGES.includes(given.mediaType)) return el('p', { class: 'file' }, `${name}, ${safe(given.mediaType)} `, saving);
  return el('figure', { class: 'file' },
    el('img', { src: `data:${given.mediaType};base64,${given.data}`, alt: name, loading: 'lazy' }), el('figcaption', {}, name, ' ', saving));
}

/** An image that the object storage has, once it is loaded. */
function preview(given, page) {
  const image = el('img', { alt: plain(given.name), hidden: true });
  page.load(given).then((bytes) => {
    image.src = URL.createObjectURL(new Blob([bytes], { type: given.mediaType }));
    image.hidden = false;
    return image.decode().finally(() => URL.revokeObjectURL(image.src));
  }).catch((no) => image.replaceWith(el('p', { class: 'dim' }, `There is no preview: ${safe(no.message)}`)));
  return image;
}

/** How a reply ended that is not simply complete. */
const OUTCOMES = {
  MaxTokensReached: 'cut: it reached its limit of output tokens', Refused: 'the model refused to answer',
  Paused: 'paused by the provider',
};

/**
 * What messages cost together, how the last one ended, and what is to be known of all.
 * @param {any[]} messages @param {boolean} [summarized] whether the cost is shown elsewhere
 */
export function footer(messages, summarized = false) {
  const { outcome, truncated, replyOutcome, finishReason } = messages.at(-1) ?? {};
  const sum = (field) => messages.reduce((all, { usage }) => all + (usage?.[field] ?? 0), 0);
  const badge = (words, title) => el('span', { class: 'badge warn', title }, words);
  return el('footer', {}, outcome === 'Interrupted' && badge('interrupted'), truncated && badge('cut at what a message holds'),
    OUTCOMES[replyOutcome] && badge(OUTCOMES[replyOutcome], safe(finishReason ?? '')),
    messages.some((message) => message.usage) && el('span', { title: 'tokens read and written' },
      `${tokens(sum('inputTokens'))} in, ${tokens(sum('outputTokens'))} out`),
    sum('cacheReadTokens') > 0 && el('span', {}, `${tokens(sum('cacheReadTokens'))} cached`),
    ...(summarized ? [] : costOf(messages)).map((cost) => el('span', {}, cost)),
    ...[...new Set(messages.flatMap((message) => message.warnings ?? []))]
      .map((warning) => el('p', { class: 'warning' }, safe(warning))));
}
