// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { setStore } from '@kinvolk/headlamp-plugin/lib/lib/router/createRouteURL';
import { createMuiTheme } from '@kinvolk/headlamp-plugin/lib/lib/themes';
import store from '@kinvolk/headlamp-plugin/lib/redux/stores/store';
import { ThemeProvider } from '@mui/material/styles';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { render } from '@testing-library/react';
import { SnackbarProvider } from 'notistack';
import { ReactNode } from 'react';
import { Provider } from 'react-redux';
import { MemoryRouter, Route } from 'react-router-dom';
import { Chat } from '../facts/types';
import { objects } from '../testdata';

// Headlamp's application does so when it starts; without it no route of a plug-in is found.
setStore(store);

/** What was written to the API server, as it came. */
export const written: { path: string; body: any }[] = [];

let forbidden = '';

/** Has the API server refuse a kind, by its plural; none without one. */
export function forbid(plural = '') {
  forbidden = plural;
}

const mismatch = {
  type: 'Ready',
  status: 'False',
  reason: 'DigestMismatch',
  message: 'read it again',
};

/** An API server that has the objects of the test data, and none of other kinds. */
export function serve(url: string, { method, body }: RequestInit = {}): Response {
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  if (pathname.endsWith('/selfsubjectaccessreviews')) {
    const { resource } = JSON.parse(String(body)).spec.resourceAttributes;
    return Response.json({ status: { allowed: resource !== forbidden, reason: '' } });
  }
  if (forbidden && pathname.endsWith(`/${forbidden}`)) {
    return Response.json({ message: `no right to ${forbidden}` }, { status: 403 });
  }
  if (method === 'PATCH') {
    written.push({ path: pathname, body: JSON.parse(String(body)) });
    return Response.json({ message: 'the chat is held' }, { status: 403 });
  }
  if (method === 'POST') {
    written.push({ path: pathname, body: JSON.parse(String(body)) });
    return Response.json({ metadata: { name: 'triage-1' } }, { status: 201 });
  }
  if (pathname.endsWith('/toolapprovals/triage-1')) {
    return Response.json({ metadata: { name: 'triage-1' }, status: { conditions: [mismatch] } });
  }
  const [, kind, name] = /\/(chats|chatmessages)(?:\/([^/]+))?$/.exec(pathname) ?? [];
  const all = kind === 'chats' ? objects.chats : kind === 'chatmessages' ? objects.messages : [];
  if (name) {
    const object = [...all].find(o => o.metadata.name === name);
    return Response.json(object ?? { message: 'not found' }, { status: object ? 200 : 404 });
  }
  const parent = searchParams.get('fieldSelector')?.replace('spec.parentRef.name=', '');
  const items = all.filter(o => !parent || (o as Chat).spec?.parentRef?.name === parent);
  return Response.json({ kind: 'List', metadata: { resourceVersion: '1' }, items });
}

/** A watch on which nothing happens. */
export class Silence {
  addEventListener() {}
  removeEventListener() {}
  send() {}
  close() {}
}

/** Renders a page as Headlamp would, in a cluster called main. The path is below that of the cluster. */
export function show(page: ReactNode, path: string, at = path) {
  // Headlamp takes the cluster from the browser's address.
  window.history.pushState({}, '', `/c/main${at}`);
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <Provider store={store}>
      <QueryClientProvider client={client}>
        <ThemeProvider theme={createMuiTheme({ name: 'light' })}>
          <MemoryRouter initialEntries={[`/c/main${at}`]}>
            <SnackbarProvider>
              <Route path={`/c/:cluster${path}`}>{page}</Route>
            </SnackbarProvider>
          </MemoryRouter>
        </ThemeProvider>
      </QueryClientProvider>
    </Provider>
  );
}
