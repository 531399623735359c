// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Question, questions } from './question';
import { Chat, PendingCall } from './types';
import { exactly, visible } from './visible';

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

/** Why a call needs approval that no policy asks for. */
const causes: Record<string, string> = {
  ToolChanged: 'the tool has changed',
  PlanMode: 'mode Plan',
  PlanProposed: 'proposes a plan',
  ReviewRequired: 'proposes this',
};

/** One call that waits, all of it in texts that can be shown. */
export interface Waiting {
  call: PendingCall;
  id: string;
  tool: string;
  needs: string;
  /** All that is asked, or that the call would do. */
  detail: string;
  /** What it asks people: none if it needs approval only, undefined if no one can decide about it here. */
  questions?: Question[];
}

/** The calls that wait, in the order of the reply. A call that was decided says by whom, when, and by which ToolApproval. */
export function pending(chat: Chat): Waiting[] {
  return (chat.status?.requiresAction?.toolCalls ?? []).map(call => {
    const cause = causes[call.approvalCause ?? ''];
    const needed = need(call);
    return {
      call,
      id: visible(call.id),
      tool: visible(call.name),
      needs: needed ? needed + (cause ? ` (${cause})` : '') : decided(call),
      detail: [exactly(call.input), exactly(call.inputRequests), visible(call.proposal)]
        .filter(Boolean)
        .join('\n\n'),
      questions: needed && call.kind === 'Approval' ? questions(call.inputRequests) : undefined,
    };
  });
}

function decided(call: PendingCall): string {
  const decision = call.decision;
  const verdict = decision?.decision === 'Approve' ? 'approved' : 'denied';
  const who = decision?.by ? ` by ${decision.by}` : '';
  const when = decision?.at ? ` at ${decision.at}` : '';
  return `${verdict}${who}${when} (ToolApproval ${decision?.approval})`;
}
