// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { ChatStatus, Usage } from './types';

/** Tokens of all committed messages by kind, in the words of the fields; empty while there are none. */
export function tokens(usage: Usage = {}): string {
  if (!usage.totalTokens) {
    return '';
  }
  const kinds: [number | undefined, string][] = [
    [usage.inputTokens, 'input'],
    [usage.cacheReadTokens, 'cache read'],
    [usage.cacheWriteTokens, 'cache write'],
    [usage.outputTokens, 'output'],
  ];
  const said = kinds.filter(([n]) => n).map(([n, kind]) => `${n} ${kind}`);
  return `${usage.totalTokens} (${said.join(', ')})`;
}

/** How full the model's context was at the newest reply; in percent, rounded down, if the limit is known. */
export function contextFill(context: ChatStatus['context']): string {
  if (!context) {
    return '';
  }
  const used = context.tokens ?? 0;
  const of = context.limit
    ? `${used} of ${context.limit} tokens (${Math.floor((100 * used) / context.limit)} %)`
    : `${used} tokens, limit not known`;
  return context.compacted ? `${of}, begins with a summary` : of;
}
