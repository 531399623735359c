// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// What a turn did, in one line.

import { outcome } from './call.js';
import { lasted, money, parsed } from './text.js';

/** How calls are counted: by tool, what was done, to one and to many. */
const KINDS = {
  edit_files: ['edited', 'file', 'files'], write_file: ['edited', 'file', 'files'],
  execute: ['ran', 'command', 'commands'], read_file: ['read', 'file', 'files'],
  search_files: ['searched', 'time', 'times'], web_search: ['searched', 'time', 'times'],
  spawn_agent: ['started', 'sub-chat', 'sub-chats'], advisor: ['asked for advice', 'time', 'times'],
  k8s_apply: ['applied', 'manifest', 'manifests'], k8s_delete: ['deleted', 'object', 'objects'],
  k8s_get: ['read', 'object', 'objects'], k8s_list: ['read', 'object', 'objects'],
  k8s_describe: ['read', 'object', 'objects'], k8s_logs: ['read', 'log', 'logs'],
};
const OTHER = ['made', 'call', 'calls'];

/** What a call did it to, where calls of the same are counted once. */
function targetsOf({ id, name, input }) {
  const given = parsed(input);
  if (name === 'edit_files') return (given?.edits ?? []).map?.((edit) => edit?.path) ?? [id];
  return [['write_file', 'read_file'].includes(name) ? given?.path ?? id : id];
}

/** The calls of messages, with how those ended that are not done. @param {any[]} messages */
function callsOf(messages) {
  const calls = [];
  for (const { parts, decisions } of messages) {
    for (const { toolCall, toolResult } of parts ?? []) {
      if (toolCall) calls.push({ toolCall, end: toolCall.refusal ? 'not run' : 'without a result' });
      const call = toolResult && calls.findLast((one) => one.toolCall.id === toolResult.id);
      if (!call || call.toolCall.refusal) continue;
      const end = outcome({ result: toolResult.output, isError: toolResult.isError, decision: decisions?.find(({ id }) => id === toolResult.id) });
      call.end = end === 'ok' ? '' : end;
    }
  }
  return calls;
}

/**
 * @param {any[]} folded the messages that are counted @param {any[]} replies all of the turn
 * @param {boolean} ended whether the turn is over
 */
export function workSummary(folded, replies, ended) {
  const counts = new Map();
  const ends = new Map();
  for (const { toolCall, end } of callsOf(folded)) {
    if (end) {
      ends.set(end, (ends.get(end) ?? 0) + 1);
      continue;
    }
    const kind = (Object.hasOwn(KINDS, toolCall.name) ? KINDS[toolCall.name] : OTHER).join();
    const targets = counts.get(kind) ?? new Set();
    for (const target of targetsOf(toolCall)) targets.add(target);
    counts.set(kind, targets);
  }
  const did = [...counts].map(([kind, { size }]) => {
    const [verb, one, many] = kind.split(',');
    return `${verb} ${size} ${size === 1 ? one : many}`;
  });
  if (folded.some((message) => message.role === 'System')) did.push('wrote a summary of the context');
  for (const [end, count] of ends) did.push(`${count} ${end}`);
  const words = did.join(', ') || `${folded.length} ${folded.length === 1 ? 'step' : 'steps'}`;
  const end = ended ? lasted(Date.parse(replies.at(-1)?.finishedAt) - Date.parse(replies[0]?.startedAt)) : '';
  return [words[0].toUpperCase() + words.slice(1), end, ...costOf(replies)].filter(Boolean).join(' · ');
}

/** What messages cost together. @param {any[]} messages @returns {string[]} by currency */
export function costOf(messages) {
  const sums = new Map();
  for (const { cost } of messages) if (cost) sums.set(cost.currency, (sums.get(cost.currency) ?? 0) + cost.microUnits);
  return [...sums].map(([currency, microUnits]) => money({ currency, microUnits }));
}
