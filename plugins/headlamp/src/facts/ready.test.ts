// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { chatNamed } from '../testdata';
import { ready, standing } from './ready';

describe('the label of a chat', () => {
  it.each([
    ['triage', 'RequiresAction', 'warning'],
    ['triage-logs', 'Retrying', ''],
    ['failed', 'AuthenticationFailed', 'error'],
    ['done', 'Answered', 'success'],
    ['new', 'Not seen yet', ''],
  ])('%s', (name, text, status) => {
    expect(ready(chatNamed(name))).toEqual({ text, status });
  });
  it('is yellow while a suspended chat has work', () => {
    const chat = chatNamed('triage-logs');
    expect(ready({ ...chat, spec: { ...chat.spec, suspend: true } }).status).toBe('warning');
  });
});

describe('where a chat stands', () => {
  it.each([
    ['triage', 'RequiresAction: 4 calls wait for people or a client'],
    ['failed', 'Error: openai refuses the API key'],
    ['done', 'Waiting, suspended, archived: the model has answered'],
    ['new', 'Not seen yet'],
  ])('%s', (name, text) => {
    expect(standing(chatNamed(name))).toBe(text);
  });
});
