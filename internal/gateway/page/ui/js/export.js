// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// A whole chat as Markdown, to be copied or saved.

import { ask } from './api.js';
import { person, safe } from './text.js';

/** @param {string} path of the chat @param {string} title */
export async function asMarkdown(path, title) {
  const all = [];
  for (let before = ''; ;) {
    const { messages } = await ask('GET', `${path}/messages?limit=200${before && `&before=${encodeURIComponent(before)}`}`);
    all.unshift(...messages);
    if (messages.length === 0 || messages[0].index === 0) break;
    before = messages[0].message.name;
  }
  return [`# ${title}`, ...all.map(({ message }) => section(message)).filter(Boolean)].join('\n\n') + '\n';
}

function section(message) {
  const parts = message.content ? [message.content] : (message.parts ?? []).map(partOf).filter(Boolean);
  if (message.visibility === 'Model' || parts.length === 0) return '';
  const author = { User: person(message.createdBy) || 'User', Assistant: message.model?.name || 'Model', System: 'Summary' }[message.role];
  return [...(author ? [`## ${safe(author)}, ${message.finishedAt ?? message.createdAt}`] : []), ...parts].join('\n\n');
}

function partOf({ type, text, file, source, toolCall, toolResult }) {
  switch (type) {
    case 'Text': return text;
    case 'File': return `File: ${file.name}`;
    case 'Source': return `Source: ${source.url}`;
    case 'ToolCall': return fenced(`Call of ${toolCall.name}`, toolCall.input);
    case 'ToolResult': return fenced(toolResult.isError ? 'Error' : `Result of ${toolResult.name}`, toolResult.output);
    default: return '';
  }
}

/** A text that ends at its fence, whatever is in it. */
function fenced(words, text = '') {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${words}:\n\n${fence}\n${text}\n${fence}`;
}
