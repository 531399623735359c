// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { chatNamed } from '../testdata';
import { digest, isWhole, outcome, toolApproval } from './decision';

const triage = chatNamed('triage');
const calls = triage.status?.requiresAction?.toolCalls ?? [];

describe('the digest of a call', () => {
  it('is that of the API', async () => {
    const call = { id: '1', name: 'current_time', kind: 'Approval', input: '{"timezone":"UTC"}' };
    expect(await digest(call)).toBe(
      'sha256:03dbd3c7492b10c0aaeab4da520e37d4d107c106fd5e1004ade01eea7933c3c4'
    );
  });
  it('counts bytes of UTF-8', async () => {
    const call = { id: '1', name: 'ü', kind: 'Approval' };
    expect(await digest(call)).toBe(
      'sha256:6260e4d89fcc3f916c8226b710fa39434694e8d0e3aebe0d53b396fdc5efbb25'
    );
  });
});

it.each([
  ['all that it covers', calls[0], true],
  ['the questions', calls[1], true],
  ['other arguments', { ...calls[0], input: '{}' }, false],
  ['a call without a digest', { ...calls[0], digest: undefined }, false],
])('fits what is shown: %s', async (_, call, whole) => {
  expect(await isWhole(call)).toBe(whole);
});

it('names the chat, the call and what was shown', () => {
  expect(toolApproval(triage, calls[0], { decision: 'Deny', comment: 'Not now' })).toEqual({
    apiVersion: 'parley.dev/v1beta1',
    kind: 'ToolApproval',
    metadata: { namespace: 'demo', generateName: 'triage-' },
    spec: {
      chatRef: { name: 'triage' },
      toolCallID: 'call_2',
      decision: 'Deny',
      digest: calls[0].digest,
      comment: 'Not now',
    },
  });
});

it('says what became of a ToolApproval', () => {
  const message = 'Decision applied';
  const conditions = [{ type: 'Ready', status: 'True' as const, reason: 'Applied', message }];
  expect(outcome({ status: { conditions } })).toBe('Applied: Decision applied');
  expect(outcome({ status: {} })).toBe('not applied yet');
});
