// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { messageNamed, objects } from '../testdata';
import { chain, newest, Read, remembering } from './chain';
import { ChatMessage } from './types';

const read: Read = async name => messageNamed(name);
const names = (messages: ChatMessage[]) => messages.map(m => m.metadata.name);

describe('the messages of a history', () => {
  it('are those from the head by the parents, oldest first', async () => {
    const { messages, more, problem } = await chain('triage', 'triage-s3', read);
    expect(names(messages)).toEqual(['triage-prompt', 'triage-s1', 'triage-s2', 'triage-s3']);
    expect([more, problem]).toEqual([false, undefined]);
    expect(objects.messages.length).toBeGreaterThan(messages.length);
  });
  it('are none before the first one', async () => {
    expect(await chain('triage', undefined, read)).toEqual({ messages: [], more: false });
  });
  it('are the newest ones of many', async () => {
    const { messages, more } = await chain('triage', 'triage-s3', read, 2);
    expect(names(messages)).toEqual(['triage-s2', 'triage-s3']);
    expect(more).toBe(true);
  });
  it('are bounded even where a chain leads back into itself', async () => {
    const loop: Read = async name => ({
      metadata: { name },
      spec: { chatRef: { name: 'a' }, parent: name },
    });
    expect((await chain('a', 'm', loop)).messages).toHaveLength(newest);
  });
  it('are shown as far as they can be read', async () => {
    const { messages, problem } = await chain('triage', 'triage-s3', async name => {
      if (name === 'triage-s1') {
        throw new Error('not found');
      }
      return messageNamed(name);
    });
    expect(names(messages)).toEqual(['triage-s2', 'triage-s3']);
    expect(problem).toBe('Reading ChatMessage triage-s1: not found');
  });
  it('are never those of another chat', async () => {
    const { messages, problem } = await chain('other', 'triage-s3', read);
    expect(messages).toEqual([]);
    expect(problem).toContain('belongs to another chat');
  });
});

describe('what was read', () => {
  const asked: string[] = [];
  beforeEach(() => asked.splice(0));
  const counting = (read: Read) =>
    remembering(async name => {
      asked.push(name);
      return read(name);
    });

  it('is kept of generated messages, and read again of those of people', async () => {
    const remembered = counting(read);
    await chain('triage', 'triage-s3', remembered);
    asked.splice(0);
    await chain('triage', 'triage-s3', remembered);
    expect(asked).toEqual(['triage-prompt']);
  });

  it('is forgotten once it was not asked for as long as many others were read', async () => {
    const remembered = counting(async name => ({
      ...messageNamed('triage-s1'),
      metadata: { name },
    }));
    for (let i = 0; i <= 2 * newest; i++) {
      await remembered(`m${i}`);
    }
    asked.splice(0);
    await remembered(`m${2 * newest}`);
    await remembered('m0');
    expect(asked).toEqual(['m0']);
  });
});
