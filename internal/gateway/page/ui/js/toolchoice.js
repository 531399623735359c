// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Chooses tools by name. The fields have the names, and may have patterns and the tools of MCP servers, too.

import { el } from './dom.js';
import { TOOLS } from './tools.js';

/** What a field names, with commas or spaces between. @param {HTMLInputElement} field */
export const namesIn = (field) => field.value.split(/[\s,]+/).filter(Boolean);

/** @param {Object<string, HTMLInputElement>} fields by what they are for */
export function toolChoice(fields) {
  const boxes = Object.entries(fields).flatMap(([purpose, field]) => Object.keys(TOOLS).map((tool) => {
    const box = /** @type {HTMLInputElement} */ (el('input', { type: 'checkbox', 'aria-label': `${purpose}: ${tool}` }));
    box.addEventListener('change', () => {
      field.value = [...namesIn(field).filter((name) => name !== tool), ...(box.checked ? [tool] : [])].join(', ');
    });
    return { field, tool, box };
  }));
  const look = () => { for (const { field, tool, box } of boxes) box.checked = namesIn(field).includes(tool); };
  for (const field of Object.values(fields)) field.addEventListener('input', look);
  const row = ([tool, chats]) => el('tr', {}, el('th', { scope: 'row' }, tool),
    ...boxes.filter((one) => one.tool === tool).map(({ box }) => el('td', {}, box)), el('td', {}, chats));
  return el('details', {}, el('summary', {}, 'Choose tools by name'), el('table', { class: 'choice' },
    el('thead', {}, el('tr', {}, ...['Tool', ...Object.keys(fields), 'Offered to'].map((words) => el('th', { scope: 'col' }, words)))),
    el('tbody', {}, ...Object.entries(TOOLS).map(row))));
}
