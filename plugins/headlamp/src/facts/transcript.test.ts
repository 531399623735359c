// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { messageNamed } from '../testdata';
import { beginning, folded, heading, pieces, pretty } from './transcript';

describe('the heading of a message', () => {
  it.each([
    ['triage-prompt', 'User'],
    ['triage-s1', 'Assistant · claude-sonnet-5 · 0.0042 USD'],
    ['triage-s2', 'Tool'],
  ])('%s', (name, text) => {
    expect(heading(messageNamed(name))).toBe(text);
  });
  it('of a summary says what it is', () => {
    const spec = { chatRef: { name: 'a' }, role: 'System', generation: { action: 'Compact' } };
    expect(heading({ metadata: { name: 'a' }, spec })).toBe('System · summary of what came before');
  });
});

describe('the pieces of a message', () => {
  it.each([
    ['triage-prompt', ['text: Why does node-7 not get ready? <b>Now</b>']],
    ['triage-s2', ['failure:Error of call_1: k8s_get nodes is forbidden']],
    ['triage-picture', ['text: See the dashboard.', 'file:File dashboard.png, image/png']],
    ['triage-hook', ['hidden:For the model alone ']],
  ])('%s', (name, said) => {
    expect(pieces(messageNamed(name)).map(p => `${p.kind}:${p.heading} ${p.text}`)).toEqual(said);
  });
  it('of a reply are in its order, warnings last', () => {
    const kinds = pieces(messageNamed('triage-s3')).map(p => p.kind);
    expect(kinds).toEqual(['text', 'source', 'source', 'call', 'warning']);
  });
  it('of a conversation that was led elsewhere are counted', () => {
    const spec = { chatRef: { name: 'a' }, history: [{}, {}] };
    const [said] = pieces({ metadata: { name: 'a' }, spec });
    expect(said.heading).toBe('2 messages of a conversation that was led elsewhere');
  });
});

describe('a text is folded', () => {
  it.each([
    ['not while it is short', 'short', undefined],
    ['not at the limit', 'x'.repeat(folded.characters), undefined],
    ['with a character too many', 'x'.repeat(folded.characters + 1), 'x'.repeat(folded.characters)],
    [
      'with a line too many',
      Array(folded.lines + 1)
        .fill('l')
        .join('\n'),
      Array(folded.lines).fill('l').join('\n'),
    ],
  ])('%s', (_, text, shown) => {
    expect(beginning(text)).toBe(shown);
  });
});

describe('arguments', () => {
  it.each([
    ['{"a":1}', '{\n  "a": 1\n}'],
    ['{"cut off', '{"cut off'],
    ['', ''],
  ])('%s', (json, text) => {
    expect(pretty(json)).toBe(text);
  });
});
