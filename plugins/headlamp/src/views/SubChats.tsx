// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import {
  SectionBox,
  SimpleTable,
  StatusLabel,
} from '@kinvolk/headlamp-plugin/lib/components/common';
import { Typography } from '@mui/material';
import { ready } from '../facts/ready';
import { Chat, Workspace } from '../resources';
import { ChatLink, ResourceLink } from './links';

/** The chats below a chat, and its workspace; nothing if it has neither. */
export function SubChats({ item }: { item: Chat }) {
  const name = item.metadata.name;
  const at = { namespace: item.metadata.namespace, cluster: item.cluster };
  const [chats, chatsError] = Chat.useList({ ...at, fieldSelector: `spec.parentRef.name=${name}` });
  const [workspaces, workspacesError] = Workspace.useList({
    ...at,
    fieldSelector: `spec.chatRef.name=${name}`,
  });
  return (
    <>
      <Problem listing="sub-chats" error={chatsError} />
      <Problem listing="workspaces" error={workspacesError} />
      {chats && chats.length > 0 && (
        <SectionBox title="Sub-chats">
          <SimpleTable
            data={chats}
            columns={[
              {
                label: 'Chat',
                getter: (sub: Chat) => <ChatLink name={sub.metadata.name} {...at} />,
              },
              { label: 'Ready', getter: readyLabel },
              { label: 'Title', getter: (sub: Chat) => sub.chat.status?.title ?? '' },
            ]}
          />
        </SectionBox>
      )}
      {workspaces && workspaces.length > 0 && (
        <SectionBox title="Workspace">
          {workspaces.map(w => (
            <ResourceLink
              key={w.metadata.name}
              plural="workspaces"
              name={w.metadata.name}
              {...at}
            />
          ))}
        </SectionBox>
      )}
    </>
  );
}

/** Why a list cannot be shown, such as a right that the person lacks. */
function Problem({ listing, error }: { listing: string; error: Error | null }) {
  return error && <Typography color="error">{`Listing ${listing}: ${error.message}`}</Typography>;
}

function readyLabel(sub: Chat) {
  const { text, status } = ready(sub.chat);
  return <StatusLabel status={status}>{text}</StatusLabel>;
}
