// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Follows a stream of docs/reference/stream.md for as long as it is wanted: through lost connections, sleep, restarts of the
// gateway and expired tokens. A browser's own EventSource can show no token.

import { refusalOf } from './api.js';
import { another, identity } from './session.js';

/** How long nothing may come before the connection is taken for lost: the gateway says something every 15 seconds. */
const SILENCE = 40000;
/** How long a tab must be hidden before its streams are closed: a browser has six connections for all its tabs. */
const HIDDEN = 30000;

/** @typedef {{name: string, id: string, data: any}} StreamEvent */

/**
 * @param {string} path below /v1beta1
 * @param {{events: (list: StreamEvent[]) => void, state: (state: 'open'|'lost'|'refused', why?: Error) => void,
 *   begin?: () => void, staysAwake?: () => boolean}} hear
 *   events gets what has come, several at once; begin is called when a connection is there, before its first event;
 *   staysAwake says whether the stream stays open in one tab while nobody sees the page
 * @returns {() => void} ends it
 */
export function follow(path, hear) {
  const ended = new AbortController();
  let attempt = new AbortController();
  let hurry = () => {};
  let last = '';
  let hiding = 0;
  let asleep = false;

  /** Whether this tab is the one of all tabs that stays awake. */
  let chosen = !navigator.locks;

  const wake = () => {
    clearTimeout(hiding);
    if (document.hidden && !(chosen && hear.staysAwake?.())) {
      hiding = setTimeout(() => { asleep = true; attempt.abort(); }, HIDDEN);
      return;
    }
    asleep = false;
    hurry();
  };
  document.addEventListener('visibilitychange', wake, { signal: ended.signal });
  window.addEventListener('online', () => hurry(), { signal: ended.signal });

  if (hear.staysAwake) {
    navigator.locks?.request(`parley ${path}`, { signal: ended.signal }, () => {
      chosen = true;
      wake();
      return new Promise((resolve) => { ended.signal.addEventListener('abort', resolve); });
    }).catch(() => {}); // It is wanted no longer.
  }

  const rest = (ms) => new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    hurry = () => { clearTimeout(timer); resolve(); };
    ended.signal.addEventListener('abort', hurry, { once: true });
  });

  async function once() {
    attempt = new AbortController();
    let watch = setTimeout(() => attempt.abort(), SILENCE);
    try {
      const shown = identity();
      const headers = { ...shown, Accept: 'text/event-stream' };
      if (last) headers['Last-Event-ID'] = last;
      const answer = await fetch(`/v1beta1${path}`, { headers, signal: attempt.signal, redirect: 'error', cache: 'no-store' });
      if (!answer.ok) {
        const no = await refusalOf(answer, shown);
        no.after = Number(answer.headers.get('Retry-After')) * 1000 || 0;
        return no;
      }
      hear.begin?.();
      hear.state('open');
      const reader = answer.body.getReader();
      const read = parser();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return null;
        clearTimeout(watch);
        watch = setTimeout(() => attempt.abort(), SILENCE);
        const list = read(value);
        for (const event of list) if (event.id) last = event.id;
        if (list.length > 0 && !ended.signal.aborted) hear.events(list);
      }
    } catch (lost) {
      return attempt.signal.aborted ? null : lost;
    } finally {
      clearTimeout(watch);
      attempt.abort();
    }
  }

  async function run() {
    for (let pause = 500, refused = 0; !ended.signal.aborted;) {
      const renewal = another();
      const began = Date.now();
      const why = await once();
      if (ended.signal.aborted) return;
      if (why?.status === 401) {
        hear.state('lost', why);
        await renewal;
        await rest(Math.min(refused, 15000)); // Servers may not agree on a credential.
        refused = Math.max(refused * 2, 1000);
        continue;
      }
      refused = 0;
      if (why?.status && !why.passes) {
        hear.state('refused', why);
        return;
      }
      if (asleep) {
        await new Promise((resolve) => { hurry = resolve; });
        continue;
      }
      hear.state('lost', why || undefined);
      pause = Date.now() - began > 5000 ? 500 : Math.min(pause * 2, 15000);
      await rest(Math.max(why?.after || 0, pause * (0.75 + Math.random() / 2)));
    }
  }
  run();
  return () => { ended.abort(); attempt.abort(); hurry(); clearTimeout(hiding); };
}

/** @returns {(bytes: Uint8Array) => StreamEvent[]} a reader of what is whole by now */
export function parser() {
  const decoder = new TextDecoder();
  let rest = '';
  let searched = 0;
  return (bytes) => {
    rest += decoder.decode(bytes, { stream: true });
    const list = [];
    let from = 0;
    // A message can have a megabyte, which comes in many pieces: what was searched is not searched again.
    for (let end; (end = rest.indexOf('\n\n', Math.max(from, searched))) >= 0; from = end + 2) {
      const event = eventOf(rest.slice(from, end));
      if (event) list.push(event);
      searched = 0;
    }
    rest = rest.slice(from);
    searched = Math.max(0, rest.length - 1);
    return list;
  };
}

function eventOf(block) {
  const event = { name: '', id: '', data: null };
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    const value = line.slice(colon + 2);
    if (line.startsWith('event: ')) event.name = value;
    else if (line.startsWith('id: ')) event.id = value;
    else if (line.startsWith('data: ')) event.data = JSON.parse(value);
  }
  return event.name ? event : null;
}
