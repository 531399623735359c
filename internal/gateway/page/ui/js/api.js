// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// The operations of docs/reference/gateway.md.

import { another, identity } from './session.js';
import { safe } from './text.js';

/** Why something was not done, in the words of the gateway or of the API server. */
export class Refusal extends Error {
  /** @param {number} status 0: nobody has answered, so nobody knows whether it was done */
  constructor(status, reason, message) {
    super(message);
    this.status = status;
    this.reason = reason;
  }

  /** Whether the same request may succeed later. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

let onUnauthorized = () => {};

/** @param {(message: string) => void} tell is called when the credential is refused */
export function whenUnauthorized(tell) {
  onUnauthorized = tell;
}

/**
 * @param {Response} answer @param {Object} shown the identity that was answered: one that has been replaced since is
 *   nobody's trouble
 * @returns {Promise<Refusal>}
 */
export async function refusalOf(answer, shown) {
  const said = await answer.json().catch(() => ({}));
  const no = new Refusal(answer.status, said.reason || answer.statusText, safe(said.message || `The answer is ${answer.status}.`));
  if (answer.status === 401 && shown === identity()) onUnauthorized(no.message);
  return no;
}

/**
 * Makes a request. One whose credential is refused is made again once there is another one.
 * @param {string} method @param {string} path below /v1beta1 @param {string|Uint8Array} [body] @param {string} [type] of it
 * @returns {Promise<Response>}
 */
async function request(method, path, body, type = 'application/json') {
  for (let pause = 0; ; pause = Math.min(Math.max(pause * 2, 1000), 15000)) {
    const renewal = another();
    const shown = identity();
    let answer;
    try {
      answer = await fetch(`/v1beta1${path}`, {
        method,
        headers: { ...shown, ...(body ? { 'Content-Type': type } : {}) },
        body,
        redirect: 'error',
      });
    } catch {
      throw new Refusal(0, 'Unreachable', 'The server cannot be reached.');
    }
    if (answer.ok) return answer;
    const no = await refusalOf(answer, shown);
    if (no.status !== 401) throw no;
    await renewal;
    if (pause) await wait(pause); // Servers may not agree on a credential.
  }
}

/**
 * @param {string} method @param {string} path below /v1beta1 @param {Object} [body]
 * @returns {Promise<any>} the answer, decoded
 */
export async function ask(method, path, body) {
  const answer = await request(method, path, body && JSON.stringify(body));
  return answer.status === 204 ? {} : whole(answer.json());
}

/** What an answer has. If the connection breaks within it, the request may be made again as if nobody had answered. */
const whole = (read) => read.catch(() => { throw new Refusal(0, 'Unreachable', 'The connection broke within the answer.'); });

/** Uploads a file for messages of a chat, which name it by what is returned. @param {string} chat @param {Uint8Array} bytes */
export async function upload(chat, bytes) {
  // Browsers compute digests only for pages that come by https, or from this machine.
  if (!crypto.subtle) throw new Refusal(400, 'Insecure', 'A file of this size needs a page at an https address.');
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  const sha256 = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
  await request('PUT', `${chat}/files/${sha256}`, bytes, 'application/octet-stream');
  return { sha256, size: bytes.length };
}

/** @param {string} path @returns {Promise<Uint8Array>} what is there, as it is */
export async function bytes(path) {
  return new Uint8Array(await whole((await request('GET', path)).arrayBuffer()));
}

/** The last download of each of four lanes: of more than eight at once, the gateway refuses the others. */
const lanes = Array(4).fill(Promise.resolve());
let downloads = 0;

/** @param {string} chat @param {{sha256: string}} stored */
export function download(chat, { sha256 }) {
  const lane = downloads++ % lanes.length;
  const content = lanes[lane].then(() => bytes(`${chat}/files/${segment(sha256)}`));
  lanes[lane] = content.catch(() => {}); // Whoever asked for it gets the error.
  return content;
}

/**
 * Creates something with a name of its own, until it is known to exist. Whoever does not know whether it has arrived
 * sends it again: that there is one of this name already then means that it has.
 * @param {string} path @param {{name: string}} body @param {(no: Refusal) => void} [waiting] is told of each try in vain
 * @param {boolean} [again] it may have been sent before @param {() => boolean} [wanted] whether to try again
 */
export async function create(path, body, waiting = () => {}, again = false, wanted = () => true) {
  for (let unknown = again, pause = 500; ; pause = Math.min(pause * 2, 10000)) {
    try {
      return await ask('POST', path, body);
    } catch (no) {
      if (unknown && no.status === 409 && no.reason === 'AlreadyExists') return {};
      if (!no.passes) throw no;
      unknown = true;
      waiting(no);
      await wait(pause);
      if (!wanted()) throw no;
    }
  }
}

const segment = encodeURIComponent;
export const inNamespace = (namespace) => `/namespaces/${segment(namespace)}`;
export const ofChat = (namespace, chat) => `${inNamespace(namespace)}/chats/${segment(chat)}`;
export const ofMessage = (namespace, chat, message) => `${ofChat(namespace, chat)}/messages/${segment(message)}`;

/** A name that nobody else takes. @param {string} prefix */
export function newName(prefix) {
  const random = crypto.getRandomValues(new Uint8Array(8));
  return `${prefix}-${Array.from(random, (byte) => (byte % 36).toString(36)).join('')}`;
}
