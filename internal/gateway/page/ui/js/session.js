// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// How the page shows who it is. Behind "kubectl chat ui" it exchanges the code in its address for a key of that server;
// at the gateway people paste a token, which is kept in memory alone unless they want otherwise.

const KEY = 'parley.key';
const PLACE = 'parley.place';

let credential = '';
let renewed = () => {};
/** @type {Promise<void>} */
let renewal = new Promise((resolve) => { renewed = resolve; });

/** @returns {string} what stands in Authorization */
export function bearer() {
  return `Bearer ${credential}`;
}

export function known() {
  return credential !== '';
}

/** Resolves once there is another credential than the one that was refused. */
export function another() {
  return renewal;
}

/** @param {string} token @param {boolean} keep beyond a reload of this tab */
export function use(token, keep) {
  credential = token;
  try {
    if (keep) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Storage may be forbidden. Then a reload asks again.
  }
  renewed();
  renewal = new Promise((resolve) => { renewed = resolve; });
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
 * @returns {Promise<{login: 'link'|'token', place: {namespace?: string, chat?: string}, refused: string}>}
 */
export async function begin() {
  const { login } = await (await fetch('mode.json')).json();
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  credential = stored(KEY);
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
