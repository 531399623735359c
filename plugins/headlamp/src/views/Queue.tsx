// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { SectionBox, SimpleTable } from '@kinvolk/headlamp-plugin/lib/components/common';
import { Chat } from '../resources';
import { ResourceLink } from './links';

/** The messages that wait for the turn to end, next first. Nothing if none does. */
export function Queue({ item }: { item: Chat }) {
  const queue = item.chat.status?.queue ?? [];
  if (queue.length === 0) {
    return null;
  }
  const at = { plural: 'chatmessages', namespace: item.metadata.namespace, cluster: item.cluster };
  return (
    <SectionBox title="Queue">
      <SimpleTable
        data={queue}
        columns={[
          { label: 'Message', getter: queued => <ResourceLink name={queued.name} {...at} /> },
          { label: 'Cuts in', getter: queued => (queued.interrupts ? 'Yes' : 'No') },
        ]}
      />
    </SectionBox>
  );
}
