// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import '../index';
import { cleanup, fireEvent, screen } from '@testing-library/react';
import { messageNamed } from '../testdata';
import { ChatDetails } from './ChatDetails';
import { ChatOfObject } from './ChatOfObject';
import { ChatTable } from './ChatTable';
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
    expect(screen.getByText(/Which ticket is it for/)).toBeTruthy();
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
