// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { money } from './money';
import { ChatMessage, Part } from './types';

/** One piece of a message. Texts are what others wrote: show them as text. */
export interface Piece {
  kind:
    | 'text'
    | 'reasoning'
    | 'call'
    | 'result'
    | 'failure'
    | 'source'
    | 'file'
    | 'warning'
    | 'hidden';
  heading: string;
  text: string;
  /** The address of a source; follow it only if webAddress lets it. */
  url?: string;
}

/** Who speaks, with the model and the cost of a reply. */
export function heading(message: ChatMessage): string {
  const generation = message.spec.generation;
  return [
    message.spec.role ?? 'User',
    generation?.action === 'Compact' ? 'summary of what came before' : '',
    generation?.model?.name ?? '',
    generation?.cost ? money(generation.cost) : '',
  ]
    .filter(Boolean)
    .join(' · ');
}

/** The pieces of a message in its order. The text of one that is for the model alone is left out. */
export function pieces(message: ChatMessage): Piece[] {
  const { spec } = message;
  if (spec.visibility === 'Model') {
    return [{ kind: 'hidden', heading: 'For the model alone', text: '' }];
  }
  const said = (spec.parts ?? []).map(piece);
  if (spec.content) {
    said.unshift({ kind: 'text', heading: '', text: spec.content });
  }
  if (spec.history) {
    const text = `${spec.history.length} messages of a conversation that was led elsewhere`;
    said.unshift({ kind: 'hidden', heading: text, text: '' });
  }
  const warnings = spec.generation?.warnings ?? [];
  return [
    ...said,
    ...warnings.map(text => ({ kind: 'warning' as const, heading: 'Warning', text })),
  ];
}

function piece(part: Part): Piece {
  const { toolCall, toolResult, source, file } = part;
  if (toolCall) {
    return {
      kind: 'call',
      heading: `Call ${toolCall.id}: ${toolCall.name}`,
      text: pretty(toolCall.input),
    };
  }
  if (toolResult) {
    const failed = toolResult.isError;
    const of = [toolResult.id, toolResult.name].filter(Boolean).join(': ');
    return {
      kind: failed ? 'failure' : 'result',
      heading: `${failed ? 'Error' : 'Result'} of ${of}`,
      text: toolResult.output ?? '',
    };
  }
  if (source) {
    return {
      kind: 'source',
      heading: 'Source',
      text: source.title || source.url || '',
      url: source.url,
    };
  }
  if (file) {
    return {
      kind: 'file',
      heading: 'File',
      text: [file.name, file.mediaType].filter(Boolean).join(', '),
    };
  }
  if (part.type === 'Reasoning') {
    return { kind: 'reasoning', heading: 'Reasoning', text: part.text ?? '' };
  }
  return { kind: 'text', heading: '', text: part.text ?? '' };
}

/** Texts longer than this are folded, in characters or lines; as much is shown of them. */
export const folded = { characters: 1500, lines: 20 };

/** The beginning of a text that is too long to be shown at once; undefined if the whole is shown. */
export function beginning(text: string): string | undefined {
  const lines = text.split('\n');
  if (text.length <= folded.characters && lines.length <= folded.lines) {
    return undefined;
  }
  return lines.slice(0, folded.lines).join('\n').slice(0, folded.characters);
}

/** JSON with indents for people. What is no JSON stays as it is. */
export function pretty(json = ''): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
