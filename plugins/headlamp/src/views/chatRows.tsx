// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { StatusLabel } from '@kinvolk/headlamp-plugin/lib/components/common';
import { ReactNode } from 'react';
import { costs } from '../facts/money';
import { ready, standing } from '../facts/ready';
import { contextFill, tokens } from '../facts/usage';
import { waitsFor } from '../facts/waiting';
import { Chat } from '../resources';
import { FoldedText } from './FoldedText';
import { ChatLink, ResourceLink } from './links';

/** The rows of a chat above its sections; a row without a value is hidden. */
export function chatRows(item: Chat) {
  const { spec = {}, status = {} } = item.chat;
  const { text, status: colour } = ready(item.chat);
  const at = { namespace: item.metadata.namespace, cluster: item.cluster };
  const config =
    status.generation?.modelConfig ?? status.turn?.modelConfig ?? spec.modelConfigRef?.name;
  const rows: [string, ReactNode][] = [
    ['Ready', <StatusLabel status={colour}>{text}</StatusLabel>],
    ['Phase', standing(item.chat)],
    ['Error', status.lastError && failure(status.lastError)],
    [
      'Retry',
      status.retry &&
        `after attempt ${status.retry.attempt}, at ${status.retry.at}: ${failure(status.retry)}`,
    ],
    ['Waits for', waitsFor(item.chat)],
    ['Waits until', status.requiresAction?.deadline],
    ['Title', status.title],
    ['Turn', [status.turn?.result, status.turn?.summary].filter(Boolean).join(': ')],
    ['Newest reply', status.lastReply && <FoldedText text={status.lastReply} />],
    ['Model', status.model],
    ['ChatModelConfig', config && <ResourceLink plural="chatmodelconfigs" name={config} {...at} />],
    [
      'ChatClass',
      status.chatClass && (
        <ResourceLink plural="chatclasses" name={status.chatClass.name} {...at} />
      ),
    ],
    ['Parent', spec.parentRef && <ChatLink name={spec.parentRef.name} {...at} />],
    [
      'Generation pod',
      status.generation && `${status.generation.pod}, attempt ${status.generation.attempt}`,
    ],
    ['Messages', String(status.history?.length ?? 0)],
    ['Context', contextFill(status.context)],
    ['Tokens', tokens(status.usage)],
    ['Cost', costs(status.cost)],
  ];
  return rows.map(([name, value]) => ({ name, value, hide: !value }));
}

/** What went wrong, and what to do about it. */
function failure(error: { reason: string; message?: string; advice?: string }): string {
  return `${error.reason}: ${[error.message, error.advice].filter(Boolean).join(' — ')}`;
}
