// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// A form over the schema of an object. What nobody touches stays as it is, and what is left empty is not in the object.
// The API server checks the rest.

import { button, el } from './dom.js';
import { plain } from './text.js';

/** A part of the form. @typedef {{node: HTMLElement, read: () => any}} Part */

/** How long a text may be that has one line. */
const ONE_LINE = 2048;

/** "maxTokens" as people read it. @param {string} name */
const words = (name) => name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/^./, (first) => first.toUpperCase());

/** The first sentence of a description, for people who do not look for more. @param {string} [text] */
const brief = (text = '') => plain(text).replace(/\s+/g, ' ').split(/(?<=\.) /)[0];

let ids = 0;

/**
 * A field with its label and what it is for. A browser changes texts, such as their line breaks: what nobody has changed
 * is read as it was given. @param {string} label @param {any} schema @param {any} control @param {any} value
 * @param {(typed: string) => any} parse what was typed @returns {Part}
 */
function field(label, schema, control, value, parse) {
  const about = brief(schema.description);
  const id = `about-${++ids}`;
  if (about) control.setAttribute('aria-describedby', id);
  const given = control.value;
  return { node: el('div', { class: 'field' }, el('label', {}, label, control),
    about && el('p', { class: 'dim', id, title: plain(schema.description) }, about)),
  read: () => (control.value === given ? value : parse(control.value)) };
}

/** @param {any} schema @param {any} value @param {string} label @param {boolean} [required] @returns {Part} */
export function part(schema, value, label, required = false) {
  if (schema.type === 'object' && schema.properties) return object(schema, value, label);
  if (schema.type === 'array' && schema.items?.type !== 'string') return list(schema, value, label);
  if (schema.enum || schema.type === 'boolean') return choice(schema, value, label);
  if (schema.type === 'array') return lines(schema, value, label);
  if (schema.type === 'object') return json(schema, value, label);
  return text(schema, value, label, required);
}

/** The fields of an object, of which the required ones come first. @param {any} schema @param {any} value */
export function fields(schema, value) {
  const required = schema.required ?? [];
  const parts = Object.entries(schema.properties).sort(([a], [b]) => required.includes(b) - required.includes(a)).map(([name, of]) => {
    const must = required.includes(name);
    return { name, ...part(of, value?.[name], `${words(name)}${must ? ' (required)' : ''}`, must) };
  });
  const read = () => {
    const all = parts.map((one) => [one.name, one.read()]).filter(([, found]) => found !== undefined);
    return all.length ? Object.fromEntries(all) : undefined;
  };
  return { nodes: parts.map((one) => one.node), read };
}

/** An object is open if it has something, and has no fields before it is. @returns {Part} */
function object(schema, value, label) {
  const node = /** @type {HTMLDetailsElement} */ (el('details', { class: 'field' }, el('summary', {}, label), el('p', { class: 'dim' }, brief(schema.description))));
  let inside = null;
  const build = () => {
    if (inside) return;
    inside = fields(schema, value);
    node.append(...inside.nodes);
  };
  node.addEventListener('toggle', build);
  node.open = value !== undefined;
  if (node.open) build();
  // An empty object may mean something, such as a list of servers without any.
  return { node, read: () => (inside ? inside.read() ?? (value && Object.keys(value).length === 0 ? value : undefined) : value) };
}

/** @returns {Part} */
function list(schema, value, label) {
  /** @type {Set<Part>} */
  const items = new Set();
  const rows = el('div');
  let number = 0;
  const add = (item) => {
    const name = `${label} ${++number}`;
    const one = part(schema.items, item, name);
    items.add(one);
    const row = el('div', { class: 'item' }, one.node, button('Remove', () => { items.delete(one); row.remove(); more.focus(); },
      { class: 'quiet', 'aria-label': `Remove ${name}` }));
    rows.append(row);
  };
  for (const item of value ?? []) add(item);
  const more = button(`Add to ${label.toLowerCase()}`, () => add(schema.items?.type === 'object' ? {} : undefined), { class: 'quiet' });
  const node = el('fieldset', { class: 'field' }, el('legend', {}, label), el('p', { class: 'dim' }, brief(schema.description)), rows, more);
  const read = () => {
    const all = [...items].map((one) => one.read()).filter((found) => found !== undefined);
    return all.length || value?.length === 0 ? all : undefined;
  };
  return { node, read };
}

/** @returns {Part} */
function choice(schema, value, label) {
  const values = [...schema.enum ?? [true, false]];
  if (value !== undefined && !values.includes(value)) values.push(value); // The API server keeps what it once allowed.
  const control = el('select', {}, el('option', { value: '' }, schema.default === undefined ? 'not set' : `default: ${schema.default}`),
    ...values.map((one, i) => el('option', { value: i, selected: one === value }, plain(String(one)))));
  return field(label, schema, control, value, (typed) => (typed === '' ? undefined : values[Number(typed)]));
}

/** Texts, one a line. @returns {Part} */
function lines(schema, value, label) {
  // A line is neither empty nor has it spaces around it.
  if (value?.some((one) => one !== one.trim() || one === '' || /[\r\n]/.test(one))) return json(schema, value, label);
  const control = /** @type {HTMLTextAreaElement} */ (el('textarea', { rows: Math.min(8, (value?.length ?? 0) + 1) }));
  control.value = (value ?? []).join('\n');
  return field(`${label}, one a line`, schema, control, value, (typed) => {
    const all = typed.split('\n').map((line) => line.trim()).filter(Boolean);
    return all.length ? all : undefined;
  });
}

/** What has no fields of its own. @returns {Part} */
function json(schema, value, label) {
  const control = /** @type {HTMLTextAreaElement} */ (el('textarea', { rows: 4, spellcheck: 'false' }));
  control.value = value === undefined ? '' : JSON.stringify(value, null, 2);
  return field(`${label}, as JSON`, schema, control, value, (typed) => {
    if (!typed.trim()) return undefined;
    try {
      return JSON.parse(typed);
    } catch (no) {
      throw new Error(`${label} is no JSON: ${no.message}`);
    }
  });
}

/** A text or a number. One that is no number is sent as it is: the API server says what is wrong. @returns {Part} */
function text(schema, value, label, required) {
  const long = schema.type === 'string' && (schema.maxLength > ONE_LINE || String(value ?? '').includes('\n'));
  const control = /** @type {HTMLInputElement} */ (long ? el('textarea', { rows: 4 }) : el('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' }));
  if (schema.default !== undefined) control.placeholder = `default: ${schema.default}`;
  // A required text that may be empty is there.
  const empty = required && schema.type === 'string' && !schema.minLength && schema.default === undefined ? '' : undefined;
  control.value = value === undefined ? '' : String(value);
  return field(label, schema, control, value ?? empty, (typed) => {
    if (typed === '') return empty;
    const numeric = schema.type === 'integer' || schema.type === 'number' || typeof value === 'number';
    return numeric && typed.trim() !== '' && Number.isFinite(Number(typed)) ? Number(typed) : typed;
  });
}
