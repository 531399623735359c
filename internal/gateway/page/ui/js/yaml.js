// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Writes YAML. A text that could be read as anything else is written as in JSON, which YAML reads too.

const PLAIN = /^[A-Za-z][\w./-]*( [\w./-]+)*$/;
const OTHER = /^(true|false|yes|no|on|off|null|y|n)$/i;
/** Lines that a block has as they are: its first one is not indented, and it ends with at most one line break. */
const LINES = /^[^\s\p{C}]([^\p{C}\u2028\u2029]|\n)*[^\s\p{C}]\n?$/u;
/** What JSON has as it is, and people do not see, or YAML reads as the end of a line or not at all. */
const UNSEEN = /[\p{C}\u2028\u2029]/gu;

/** @param {any} value as JSON has it */
function quoted(value) {
  return JSON.stringify(value).replace(UNSEEN, (one) => {
    const code = one.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

const isPlain = (text) => PLAIN.test(text) && !OTHER.test(text);

/** @param {any} value @param {string} indent of what is below it @returns {string} */
function scalar(value, indent) {
  if (typeof value === 'number') return String(value).replace(/^(-?\d+)e/, '$1.0e');
  if (typeof value !== 'string') return JSON.stringify(value);
  if (isPlain(value)) return value;
  if (!value.includes('\n') || !LINES.test(value)) return quoted(value);
  return `|${value.endsWith('\n') ? '' : '-'}\n${value.replace(/\n$/, '').replace(/^(?=.)/gm, `${indent}  `)}`;
}

/** A key is on one line. @param {string} key */
const keyOf = (key) => (isPlain(key) ? key : quoted(key));

/** @param {any} value @returns {boolean} */
const isBlock = (value) => typeof value === 'object' && value !== null && Object.keys(value).length > 0;

/** @param {any} value made of JSON @param {string} [indent] @returns {string} with a line break at its end */
export function yaml(value, indent = '') {
  if (!isBlock(value)) return `${indent}${scalar(value, indent)}\n`;
  if (Array.isArray(value)) {
    return value.map((one) => `${indent}- ${yaml(one, `${indent}  `).slice(indent.length + 2)}`).join('');
  }
  return Object.entries(value).map(([key, one]) => `${indent}${keyOf(key)}:${isBlock(one) ? `\n${yaml(one, `${indent}  `)}` : ` ${scalar(one, indent)}\n`}`).join('');
}
