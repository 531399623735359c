// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

/** Objects of parley.dev/v1beta1, as far as they are shown. The API server has checked them. */

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
}

export interface Metadata {
  name: string;
  namespace?: string;
  uid?: string;
  creationTimestamp?: string;
}

/** Money in millionths of the currency. */
export interface Cost {
  currency: string;
  microUnits: number;
}

export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  totalTokens?: number;
}

export interface PendingCall {
  id: string;
  name: string;
  kind: string;
  input?: string;
  digest?: string;
  approvalCause?: string;
  inputRequests?: string;
  proposal?: string;
  decision?: { decision: string; approval: string; by?: string; at?: string };
}

export interface Failure {
  reason: string;
  message?: string;
  advice?: string;
}

export interface ChatStatus {
  phase?: string;
  title?: string;
  archived?: boolean;
  model?: string;
  lastReply?: string;
  chatClass?: { name: string };
  history?: { version?: number; head?: string; length?: number; contextStart?: number };
  turn?: {
    modelConfig?: string;
    result?: string;
    summary?: string;
    waitingFor?: { id: string; chat: string; deadline?: string }[];
  };
  queue?: { name: string; interrupts?: boolean }[];
  generation?: { action: string; attempt: number; pod: string; modelConfig: string };
  retry?: Failure & { attempt: number; at: string };
  context?: { tokens?: number; limit?: number; compacted?: boolean };
  requiresAction?: { message: string; deadline: string; toolCalls?: PendingCall[] };
  lastError?: Failure;
  usage?: Usage;
  cost?: Cost[];
  conditions?: Condition[];
}

export interface Chat {
  metadata: Metadata;
  spec?: {
    suspend?: boolean;
    archived?: boolean;
    parentRef?: { name: string };
    modelConfigRef?: { name: string };
  };
  status?: ChatStatus;
}

export interface Part {
  type: string;
  text?: string;
  toolCall?: { id: string; name: string; input?: string };
  toolResult?: { id: string; name?: string; output?: string; isError?: boolean };
  source?: { url?: string; title?: string };
  file?: { name?: string; mediaType?: string };
}

export interface ChatMessage {
  metadata: Metadata;
  spec: {
    chatRef: { name: string };
    role?: string;
    content?: string;
    parts?: Part[];
    history?: unknown[];
    visibility?: string;
    parent?: string;
    index?: number;
    generation?: { action?: string; warnings?: string[]; cost?: Cost; model?: { name?: string } };
  };
  status?: { parent?: string; index?: number; state?: string };
}
