// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { chatNamed } from '../testdata';
import { pending, waitsFor } from './waiting';

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
      ['call_2', 'k8s_delete', 'approval (proposes this)'],
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
  it('ask what people have to answer', () => {
    expect(calls.map(c => c.questions?.length)).toEqual([0, 1, undefined, undefined]);
  });
  it('show what cannot be seen', () => {
    const [call] = chatNamed('triage').status?.requiresAction?.toolCalls ?? [];
    const toolCalls = [{ ...call, input: '{"a":"\\u202e"}', proposal: '+ \u202e' }];
    const requiresAction = { message: 'm', deadline: '', toolCalls };
    const [shown] = pending({ metadata: { name: 'a' }, status: { requiresAction } });
    expect(shown.detail).toBe('{\n  "a": "\\u202e"\n}\n\n+ ⟨U+202E⟩');
  });
  it('show what the tool asks', () => {
    expect(calls[1].detail).toContain('Which ticket is it for?');
  });
});
