// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

/** Characters that cannot be seen or that reorder others: controls, formats, spaces of all kinds. */
const hidden = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** A longer run could move the text after it out of view. */
const runs = / {33,}|\t{33,}|\n{33,}/g;

/** The text for people who decide about it: what cannot be seen is spelled, such as ⟨U+202E⟩. */
export function visible(text = ''): string {
  return text
    .replace(runs, run => Array.from(run, spelled).join(''))
    .replace(hidden, c => (' \t\n'.includes(c) ? c : spelled(c)));
}

function spelled(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
  return `⟨U+${code.padStart(4, '0')}⟩`;
}

/**
 * JSON in lines for people who decide about it: a line for each member, and one after each \n of a string. Nothing is
 * decoded or left out, as JSON.parse would: escapes, duplicate members and all digits stay.
 */
export function exactly(json = ''): string {
  let depth = 0;
  const line = (extra = 0) => `\n${'  '.repeat(Math.max(0, depth + extra))}`;
  const tokens = /"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}[\],:]|[^"{}[\],:]+/g;
  return visible(json).replace(tokens, token => {
    switch (token) {
      case '{':
      case '[':
        depth++;
        return token + line();
      case '}':
      case ']':
        depth--;
        return line() + token;
      case ',':
        return token + line();
      case ':':
        return ': ';
    }
    return token.replace(/\\(.)(?!"$)/g, (escape, kind) =>
      kind === 'n' ? escape + line(2) : escape
    );
  });
}
