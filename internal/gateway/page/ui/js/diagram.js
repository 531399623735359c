// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Diagrams in the language of Mermaid. A frame without origin and network draws them; the page shows what it returns as an
// image, in which nothing runs, loads or is a link. A diagram that cannot be drawn stays as its source, with the reason.

import { el } from './dom.js';
import { clipped, safe } from './text.js';

/** How long the frame may take for one diagram; it loads the library first. */
const PATIENCE = 20_000;
/** How many diagrams are kept drawn, for messages that are released and shown again. */
const KEPT = 50;
/** A drawing that is larger is not shown. */
const MOST = 1_000_000;

/** @type {Map<string, Promise<string>>} the address of the image, by the source */
const drawn = new Map();
let before = Promise.resolve();

/** Shows a diagram in place of its source. @param {HTMLElement} at that shows the source @param {string} source */
export async function diagram(at, source) {
  try {
    if (!drawn.has(source)) drawn.set(source, inTurn(() => draw(source)));
    if (drawn.size > KEPT) drawn.delete(drawn.keys().next().value);
    const image = el('img', { src: await drawn.get(source), alt: `Diagram: ${clipped(source, 200)}` });
    await image.decode();
    at.replaceWith(el('figure', { class: 'diagram' }, image, el('details', {}, el('summary', {}, 'Source'), at.cloneNode(true))));
  } catch (no) {
    at.append(el('p', { class: 'warning reason' }, `The diagram cannot be drawn: ${safe(no.message).slice(0, 1000)}`));
  }
}

/** One at a time: each has a frame of its own. @param {() => Promise<string>} draw */
function inTurn(draw) {
  const done = before.then(draw);
  before = done.then(() => {}, () => {});
  return done;
}

/** @param {string} source @returns {Promise<string>} */
function draw(source) {
  const frame = el('iframe', { sandbox: 'allow-scripts', src: 'frame/diagram.html', class: 'drawing', title: 'Diagrams', tabindex: -1,
    'aria-hidden': true });
  const ended = new AbortController();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('it takes too long.')), PATIENCE);
    ended.signal.addEventListener('abort', () => clearTimeout(timer));
    frame.addEventListener('load', () => frame.contentWindow.postMessage(source, '*'));
    window.addEventListener('message', ({ source: from, data }) => {
      if (from !== frame.contentWindow) return;
      const svg = String(data?.svg ?? '');
      if (!svg.startsWith('<svg')) reject(new Error(String(data?.error ?? 'it is not SVG.')));
      else if (svg.length > MOST) reject(new Error('it is too large.'));
      else resolve(`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`);
    }, { signal: ended.signal });
    document.body.append(frame);
  }).finally(() => {
    ended.abort();
    frame.remove();
  });
}
