// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Light, dark, or as the system has it.

import { byId } from './dom.js';

const KEY = 'parley.theme';
const THEMES = ['system', 'light', 'dark'];

function stored() {
  try {
    return localStorage.getItem(KEY) ?? 'system';
  } catch {
    return 'system';
  }
}

function apply(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = `Theme: ${theme}`;
}

export function themes() {
  apply(stored());
  byId('theme').addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    apply(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // It counts no longer than this page.
    }
  });
}
