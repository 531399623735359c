// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import '../index';
import { cleanup, fireEvent, screen, within } from '@testing-library/react';
import { Chat } from '../resources';
import { chatNamed, messageNamed } from '../testdata';
import { ChatDetails } from './ChatDetails';
import { ChatOfObject } from './ChatOfObject';
import { ChatTable } from './ChatTable';
import { DecideCall } from './DecideCall';
import { FoldedText } from './FoldedText';
import { forbid, serve, show, Silence, written } from './testing';

// Headlamp looks for kubeconfigs of the browser's own, in a database that jsdom does not have.
vi.mock('@kinvolk/headlamp-plugin/lib/stateless/findKubeconfigByClusterName', () => ({
  findKubeconfigByClusterName: async () => null,
}));

/** How long a page may take: Headlamp is large. */
const patience = { timeout: 30000 };
vi.setConfig({ testTimeout: 90000 });

beforeEach(() => {
  vi.stubGlobal('fetch', async (asked: string | URL | Request, init?: RequestInit) =>
    serve(asked instanceof Request ? asked.url : String(asked), init)
  );
  vi.stubGlobal('WebSocket', Silence);
});

afterEach(() => {
  forbid();
  written.length = 0;
  cleanup();
  vi.unstubAllGlobals();
});

const target = (text: string) => screen.getByText(text).closest('a')?.getAttribute('href');
const details = (name: string) =>
  show(<ChatDetails />, '/parley/chats/:namespace/:name', `/parley/chats/demo/${name}`);

it('lists the chats, what each waits for and has cost, with links', async () => {
  show(<ChatTable />, '/parley/chats');
  await screen.findByText('AuthenticationFailed', {}, patience);
  for (const text of [
    '1 approval, 1 answer, 1 client result, 1 sub-chat',
    '0.01042 USD, 2.50 EUR',
    'Not seen yet',
  ]) {
    expect(screen.getByText(text)).toBeTruthy();
  }
  expect(target('triage')).toBe('/c/main/parley/chats/demo/triage');
});

describe('the page of a chat', () => {
  it('shows what waits, the queue and the sub-chats', async () => {
    details('triage');
    await screen.findByText('Sub-chats', {}, patience);
    expect(screen.getAllByText(/Which ticket is it for/)).toBeTruthy();
    expect(target('triage-hurry')).toBe(
      '/c/main/customresources/chatmessages.parley.dev/demo/triage-hurry'
    );
    expect(target('sonnet')).toBe(
      '/c/main/customresources/chatmodelconfigs.parley.dev/demo/sonnet'
    );
    expect(
      screen.getAllByText('triage-logs').map(e => e.closest('a')?.getAttribute('href'))
    ).toEqual(['/c/main/parley/chats/demo/triage-logs', '/c/main/parley/chats/demo/triage-logs']);
  });

  it('shows the messages as text, and follows no address but those of the web', async () => {
    details('triage');
    await screen.findByText('Why does node-7 not get ready? <b>Now</b>', {}, patience);
    expect(screen.getByText('nodes is forbidden')).toBeTruthy();
    expect(target('Kubernetes')).toBe('https://kubernetes.io/docs/');
    expect(target('a script')).toBeUndefined();
  });

  it('says which lists are refused', async () => {
    forbid('workspaces');
    details('triage');
    await screen.findByText(/Listing workspaces: .*no right to workspaces/, {}, patience);
  });

  it('says why the turn failed, what to do, and which message cannot be read', async () => {
    details('failed');
    await screen.findByText(/Correct the key in Secret openai/, {}, patience);
    await screen.findByText(/Reading ChatMessage failed-prompt:/, {}, patience);
  });
});

it('asks the API server for an action, and says what it refuses', async () => {
  details('triage');
  fireEvent.click(await screen.findByLabelText('Interrupt', {}, patience));
  await screen.findByText(/Interrupt of chat triage: .*the chat is held/, {}, patience);
  expect(written).toEqual([
    {
      path: '/clusters/main/apis/parley.dev/v1beta1/namespaces/demo/chats/triage',
      body: { metadata: { annotations: { 'parley.dev/interrupt': 'headlamp-5' } } },
    },
  ]);
});

describe('a call that waits', () => {
  const calls = chatNamed('triage').status?.requiresAction?.toolCalls ?? [];
  const path = '/clusters/main/apis/parley.dev/v1beta1/namespaces/demo/toolapprovals';
  const decisionOf = async (call: string) =>
    within(await screen.findByLabelText(`Decide about call ${call}`, {}, patience));

  it('is approved once, and says what became of it', async () => {
    details('triage');
    const approve = (await decisionOf('call_2')).getByText('Approve');
    fireEvent.click(approve);
    fireEvent.click(approve);
    await screen.findByText('ToolApproval triage-1: DigestMismatch: read it again', {}, patience);
    expect(written.map(w => [w.path, w.body.spec])).toEqual([
      [
        path,
        {
          chatRef: { name: 'triage' },
          toolCallID: 'call_2',
          digest: calls[0].digest,
          decision: 'Approve',
        },
      ],
    ]);
  });

  it('is denied with a comment', async () => {
    details('triage');
    const decision = await decisionOf('call_2');
    fireEvent.change(decision.getByLabelText('Comment'), { target: { value: 'Not now' } });
    fireEvent.click(decision.getByText('Deny'));
    await screen.findByText(/^ToolApproval triage-1/, {}, patience);
    expect(written[0].body.spec).toMatchObject({ decision: 'Deny', comment: 'Not now' });
  });

  it('is answered with what people type', async () => {
    details('triage');
    const decision = await decisionOf('call_3');
    expect(decision.getByText<HTMLButtonElement>('Answer').disabled).toBe(true);
    fireEvent.change(decision.getByLabelText(/Ticket/), { target: { value: 'NET-1' } });
    fireEvent.change(decision.getByLabelText('urgent'), { target: { value: 'true' } });
    fireEvent.click(decision.getByText('Answer'));
    await screen.findByText(/^ToolApproval triage-1/, {}, patience);
    expect(written[0].body.spec.content).toBe('{"ticket":"NET-1","urgent":true}');
  });

  it('can be decided again after a refusal', async () => {
    details('triage');
    const deny = (await decisionOf('call_2')).getByText<HTMLButtonElement>('Deny');
    forbid('toolapprovals');
    fireEvent.click(deny);
    await screen.findByText(
      /Decision about call call_2: .*no right to toolapprovals/,
      {},
      patience
    );
    expect(deny.disabled).toBe(false);
  });

  it('has no buttons without the right', async () => {
    forbid('toolapprovals');
    details('triage');
    await screen.findByText('Sub-chats', {}, patience);
    await screen.findByLabelText('Interrupt', {}, patience);
    expect(screen.queryByText('Approve')).toBeNull();
  });

  it('has no buttons unless its digest fits', async () => {
    const call = { ...calls[0], input: '{}' };
    const item = new Chat(chatNamed('triage'), 'main');
    show(<DecideCall {...{ item, call, questions: [], onDecided() {} }} />, '/x');
    await screen.findByText(/cannot verify that it shows all of the call/, {}, patience);
    expect(screen.queryByText('Approve')).toBeNull();
  });
});

it('links an object to its chat, and no object of others', () => {
  show(
    <ChatOfObject
      resource={{ jsonData: messageNamed('triage-s1'), metadata: { namespace: 'demo' } }}
    />,
    '/x'
  );
  expect(target('triage')).toBe('/c/main/parley/chats/demo/triage');
  cleanup();
  show(<ChatOfObject resource={{ jsonData: { apiVersion: 'v1', kind: 'Pod' } }} />, '/x');
  expect(screen.queryByText('Chat')).toBeNull();
});

it('folds a long text until somebody opens it', () => {
  const text = `${'x'.repeat(2000)} end`;
  show(<FoldedText text={text} />, '/x');
  expect(screen.queryByText(text)).toBeNull();
  fireEvent.click(screen.getByRole('button'));
  expect(screen.getByText(text)).toBeTruthy();
});
