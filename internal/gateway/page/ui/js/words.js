// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What the phases and reasons of docs/reference/status.md and docs/reference/chat.md mean, in a few words.

import { clipped } from './text.js';

const REASONS = {
  AwaitingFirstMessage: 'waits for a first message', Beginning: 'begins', Answered: 'answered', Generating: 'writes',
  ExecutingTools: 'runs tools', Retrying: 'tries again', Compacting: 'writes a summary', WaitingForPod: 'waits for a pod',
  Interrupting: 'stops', RequiresAction: 'waits for you', Interrupted: 'interrupted', Suspended: 'suspended',
  WaitingForCapacity: 'waits for capacity', WaitingForModel: 'waits for the model',
  BudgetReached: 'has reached its budget', ModelPriceMissing: 'waits for a price',
  WaitingForSubChats: 'waits for sub-chats', WaitingForEdit: 'waits for an edit', ForkFilesNotCopied: 'waits for files',
  WaitingForWorkspace: 'waits for its workspace', WaitingForMCPServers: 'waits for MCP servers', Archived: 'archived',
  Archiving: 'is being archived', StoppedAfterTool: 'ended with a tool', MaxStepsReached: 'ended after its last step',
  MaxTokensReached: 'has a reply that was cut', Refused: 'was refused an answer',
  Restoring: 'is being restored',
};

export const SIGNED_OUT = 'You are signed out.';

/** @param {number} count */
export const callsWait = (count) => (count === 1 ? 'A call waits for you' : `${count} calls wait for you`);

/** @param {{phase?: string, reason?: string}} chat */
export function standing(chat) {
  return REASONS[chat.reason] ?? clipped(chat.reason ?? chat.phase ?? 'new', 60);
}

/** How a chat is marked: 'act' waits for people, 'bad' has failed, 'work', 'wait' or 'rest'. */
export function mark(chat) {
  if (chat.reason === 'Restoring' || chat.reason === 'WaitingForEdit') return 'wait';
  if (chat.phase === 'RequiresAction') return 'act';
  if (chat.phase === 'Error' || chat.ready === 'False') return 'bad';
  if (chat.phase === 'Running' || chat.phase === 'Interrupting') {
    return String(chat.reason).startsWith('Waiting') || chat.reason === 'Retrying' ? 'wait' : 'work';
  }
  return 'rest';
}
