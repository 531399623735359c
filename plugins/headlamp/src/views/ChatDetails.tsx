// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { ConditionsSection, DetailsGrid } from '@kinvolk/headlamp-plugin/lib/components/common';
import { useParams } from 'react-router-dom';
import { Chat } from '../resources';
import { chatRows } from './chatRows';
import { PendingCalls } from './PendingCalls';
import { Queue } from './Queue';
import { SubChats } from './SubChats';
import { Transcript } from './Transcript';

/** All that is known of one chat. */
export function ChatDetails() {
  const { namespace, name } = useParams<{ namespace: string; name: string }>();
  return (
    <DetailsGrid
      resourceType={Chat}
      namespace={namespace}
      name={name}
      withEvents
      extraInfo={item => (item ? chatRows(item) : [])}
      extraSections={item =>
        item
          ? [
              { id: 'parley-pending', section: <PendingCalls item={item} /> },
              { id: 'parley-queue', section: <Queue item={item} /> },
              { id: 'parley-sub-chats', section: <SubChats item={item} /> },
              {
                id: 'parley-transcript',
                section: <Transcript key={item.metadata.uid} item={item} />,
              },
              { id: 'parley-conditions', section: <ConditionsSection resource={item.jsonData} /> },
            ]
          : []
      }
    />
  );
}
