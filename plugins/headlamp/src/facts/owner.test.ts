// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { chatOf } from './owner';

const apiVersion = 'parley.dev/v1beta1';
const chatRef = { name: 'triage' };

it.each([
  [
    'of a ChatMessage is in its spec',
    { apiVersion, kind: 'ChatMessage', spec: { chatRef } },
    'triage',
  ],
  [
    'of a ChatDebugStep is beside its kind',
    { apiVersion, kind: 'ChatDebugStep', chatRef },
    'triage',
  ],
  ['of a ChatModelConfig is none', { apiVersion, kind: 'ChatModelConfig', spec: {} }, undefined],
  [
    'of another API is none',
    { apiVersion: 'other.dev/v1', kind: 'Workspace', spec: { chatRef } },
    undefined,
  ],
  ['of no object is none', undefined, undefined],
])('the chat %s', (_, object, chat) => {
  expect(chatOf(object)).toBe(chat);
});
