// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// How the turn stands, where that is not plain from the transcript: errors with their advice, retries, what is waited for.

import { el } from './dom.js';
import { countdown, readable, safe, span } from './text.js';
import { standing } from './words.js';

/** @param {HTMLElement} root @param {import('./story.js').Story} story */
export function showNotices(root, story) {
  const notes = [failed(story.failure), retried(story.retrying), waits(story), ...warned(story)].filter(Boolean);
  const shown = notes.map((note) => note.textContent).join();
  if (root.dataset.shown === shown) return;
  root.dataset.shown = shown;
  root.replaceChildren(...notes);
}

const from = (of) => (of.provider ? ` (${safe(of.provider)}${of.statusCode ? `, ${of.statusCode}` : ''})` : '');

function failed(error) {
  if (!error) return null;
  return el('div', { class: 'notice bad', role: 'alert' }, el('h3', {}, `The turn failed: ${safe(error.reason)}${from(error)}`),
    error.message ? el('p', {}, safe(error.message)) : '',
    el('p', { class: 'advice' }, safe(error.advice || 'Put right what is wrong.'), ' ',
      'Then send a message: the conversation goes on.'));
}

function retried(retry) {
  if (!retry) return null;
  return el('div', { class: 'notice warn' }, el('h3', {}, `Attempt ${retry.attempt} failed: ${safe(retry.reason)}${from(retry)}`),
    retry.message ? el('p', {}, safe(retry.message)) : '',
    el('p', {}, retry.modelConfig ? `${safe(retry.modelConfig)} is asked next, in ` : 'The next one begins in ',
      el('span', { class: 'until', 'data-until': retry.at }, countdown(Date.parse(retry.at) - Date.now()))));
}

/** Calls that wait for people or clients, and retries, are shown elsewhere. */
const ELSEWHERE = ['Approval', 'Answer', 'ClientResult', 'Retry'];
/** How a turn ended, where the transcript does not show it. */
const RESULTS = ['MaxTokensReached', 'Interrupted', 'MaxStepsReached', 'Refused'];

/** What the chat waits for, as its status says. */
function waits({ present: status }) {
  const wait = status?.wait;
  if (!wait ? !RESULTS.includes(status?.reason) || status.phase !== 'Waiting' : ELSEWHERE.includes(wait.for)) return null;
  const words = standing(status);
  return el('div', { class: 'notice' }, el('p', {}, el('strong', {}, `The chat ${/^\w+ed$/.test(words) ? 'is ' : ''}${words}. `),
    safe(wait?.message ?? status.message ?? '')));
}

/** What replies are made without, and who else reads them. @returns {HTMLElement[]} */
function warned({ status }) {
  return (status?.warnings ?? []).map((warning) => (warning.type === 'Shared' ? el('p', { class: 'notice' }, readable(warning.message))
    : el('div', { class: 'notice warn' },
      el('h3', {}, `${safe(warning.type)}: ${safe(warning.reason)}`), el('p', {}, safe(warning.message ?? '')))));
}

/** Lets the clocks of the page run. */
function tick() {
  const now = Date.now();
  for (const at of document.querySelectorAll('[data-until]')) say(at, countdown(Date.parse(at.dataset.until) - now));
  for (const at of document.querySelectorAll('[data-since]')) say(at, span(now - Date.parse(at.dataset.since)));
}

/** A long list has many ages, which hardly ever change: the same words would be laid out again. */
function say(at, words) {
  if (at.textContent !== words) at.textContent = words;
}

let clock = 0;

/** Ticks while somebody sees the page. */
export function runClock() {
  clearInterval(clock);
  if (document.hidden) return;
  tick();
  clock = setInterval(tick, 1000);
}
