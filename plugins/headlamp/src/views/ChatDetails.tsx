// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { ConditionsSection, DetailsGrid } from '@kinvolk/headlamp-plugin/lib/components/common';
import { useParams } from 'react-router-dom';
import { actions } from '../facts/actions';
import { Chat } from '../resources';
import { ChatAction } from './ChatAction';
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
      actions={item =>
        item
          ? actions(item.chat).map(action => (
              <ChatAction key={action.name} item={item} action={action} />
            ))
          : []
      }
      extraInfo={item => (item ? chatRows(item) : [])}
      extraSections={item =>
        item
          ? [
              {
                id: 'parley-pending',
                section: <PendingCalls key={item.metadata.uid} item={item} />,
              },
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
