// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { chatNamed } from '../testdata';
import { pending, pretty, waitsFor } from './waiting';

describe('for whom a chat waits', () => {
  it.each([
    ['triage', '1 approval, 1 answer, 1 client result, 1 sub-chat'],
    ['failed', ''],
    ['new', ''],
  ])('%s', (name, text) => {
    expect(waitsFor(chatNamed(name))).toBe(text);
  });
  it('counts a sub-chat once that two calls wait for', () => {
    const [call] = chatNamed('triage').status?.turn?.waitingFor ?? [];
    const two = [call, { ...call, id: 'call_9' }];
    expect(waitsFor({ metadata: { name: 'a' }, status: { turn: { waitingFor: two } } })).toBe(
      '1 sub-chat'
    );
  });
});

describe('the calls that wait', () => {
  const calls = pending(chatNamed('triage'));
  it('say what each needs', () => {
    expect(calls.map(c => [c.id, c.tool, c.needs])).toEqual([
      ['call_2', 'k8s_delete', 'approval'],
      ['call_3', 'open_ticket', 'answer'],
      ['call_4', 'page_on_call', 'client result'],
      ['call_6', 'execute', 'approved (ToolApproval triage-a1)'],
    ]);
  });
  it('show the arguments and what the call would do', () => {
    expect(calls[0].detail).toBe(
      '{\n  "kind": "Pod",\n  "name": "cni-x2"\n}\n\n- Pod kube-system/cni-x2'
    );
  });
  it('show what the tool asks', () => {
    expect(calls[1].detail).toContain('Which ticket is it for?');
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
