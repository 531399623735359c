// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { chatNamed } from '../testdata';
import { contextFill, tokens } from './usage';

describe('tokens', () => {
  it('stand by kind', () => {
    const text = '3340 (900 input, 2000 cache read, 200 cache write, 240 output)';
    expect(tokens(chatNamed('triage').status?.usage)).toBe(text);
  });
  it('are empty before the first reply', () => {
    expect(tokens(chatNamed('new').status?.usage)).toBe('');
  });
});

describe('how full the context is', () => {
  it.each([
    ['triage', '3100 of 200000 tokens (1 %)'],
    ['done', '40 tokens, limit not known'],
    ['new', ''],
  ])('%s', (name, text) => {
    expect(contextFill(chatNamed(name).status?.context)).toBe(text);
  });
  it('says that the context begins with a summary', () => {
    const text = '90 of 100 tokens (90 %), begins with a summary';
    expect(contextFill({ tokens: 90, limit: 100, compacted: true })).toBe(text);
  });
});
