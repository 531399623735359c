// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Chat, ChatMessage } from '../facts/types';
import chats from './chats.json';
import messages from './messages.json';

/** Chats and ChatMessages as an API server with the resource definitions of config/crd admitted them. */
export const objects = { chats: chats as Chat[], messages: messages as unknown as ChatMessage[] };

/** The chat of a name; a test that asks for another one fails. */
export function chatNamed(name: string): Chat {
  return found(objects.chats, name);
}

/** The message of a name; a test that asks for another one fails. */
export function messageNamed(name: string): ChatMessage {
  return found(objects.messages, name);
}

function found<T extends { metadata: { name: string } }>(all: T[], name: string): T {
  const object = all.find(o => o.metadata.name === name);
  if (!object) {
    throw new Error(`there is no ${name}`);
  }
  return object;
}
