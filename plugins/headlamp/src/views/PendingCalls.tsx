// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import {
  AuthVisible,
  SectionBox,
  SimpleTable,
} from '@kinvolk/headlamp-plugin/lib/components/common';
import { Typography } from '@mui/material';
import { useState } from 'react';
import { outcome } from '../facts/decision';
import { pending, Waiting } from '../facts/waiting';
import { Chat, ToolApproval } from '../resources';
import { DecideCall } from './DecideCall';
import { WholeText } from './FoldedText';
import { ChatLink } from './links';

/** The calls that wait for people, clients and sub-chats, with all that they ask. Nothing if none does. */
export function PendingCalls({ item }: { item: Chat }) {
  const [approvals, setApprovals] = useState<string[]>([]);
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
              {
                label: 'Input',
                gridTemplate: 4,
                getter: (call: Waiting) => (
                  <Input
                    item={item}
                    waiting={call}
                    onDecided={name => setApprovals(names => [...names, name])}
                  />
                ),
              },
            ]}
          />
        </SectionBox>
      )}
      {approvals.map(name => (
        <Outcome key={name} name={name} {...at} />
      ))}
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

interface InputProps {
  item: Chat;
  waiting: Waiting;
  onDecided: (name: string) => void;
}

/** All of a call, and the buttons for those who may create ToolApprovals. */
function Input({ item, waiting, onDecided }: InputProps) {
  const { call, questions, detail } = waiting;
  const version = item.chat.status?.history?.version;
  return (
    <>
      <WholeText mono text={detail} />
      {questions && (
        <AuthVisible item={ToolApproval} authVerb="create" namespace={item.metadata.namespace}>
          <DecideCall
            key={`${version}/${call.id}/${call.digest}`}
            {...{ item, call, questions, onDecided }}
          />
        </AuthVisible>
      )}
    </>
  );
}

/** What became of a decision, also if the call has changed meanwhile. */
function Outcome({ name, ...at }: { name: string; namespace?: string; cluster: string }) {
  const [approval, error] = ToolApproval.useGet(name, at.namespace, at);
  return (
    <Typography role="status" color={error ? 'error' : undefined}>
      {`ToolApproval ${name}: ${error ? error.message : outcome(approval?.jsonData)}`}
    </Typography>
  );
}
