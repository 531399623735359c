// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { ApiProxy } from '@kinvolk/headlamp-plugin/lib';
import { useEffect, useMemo, useState } from 'react';
import { Chain, chain, Read, remembering } from '../facts/chain';
import { messagePath } from '../facts/links';
import { Chat } from '../resources';

/** The newest messages of a chat, read again with each version of its history; undefined until they were read once. */
export function useChain(item: Chat): Chain | undefined {
  const { name, namespace = '' } = item.metadata;
  const { head, version } = item.chat.status?.history ?? {};
  const cluster = item.cluster;
  const read = useMemo(
    () =>
      remembering(async message =>
        ApiProxy.clusterRequest(messagePath(namespace, message), { cluster })
      ),
    [namespace, cluster]
  );
  const [known, setKnown] = useState<Chain>();
  useEffect(() => {
    let wanted = true;
    const readWhileWanted: Read = async message => {
      if (!wanted) {
        throw new Error('the history has changed meanwhile');
      }
      return read(message);
    };
    chain(name, head, readWhileWanted).then(found => wanted && setKnown(found));
    return () => {
      wanted = false;
    };
  }, [name, head, version, read]);
  return known;
}
