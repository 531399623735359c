// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { ActionButton, AuthVisible } from '@kinvolk/headlamp-plugin/lib/components/common';
import { useSnackbar } from 'notistack';
import { Action } from '../facts/actions';
import { Chat } from '../resources';

/** A button for those who may patch the chat. What the API server refuses is said. */
export function ChatAction({ item, action }: { item: Chat; action: Action }) {
  const { enqueueSnackbar } = useSnackbar();
  const act = () =>
    item.patch(action.patch).catch((error: Error) => {
      const text = `${action.name} of chat ${item.metadata.name}: ${error.message}`;
      enqueueSnackbar(text, { variant: 'error' });
    });
  return (
    <AuthVisible item={item} authVerb="patch">
      <ActionButton description={action.name} icon={action.icon} onClick={act} />
    </AuthVisible>
  );
}
