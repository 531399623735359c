// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// How texts, times and numbers are shown.

// What reorders or hides what stands beside it: directional overrides, and control characters but for tab and newline.
// eslint-disable-next-line no-control-regex
const tricks = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/g;
// What cannot be seen at all besides.
const unseen = /[\u00AD\u200B-\u200F\u2028\u2029\u2060-\u2064\uFEFF\u{E0000}-\u{E007F}]/gu;

const spelled = (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`;

/** A text in which nothing makes the rest look like something else. @param {string} text */
export function safe(text) {
  return String(text ?? '').replaceAll('\r\n', '\n').replace(tricks, spelled);
}

/** A text that people decide by: all of it can be seen. @param {string} text */
export function plain(text) {
  return safe(text).replace(unseen, spelled);
}

/** What is left of a terminal's output: of a line that was written over and over, its last state. @param {string} text */
export function terminal(text) {
  return safe(text.split('\n').map((line) => line.replace(/\r+$/, '').split('\r').at(-1)).join('\n'));
}

/** @param {string} text @returns {any} the JSON that it is; undefined if it is none */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @param {string} text @param {number} most */
export function clipped(text, most) {
  const line = safe(text).replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

/** @param {string} at RFC 3339 @returns {string} the time, with the day if that is not today */
export function when(at) {
  const time = new Date(at);
  if (Number.isNaN(time.valueOf())) return '';
  return time.toDateString() === new Date().toDateString() ? clock.format(time) : day.format(time);
}

/** @param {string} at @returns {string} the time with its day and year, as it may be far ahead */
export const fully = (at) => new Date(at).toLocaleString(undefined, { dateStyle: 'long', timeStyle: 'short' });

/** Who can read a chat, in a sentence with times of this place. @param {string} [message] of condition Shared */
export function readable(message) {
  return plain(message).replace(/^Readable by (.*)$/s, 'This chat can be read by $1.').replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, fully);
}

/** @param {string} at @returns {string} how long ago that was, in one unit */
export function ago(at) {
  return span(Date.now() - Date.parse(at));
}

/** @param {string} at @returns {string} the day, or the month if it is more than a week ago */
export function dayOf(at) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const then = new Date(at);
  if (Number.isNaN(then.getTime())) return 'Undated';
  if (then.getTime() >= midnight) return 'Today';
  if (then.getTime() >= midnight - 86400e3) return 'Yesterday';
  if (then.getTime() >= midnight - 6 * 86400e3) return 'This week';
  return then.toLocaleDateString(undefined, { month: 'long', year: 'numeric' });
}

/** @param {number} ms @returns {string} in its largest unit */
export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

/** @param {number} ms @returns {string} as a clock that runs */
export function countdown(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  if (seconds >= 86400) return span(ms);
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60].map((part) => String(part).padStart(2, '0'));
  const hours = Math.floor(seconds / 3600);
  return hours > 0 ? `${hours}:${parts.join(':')}` : parts.join(':');
}

/** @param {string} from @param {string} to @returns {string} how long something took; empty if that is not known */
export function took(from, to) {
  const ms = Date.parse(to) - Date.parse(from);
  if (!(ms >= 0)) return '';
  if (ms < 1000) return `${ms} ms`;
  return ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : span(ms);
}

/** @param {number} ms @returns {string} how long a turn took; empty if that is not known */
export function lasted(ms) {
  if (!(ms >= 0)) return '';
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s` : span(ms);
}

/** @param {{currency: string, microUnits: number}} cost */
export function money(cost) {
  const amount = cost.microUnits / 1e6;
  const digits = amount !== 0 && amount < 0.1 ? 4 : 2;
  return `${amount.toFixed(digits)} ${clipped(cost.currency, 8)}`;
}

/** @param {number} count */
export function tokens(count) {
  if (count < 1000) return String(count);
  return count < 1e6 ? `${(count / 1000).toFixed(count < 10000 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;
}

/** Who somebody is, in short: of a service account its name. @param {string} user */
export function person(user) {
  return safe(String(user || '').split(':').at(-1));
}
