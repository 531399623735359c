// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { ResourceListView, StatusLabel } from '@kinvolk/headlamp-plugin/lib/components/common';
import { compareCosts, costs } from '../facts/money';
import { ready } from '../facts/ready';
import { waitsFor } from '../facts/waiting';
import { Chat } from '../resources';

/** What a column says of a chat, as text to sort and search by. */
function column(label: string, getValue: (item: Chat) => string | number) {
  return { id: label.toLowerCase().replace(/ /g, '-'), label, getValue };
}

function ReadyLabel({ item }: { item: Chat }) {
  const { text, status } = ready(item.chat);
  return <StatusLabel status={status}>{text}</StatusLabel>;
}

const columns = [
  'name' as const,
  'namespace' as const,
  'cluster' as const,
  {
    ...column('Ready', item => ready(item.chat).text),
    render: (item: Chat) => <ReadyLabel item={item} />,
  },
  column('Messages', item => item.chat.status?.history?.length ?? 0),
  column('Queued', item => item.chat.status?.queue?.length ?? 0),
  column('Waits for', item => waitsFor(item.chat)),
  column('Model', item => item.chat.status?.model ?? ''),
  column('Class', item => item.chat.status?.chatClass?.name ?? ''),
  {
    ...column('Cost', item => costs(item.chat.status?.cost)),
    sort: (a: Chat, b: Chat) => compareCosts(a.chat.status?.cost, b.chat.status?.cost),
  },
  column('Title', item => item.chat.status?.title ?? ''),
  'age' as const,
];

/** The list of the chats that the person may list. */
export function ChatTable() {
  return (
    <ResourceListView title="Chats" id="parley-chats" resourceClass={Chat} columns={columns} />
  );
}
