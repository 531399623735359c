// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { ChatMessage } from './types';

/** How many messages of a history are read at most. */
export const newest = 50;

/** Reads one ChatMessage of the chat's namespace by its name. */
export type Read = (name: string) => Promise<ChatMessage>;

/** What is known of the messages that were read, oldest first. */
export interface Chain {
  messages: ChatMessage[];
  /** Whether there are messages before the first one. */
  more: boolean;
  /** Why reading ended early; absent if it did not. What was read until then is in messages. */
  problem?: string;
}

/**
 * Follows a history from its head by the parents, which say what is committed. A list by the chat's field selector
 * comes in the order of names: to have its newest messages is to read all of them.
 */
export async function chain(
  chat: string,
  head: string | undefined,
  read: Read,
  limit = newest
): Promise<Chain> {
  const messages: ChatMessage[] = [];
  let name = head;
  while (name && messages.length < limit) {
    try {
      const message = await read(name);
      if (message.spec.chatRef.name !== chat) {
        throw new Error(`ChatMessage ${name} belongs to another chat`);
      }
      messages.unshift(message);
      name = message.spec.parent || message.status?.parent;
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      return { messages, more: true, problem: `Reading ChatMessage ${name}: ${problem}` };
    }
  }
  return { messages, more: Boolean(name) };
}

/** How many messages are kept: those of one reading, and as many that the next one may still need. */
const kept = 2 * newest;

/** Keeps generated messages, which never change. Those of people can be edited: they are read each time. */
export function remembering(read: Read): Read {
  const known = new Map<string, ChatMessage>();
  return async name => {
    const message = known.get(name) ?? (await read(name));
    if (message.spec.generation) {
      // A Map has the order in which names came: what was not asked for longest goes first.
      known.delete(name);
      known.set(name, message);
      const [oldest] = known.keys();
      if (known.size > kept) {
        known.delete(oldest);
      }
    }
    return message;
  };
}
