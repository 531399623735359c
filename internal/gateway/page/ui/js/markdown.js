// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Markdown as elements. The parser yields tokens, and each kind that is known becomes one element: there is no HTML in
// between that could hold something else. Images are links, because loading one tells its host that it was looked at.

import markdownit from '../vendor/markdown-it.esm.min.mjs';
import { colour } from './colours.js';
import { diagram } from './diagram.js';
import { copyButton, el } from './dom.js';
import { formulas, math } from './math.js';
import { safe } from './text.js';

const md = markdownit({ html: false, linkify: true, breaks: false, typographer: false });
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
md.use(formulas);

/** Longer texts are shown as they are: nobody reads them, and their structure would take long to build. */
const MOST = 200_000;

/** The heading of a message, below which those within it begin. */
const TOP = 3;

/** Elements of the blocks and spans. */
const TAGS = {
  paragraph_open: 'p', blockquote_open: 'blockquote', bullet_list_open: 'ul', ordered_list_open: 'ol', list_item_open: 'li',
  table_open: 'table', thead_open: 'thead', tbody_open: 'tbody', tr_open: 'tr', th_open: 'th', td_open: 'td',
  em_open: 'em', strong_open: 'strong', s_open: 's',
};

/** @param {string} text @returns {DocumentFragment} */
export function markdown(text) {
  const out = document.createDocumentFragment();
  if (text.length > MOST) {
    out.append(el('pre', { class: 'wrap', tabindex: 0 }, safe(text)));
    return out;
  }
  build(out, md.parse(safe(text), {}), { level: TOP });
  return out;
}

/**
 * Shows a text that grows. Blocks that are finished are made once: only the last one is made again.
 */
export class Growing {
  constructor() {
    this.node = el('div', { class: 'prose', dir: 'auto' });
    this.done = 0;
    this.finished = 0;
    this.outline = { level: TOP };
  }

  /** @param {string} text which begins with what it was before */
  show(text) {
    const rest = safe(text).slice(this.done, this.done + MOST);
    const tokens = md.parse(rest, {});
    const last = tokens.findLastIndex((token) => token.level === 0 && token.nesting >= 0);
    while (this.node.childNodes.length > this.finished) this.node.lastChild.remove();
    if (last > 0 && tokens[last].map) {
      build(this.node, tokens.slice(0, last), this.outline);
      this.finished = this.node.childNodes.length;
      this.done += lineStart(rest, tokens[last].map[0]);
    }
    build(this.node, tokens.slice(Math.max(0, last)), { ...this.outline, grows: true });
  }
}

/** @param {string} text @param {number} line counted from 0 @returns {number} where the line begins */
function lineStart(text, line) {
  let at = 0;
  for (let i = 0; i < line; i += 1) at = text.indexOf('\n', at) + 1;
  return at;
}

/** Appends the elements of tokens. @param {{level: number, grows?: boolean}} outline the heading before; none leaves a level out */
function build(root, tokens, outline) {
  const stack = [root];
  const top = () => stack.at(-1);
  for (const [i, token] of tokens.entries()) {
    if (token.nesting < 0) {
      stack.pop();
      continue;
    }
    if (token.type === 'inline') {
      build(top(), token.children, outline);
      continue;
    }
    if (token.hidden) {
      // The paragraph of a tight list: what is in it belongs to the item.
      stack.push(top());
      continue;
    }
    const node = nodeOf(token, outline);
    (token.type === 'table_open' ? wrap(top()) : top()).append(node);
    if (token.type === 'list_item_open') task(node, tokens[i + 2]?.children?.[0]);
    if (token.nesting > 0) stack.push(node);
  }
}

/** Shows the box of a task. @param {HTMLElement} item of a list @param {any} first token within it */
function task(item, first) {
  const [mark, done] = first?.type === 'text' ? /^\[([ xX])\]\s+/.exec(first.content) ?? [] : [];
  if (!mark) return;
  first.content = first.content.slice(mark.length);
  item.className = 'task';
  item.append(el('input', { type: 'checkbox', disabled: true, checked: done !== ' ', 'aria-label': done === ' ' ? 'to do' : 'done' }), ' ');
}

/** A table scrolls within itself. */
function wrap(parent) {
  const around = el('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'table' });
  parent.append(around);
  return around;
}

/** @returns {Node} the node of a token; of one that is not known, a plain span */
function nodeOf(token, outline) {
  switch (token.type) {
    // Markdown has other ways to write a character, which nobody has seen to yet.
    case 'text': return document.createTextNode(safe(token.content));
    case 'softbreak': return document.createTextNode('\n');
    case 'hardbreak': return el('br');
    case 'hr': return el('hr');
    case 'code_inline': return el('code', {}, token.content);
    case 'fence': case 'code_block': return code(token.content, token.info, !outline.grows);
    case 'math': return math(safe(token.content).trim(), token.meta);
    case 'heading_open':
      outline.level = Math.min(6, Number(token.tag.slice(1)) + TOP, outline.level + 1);
      return el(`h${outline.level}`);
    case 'link_open': return link(token.attrGet('href'), ['linkify', 'autolink'].includes(token.markup));
    case 'image': return image(token);
    case 'ordered_list_open': return el('ol', { start: token.attrGet('start') });
    case 'html_block': case 'html_inline': return document.createTextNode(token.content);
    default: return el(TAGS[token.type] ?? 'span');
  }
}

/** @param {string} text @param {string} info what the fence says of it @param {boolean} [coloured] */
export function code(text, info = '', coloured = true) {
  const language = safe(info.trim().split(/\s+/)[0] || '').slice(0, 30);
  const copy = copyButton('Copy', () => text, 'Copy the code');
  const shown = el('code', {}, text.replace(/\n$/, ''));
  if (coloured) colour(shown, shown.textContent, language);
  const made = el('div', { class: 'code' }, el('div', { class: 'bar' }, el('span', {}, language), copy), el('pre', { tabindex: 0 }, shown));
  if (coloured && language === 'mermaid') diagram(made, shown.textContent);
  return made;
}

/** @param {string|null} href @returns {URL|null} where a link leads, if that is a place that links may lead to */
export function target(href) {
  try {
    const url = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/**
 * A link that leads elsewhere, and says where to: its text may say something else.
 * @param {string|null} href @param {boolean} [bare] whether its text is the address @returns {HTMLElement} a span for what
 *   is no address
 */
export function link(href, bare = false) {
  const url = target(href);
  if (!url) return el('span', { class: 'nolink' });
  const where = url.protocol === 'mailto:' ? url.pathname : url.host;
  return el('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow', class: 'out', title: url.href,
    'data-host': bare ? null : where });
}

function image(token) {
  const node = link(token.attrGet('src'));
  node.append(`image: ${safe(token.content) || 'without a name'}`);
  return node;
}
