// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Chat } from './types';

/** A label as Headlamp colours it: green, yellow, red, or without colour. */
export interface Label {
  text: string;
  status: 'success' | 'warning' | 'error' | '';
}

/** Whether a chat is Ready and why, as kubectl's columns have it. Yellow is what waits for people or is held. */
export function ready(chat: Chat): Label {
  const condition = chat.status?.conditions?.find(c => c.type === 'Ready');
  if (!condition) {
    return { text: 'Not seen yet', status: '' };
  }
  return { text: condition.reason || condition.status, status: colour(chat, condition.status) };
}

function colour(chat: Chat, status: string): Label['status'] {
  switch (status) {
    case 'True':
      return 'success';
    case 'False':
      return 'error';
  }
  return chat.status?.phase === 'RequiresAction' || chat.spec?.suspend ? 'warning' : '';
}

/** Where a chat stands and why, in a line for people. */
export function standing(chat: Chat): string {
  const status = chat.status ?? {};
  const why = status.conditions?.find(c => c.type === 'Ready')?.message ?? '';
  const held = [chat.spec?.suspend ? 'suspended' : '', status.archived ? 'archived' : ''];
  const said = [status.phase ?? 'Not seen yet', ...held].filter(Boolean).join(', ');
  return why ? `${said}: ${why}` : said;
}
