// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// How the page authenticates. Behind "kubectl chat ui" it exchanges the code in its address for a key of that server. At
// the gateway people paste a token, which is kept in memory only unless they want otherwise, or sign in at an OpenID
// provider. Then the gateway keeps a session in cookies that no script can read.

import { discard } from './drafts.js';

const KEY = 'parley.key';
const USER = 'parley.user';
const PLACE = 'parley.place';

/** Marks requests of the page: the gateway reads the cookies of no others. */
const OF_PAGE = { 'Parley-Page': '1' };

let headers = OF_PAGE;
let resumed = false;
let renewed = () => {};
/** @type {Promise<void>} */
let renewal = new Promise((resolve) => { renewed = resolve; });

/** Who has signed in: drafts and unsent messages of this tab are this person's. */
let user = stored(USER);

/** Tabs tell each other who has signed in, because the cookies are those of all. */
const tabs = new BroadcastChannel('parley session');
tabs.onmessage = ({ data }) => { if (user && !hasToken()) identify(data); };

/**
 * Notes who has signed in. If that is somebody else than before, the page reloads, so that nothing that waits is done in the
 * name of another.
 * @param {string} username
 * @returns {boolean} whether the page reloads
 */
function identify(username) {
  const before = user;
  user = username;
  try {
    sessionStorage.setItem(USER, username);
  } catch {
    // Storage may be forbidden. Then a reload forgets drafts, too.
  }
  if (!before || before === username) return false;
  discard();
  window.addEventListener('pagehide', discard);
  window.addEventListener('beforeunload', (event) => event.stopImmediatePropagation(), { capture: true }); // It asks nothing.
  location.reload();
  return true;
}

const never = () => new Promise(() => {});

/** @returns {Object<string, string>} the headers that authenticate, another object after each renewal */
export function identity() {
  return headers;
}

export function hasToken() {
  return 'Authorization' in headers;
}

export function known() {
  return hasToken() || resumed;
}

/** Resolves once there is another credential than the one that was refused. */
export function another() {
  return renewal;
}

function renew(next) {
  headers = next;
  renewed();
  renewal = new Promise((resolve) => { renewed = resolve; });
}

/**
 * Uses a token that somebody has entered. In a tab in which somebody has signed in, the gateway says whose token that is.
 * @param {string} token @param {boolean} keep beyond a reload of this tab
 * @returns {Promise<string>} why the token is not used; empty if it is
 */
export async function enter(token, keep) {
  if (user) {
    const answer = await fetch('whoami', { headers: { Authorization: `Bearer ${token}` } }).catch(() => null);
    const body = await answer?.json().catch(() => null);
    const { message = answer ? `the answer is ${answer.status}` : 'the server cannot be reached' } = body ?? {};
    if (!answer?.ok || !body?.username) {
      return `It is not known whose token this is: ${message}. To use it anyway, open the page in a new tab.`;
    }
    if (identify(body.username)) await never();
  }
  use(token, keep);
  return '';
}

/** @param {string} token @param {boolean} keep beyond a reload of this tab */
function use(token, keep) {
  try {
    if (keep) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Storage may be forbidden. Then a reload asks again.
  }
  renew({ Authorization: `Bearer ${token}` });
}

/**
 * Continues the session in the cookies, with a new token if the old one has expired. One tab does so at a time: a
 * provider may accept a refresh token only once.
 * @param {(message: string) => void} waiting is called while the gateway or the provider does not answer
 * @returns {Promise<string>} why the person must sign in; empty if the session continues
 */
export async function resume(waiting) {
  if (!navigator.locks) return 'Open the page at an https address to sign in.';
  for (let pause = 1000; ; pause = Math.min(pause * 2, 15000)) {
    const answer = await navigator.locks.request('parley session',
      () => fetch('session', { method: 'POST', headers: OF_PAGE }).catch(() => null));
    resumed = Boolean(answer?.ok);
    if (resumed) {
      forget();
      const { username } = await answer.json();
      if (identify(username)) await never();
      tabs.postMessage(username);
      renew({ ...OF_PAGE });
      return '';
    }
    const { message } = await answer?.json().catch(() => ({})) ?? { message: 'the server cannot be reached' };
    if (answer && answer.status < 500) return message ?? `The answer is ${answer.status}.`;
    waiting(message);
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
}

function forget(name = KEY) {
  try {
    sessionStorage.removeItem(name);
  } catch {
    // As above.
  }
}

/** Goes to the OpenID provider, and returns to where the page is. */
export function signInAtProvider() {
  forget();
  location.assign(`login?at=${encodeURIComponent(location.hash)}`);
}

/** @returns {Promise<{username: string, groups: string[]}|null>} who has signed in, if the gateway knows */
export async function whoAmI() {
  const answer = await fetch('whoami', { headers: identity() }).catch(() => null);
  return answer?.ok ? answer.json() : null;
}

export function signOut() {
  window.addEventListener('pagehide', () => {
    discard();
    forget(USER);
  });
  if (!hasToken()) {
    location.assign('logout');
    return;
  }
  forget();
  location.reload();
}

function stored(name) {
  try {
    return sessionStorage.getItem(name) || '';
  } catch {
    return '';
  }
}

/**
 * Finds out who the page is.
 * @returns {Promise<{login: 'link'|'token'|'oidc', place: {namespace?: string, chat?: string}, refused: string}>}
 */
export async function begin() {
  const { login } = await (await fetch('mode.json')).json();
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  const token = stored(KEY);
  if (token) use(token, true);
  let place = JSON.parse(stored(PLACE) || '{}');
  let refused = '';
  if (login === 'link' && code) {
    // The code is not to be seen in the address, nor in the history of the browser.
    history.replaceState(null, '', location.pathname);
    const answer = await fetch('session', { method: 'POST', body: JSON.stringify({ code }) });
    const said = await answer.json();
    if (answer.ok) {
      use(said.key, true);
      place = { namespace: said.namespace, chat: said.chat };
    } else {
      refused = said.message;
    }
  }
  remember(place);
  return { login, place, refused };
}

/** Keeps where a reload begins. @param {{namespace?: string, chat?: string}} place */
export function remember(place) {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(place));
  } catch {
    // As above.
  }
}
