// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Searches the pages that contain all words, in the index that hugo writes. Pages with a word in their title come first.
const base = new URL('.', document.currentScript.src);
const field = document.getElementById('search');
const results = document.getElementById('results');
let pages;

function item(page, words) {
  const entry = document.createElement('li');
  const link = document.createElement('a');
  link.href = new URL(page.path, base);
  link.textContent = page.title;
  const around = document.createElement('small');
  const at = Math.max(0, page.lower.indexOf(words[0]) - 60);
  around.textContent = page.text.slice(at, at + 180);
  entry.append(link, around);
  return entry;
}

field.addEventListener('input', async () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  pages ??= fetch(new URL('index.json', base)).then((answer) => answer.json()).then((all) => all.map((page) => ({
    ...page, path: page.url.replace(/^\//, ''), lower: page.text.toLowerCase(), name: page.title.toLowerCase(),
  })));
  const all = await pages;
  const named = (page) => words.filter((word) => page.name.includes(word)).length;
  const found = all.filter((page) => words.every((word) => page.lower.includes(word) || page.name.includes(word)));
  found.sort((a, b) => named(b) - named(a));
  results.replaceChildren(...found.slice(0, 12).map((page) => item(page, words)));
  results.hidden = words.length === 0 || found.length === 0;
});
