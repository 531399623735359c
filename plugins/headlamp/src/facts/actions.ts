// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Chat } from './types';

/** What a person may do to a chat: a merge patch, and an icon of Material Design. */
export interface Action {
  name: 'Interrupt' | 'Suspend' | 'Resume';
  icon: string;
  patch: {
    spec?: { suspend: boolean };
    metadata?: { annotations: Record<string, string> };
  };
}

/**
 * The actions that a chat takes as it stands. The version of the history is the token of an interruption: to click
 * twice asks once.
 */
export function actions(chat: Chat): Action[] {
  const { phase, history } = chat.status ?? {};
  const taken: Action[] = [];
  if (phase === 'Running' || phase === 'RequiresAction') {
    const annotations = { 'parley.dev/interrupt': `headlamp-${history?.version ?? 0}` };
    taken.push({ name: 'Interrupt', icon: 'mdi:stop', patch: { metadata: { annotations } } });
  }
  taken.push(
    chat.spec?.suspend
      ? { name: 'Resume', icon: 'mdi:play', patch: { spec: { suspend: false } } }
      : { name: 'Suspend', icon: 'mdi:pause', patch: { spec: { suspend: true } } }
  );
  return taken;
}
