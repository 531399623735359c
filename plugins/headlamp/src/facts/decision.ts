// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Chat, Condition, PendingCall } from './types';

/** What a person decides. The comment is for the record; the model reads that of a denial. */
export interface Decision {
  decision: 'Approve' | 'Deny';
  comment?: string;
  /** The answer to a call that asks people: a JSON object. */
  content?: string;
}

/** The ToolApproval of a decision about the call as it is shown: the operator refuses it if the call has changed. */
export function toolApproval(chat: Chat, call: PendingCall, decision: Decision) {
  const { name, namespace } = chat.metadata;
  return {
    apiVersion: 'parley.dev/v1beta1',
    kind: 'ToolApproval',
    metadata: { namespace, generateName: `${name}-` },
    spec: { chatRef: { name }, toolCallID: call.id, digest: call.digest, ...decision },
  };
}

/** Whether the texts that are shown of a call are all that its digest covers. */
export async function isWhole(call: PendingCall): Promise<boolean> {
  return call.digest !== undefined && call.digest === (await digest(call));
}

/** The digest of a call, as CallDigest of api/v1beta1 computes it. Browsers do so for https and localhost only. */
export async function digest({ name, input, inputRequests, proposal }: PendingCall) {
  const encode = (text: string) => new TextEncoder().encode(text);
  const fields = [name, input, inputRequests, proposal].map(
    (text = '') => `${encode(text).length}:${text},`
  );
  const sum = await crypto.subtle.digest('SHA-256', encode(fields.join('')));
  const digits = Array.from(new Uint8Array(sum), byte => byte.toString(16).padStart(2, '0'));
  return `sha256:${digits.join('')}`;
}

/** What became of a ToolApproval. */
export function outcome(approval?: { status?: { conditions?: Condition[] } }): string {
  const ready = approval?.status?.conditions?.find(c => c.type === 'Ready');
  return ready ? `${ready.reason}: ${ready.message}` : 'not applied yet';
}
