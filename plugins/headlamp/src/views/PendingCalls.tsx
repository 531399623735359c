// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { SectionBox, SimpleTable } from '@kinvolk/headlamp-plugin/lib/components/common';
import { pending, Waiting } from '../facts/waiting';
import { Chat } from '../resources';
import { FoldedText } from './FoldedText';
import { ChatLink } from './links';

/** The calls that wait for people, clients and sub-chats, with what they ask. Nothing if none does. */
export function PendingCalls({ item }: { item: Chat }) {
  const calls = pending(item.chat);
  const chats = item.chat.status?.turn?.waitingFor ?? [];
  const at = { namespace: item.metadata.namespace, cluster: item.cluster };
  return (
    <>
      {calls.length > 0 && (
        <SectionBox title="Calls that wait">
          <SimpleTable
            data={calls}
            columns={[
              { label: 'Call', getter: (call: Waiting) => call.id },
              { label: 'Tool', getter: (call: Waiting) => call.tool },
              { label: 'Needs', getter: (call: Waiting) => call.needs },
              { label: 'Input', getter: (call: Waiting) => <FoldedText mono text={call.detail} /> },
            ]}
          />
        </SectionBox>
      )}
      {chats.length > 0 && (
        <SectionBox title="Calls that wait for sub-chats">
          <SimpleTable
            data={chats}
            columns={[
              { label: 'Call', getter: call => call.id },
              { label: 'Chat', getter: call => <ChatLink name={call.chat} {...at} /> },
              { label: 'Until', getter: call => call.deadline ?? '' },
            ]}
          />
        </SectionBox>
      )}
    </>
  );
}
