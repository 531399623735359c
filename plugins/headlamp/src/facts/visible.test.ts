// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { exactly, visible } from './visible';

describe('a text that people decide by', () => {
  it.each([
    ['bidirectional formats', 'rm \u202efdp.', 'rm ⟨U+202E⟩fdp.'],
    ['control characters', 'a\u001b[2Jb\r\n', 'a⟨U+001B⟩[2Jb⟨U+000D⟩\n'],
    ['characters without width', 'a\u200bb\u{e0041}\ufe0f', 'a⟨U+200B⟩b⟨U+E0041⟩⟨U+FE0F⟩'],
    ['other spaces', 'a\u00a0b\u2800', 'a⟨U+00A0⟩b⟨U+2800⟩'],
    ['half a character', 'a\ud800', 'a⟨U+D800⟩'],
    ['a long run of spaces', `a${' '.repeat(33)}b`, `a${'⟨U+0020⟩'.repeat(33)}b`],
  ])('spells %s', (_, text, shown) => {
    expect(visible(text)).toBe(shown);
  });
  it('keeps what can be seen', () => {
    const text = `grüße\t世界 😀\n${' '.repeat(32)}x`;
    expect(visible(text)).toBe(text);
  });
});

describe('JSON that people decide by', () => {
  it.each([
    [
      'members in lines',
      '{"a":1,"b":[true,{}]}',
      '{\n  "a": 1,\n  "b": [\n    true,\n    {}\n  ]\n}',
    ],
    ['escapes', '{"a":"\\u202e\\"x"}', '{\n  "a": "\\u202e\\"x"\n}'],
    ['duplicate members', '{"a":1,"a":2}', '{\n  "a": 1,\n  "a": 2\n}'],
    ['all digits', '{"a":12345678901234567890}', '{\n  "a": 12345678901234567890\n}'],
    ['lines of a string', '{"a":"x\\ny\\n"}', '{\n  "a": "x\\n\n      y\\n"\n}'],
    ['what is no JSON', '{"cut off', '{\n  "cut off'],
  ])('has %s', (_, json, shown) => {
    expect(exactly(json)).toBe(shown);
  });
});
