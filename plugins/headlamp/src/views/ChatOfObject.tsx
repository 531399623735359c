// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { SectionBox } from '@kinvolk/headlamp-plugin/lib/components/common';
import { chatOf } from '../facts/owner';
import { ChatLink } from './links';

/** On the page of a ChatMessage or Workspace: the chat that it belongs to. Nothing on other pages. */
export function ChatOfObject({ resource }: { resource?: any }) {
  const name = chatOf(resource?.jsonData);
  if (!name) {
    return null;
  }
  return (
    <SectionBox title="Chat">
      <ChatLink namespace={resource.metadata.namespace} name={name} cluster={resource.cluster} />
    </SectionBox>
  );
}
