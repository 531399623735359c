// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Chat, PendingCall } from './types';

type Need = 'approval' | 'answer' | 'client result' | '';

/** What a call needs: approval or an answer of a person, or a client's result; nothing once it was decided. */
export function need(call: PendingCall): Need {
  if (call.kind === 'Client') {
    return 'client result';
  }
  if (call.decision) {
    return '';
  }
  return call.approvalCause === 'InputRequired' ? 'answer' : 'approval';
}

/** How many calls wait for whom, as the column WAITS FOR of kubectl chat ls; then how many sub-chats are waited for. */
export function waitsFor(chat: Chat): string {
  const needs = (chat.status?.requiresAction?.toolCalls ?? []).map(need);
  const said = (['approval', 'answer', 'client result'] as const).map(what =>
    counted(needs.filter(n => n === what).length, what)
  );
  const chats = new Set((chat.status?.turn?.waitingFor ?? []).map(call => call.chat));
  return [...said, counted(chats.size, 'sub-chat')].filter(Boolean).join(', ');
}

function counted(n: number, what: string): string {
  return n === 0 ? '' : `${n} ${what}${n === 1 ? '' : 's'}`;
}

/** One call that waits: what it needs, and the text that says what is asked or what it would do. */
export interface Waiting {
  id: string;
  tool: string;
  needs: string;
  detail: string;
}

/** The calls that wait, in the order of the reply. A call that was decided says by whom, when, and by which ToolApproval. */
export function pending(chat: Chat): Waiting[] {
  return (chat.status?.requiresAction?.toolCalls ?? []).map(call => ({
    id: call.id,
    tool: call.name,
    needs: need(call) || decided(call),
    detail: [pretty(call.input), pretty(call.inputRequests), call.proposal]
      .filter(Boolean)
      .join('\n\n'),
  }));
}

function decided(call: PendingCall): string {
  const decision = call.decision;
  const verdict = decision?.decision === 'Approve' ? 'approved' : 'denied';
  const who = decision?.by ? ` by ${decision.by}` : '';
  const when = decision?.at ? ` at ${decision.at}` : '';
  return `${verdict}${who}${when} (ToolApproval ${decision?.approval})`;
}

/** JSON with indents for people. What is no JSON stays as it is. */
export function pretty(json = ''): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
