// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// A form over the schema of an object. What is left empty is not in the object. The API server checks the rest.

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

/** A label with its control and what the field is for. @param {string} label @param {any} schema @param {HTMLElement} control */
function labelled(label, schema, control) {
  const about = brief(schema.description);
  const id = `about-${++ids}`;
  if (about) control.setAttribute('aria-describedby', id);
  return el('div', { class: 'field' }, el('label', {}, label, control),
    about && el('p', { class: 'dim', id, title: plain(schema.description) }, about));
}

/** @param {any} schema @param {any} value @param {string} label @returns {Part} */
export function part(schema, value, label) {
  if (schema.type === 'object' && schema.properties) return object(schema, value, label);
  if (schema.type === 'array' && schema.items?.type !== 'string') return list(schema, value, label);
  if (schema.enum || schema.type === 'boolean') return choice(schema, value, label);
  if (schema.type === 'array') return lines(schema, value, label);
  if (schema.type === 'object') return json(schema, value, label);
  return text(schema, value, label);
}

/** The fields of an object, of which the required ones come first. @param {any} schema @param {any} value */
export function fields(schema, value) {
  const required = schema.required ?? [];
  const parts = Object.entries(schema.properties).sort(([a], [b]) => required.includes(b) - required.includes(a))
    .map(([name, of]) => ({ name, ...part(of, value?.[name], `${words(name)}${required.includes(name) ? ' (required)' : ''}`) }));
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
  const add = (item) => {
    const one = part(schema.items, item, `${label} ${items.size + 1}`);
    items.add(one);
    const row = el('div', { class: 'item' }, one.node, button('Remove', () => { items.delete(one); row.remove(); }, { class: 'quiet' }));
    rows.append(row);
  };
  for (const item of value ?? []) add(item);
  const node = el('fieldset', { class: 'field' }, el('legend', {}, label), el('p', { class: 'dim' }, brief(schema.description)), rows,
    button(`Add to ${label.toLowerCase()}`, () => add(schema.items?.type === 'object' ? {} : undefined), { class: 'quiet' }));
  const read = () => {
    const all = [...items].map((one) => one.read()).filter((found) => found !== undefined);
    return all.length || value?.length === 0 ? all : undefined;
  };
  return { node, read };
}

/** @returns {Part} */
function choice(schema, value, label) {
  const values = schema.enum ?? [true, false];
  const control = /** @type {HTMLSelectElement} */ (el('select', {}, el('option', { value: '' }, schema.default === undefined ? 'not set' : `default: ${schema.default}`),
    ...values.map((one, i) => el('option', { value: i, selected: one === value }, String(one)))));
  return { node: labelled(label, schema, control), read: () => (control.value === '' ? undefined : values[Number(control.value)]) };
}

/** Texts, one a line. @returns {Part} */
function lines(schema, value, label) {
  const control = /** @type {HTMLTextAreaElement} */ (el('textarea', { rows: Math.min(8, (value?.length ?? 0) + 1) }));
  // A text of several lines would be taken for several texts.
  if (value?.some((one) => one.includes('\n'))) return json(schema, value, label);
  control.value = (value ?? []).join('\n');
  const read = () => {
    const all = control.value.split('\n').map((line) => line.trim()).filter(Boolean);
    return all.length || value?.length === 0 ? all : undefined;
  };
  return { node: labelled(`${label}, one a line`, schema, control), read };
}

/** What has no fields of its own. @returns {Part} */
function json(schema, value, label) {
  const control = /** @type {HTMLTextAreaElement} */ (el('textarea', { rows: 4, spellcheck: 'false' }));
  control.value = value === undefined ? '' : JSON.stringify(value, null, 2);
  const read = () => {
    if (!control.value.trim()) return undefined;
    try {
      return JSON.parse(control.value);
    } catch (no) {
      throw new Error(`${label} is no JSON: ${no.message}`);
    }
  };
  return { node: labelled(`${label}, as JSON`, schema, control), read };
}

/** A text or a number. One that is no number is sent as it is: the API server says what is wrong. @returns {Part} */
function text(schema, value, label) {
  const long = schema.type === 'string' && (schema.maxLength > ONE_LINE || String(value ?? '').includes('\n'));
  const control = /** @type {HTMLInputElement} */ (long ? el('textarea', { rows: 4 }) : el('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' }));
  if (schema.default !== undefined) control.placeholder = `default: ${schema.default}`;
  control.value = value === undefined ? '' : String(value);
  const read = () => {
    const given = control.value;
    if (given === '') return undefined;
    const numeric = schema.type === 'integer' || schema.type === 'number' || typeof value === 'number';
    return numeric && given.trim() !== '' && Number.isFinite(Number(given)) ? Number(given) : given;
  };
  return { node: labelled(label, schema, control), read };
}
