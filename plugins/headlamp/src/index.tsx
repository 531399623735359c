// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import {
  registerDetailsViewSection,
  registerRoute,
  registerSidebarEntry,
} from '@kinvolk/headlamp-plugin/lib';
import { routes } from './resources';
import { ChatDetails } from './views/ChatDetails';
import { ChatOfObject } from './views/ChatOfObject';
import { ChatTable } from './views/ChatTable';

registerSidebarEntry({
  parent: null,
  name: routes.chats,
  label: 'Chats',
  url: '/parley/chats',
  icon: 'mdi:forum-outline',
});

registerRoute({
  path: '/parley/chats',
  sidebar: routes.chats,
  name: routes.chats,
  exact: true,
  component: () => <ChatTable />,
});

registerRoute({
  path: '/parley/chats/:namespace/:name',
  sidebar: routes.chats,
  name: routes.chat,
  exact: true,
  component: () => <ChatDetails />,
});

registerDetailsViewSection(ChatOfObject);
