// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Loader, SectionBox } from '@kinvolk/headlamp-plugin/lib/components/common';
import { Box, Link as WebLink, Typography } from '@mui/material';
import { webAddress } from '../facts/links';
import { heading, Piece, pieces } from '../facts/transcript';
import { ChatMessage } from '../facts/types';
import { Chat } from '../resources';
import { FoldedText } from './FoldedText';
import { ResourceLink } from './links';
import { useChain } from './useChain';

/** The newest messages of a chat's history, oldest first. */
export function Transcript({ item }: { item: Chat }) {
  const chain = useChain(item);
  if (!chain) {
    return <Loader title="Reading the messages" />;
  }
  const total = item.chat.status?.history?.length ?? 0;
  return (
    <SectionBox title="Messages">
      {chain.problem && <Typography color="error">{chain.problem}</Typography>}
      {chain.more && (
        <Typography>
          The newest {chain.messages.length} of {total} messages. kubectl chat export has all.
        </Typography>
      )}
      {chain.messages.map(message => (
        <Message key={message.metadata.name} message={message} cluster={item.cluster} />
      ))}
    </SectionBox>
  );
}

function Message({ message, cluster }: { message: ChatMessage; cluster: string }) {
  const { name, namespace } = message.metadata;
  return (
    <Box component="article" sx={{ mb: 2 }}>
      <Typography variant="subtitle2">
        {heading(message)} ·{' '}
        <ResourceLink plural="chatmessages" {...{ name, namespace, cluster }} />
      </Typography>
      {pieces(message).map((piece, i) => (
        <PieceView key={i} piece={piece} />
      ))}
    </Box>
  );
}

function PieceView({ piece }: { piece: Piece }) {
  const address = webAddress(piece.url);
  const mono = ['call', 'result', 'failure'].includes(piece.kind);
  return (
    <Box sx={{ ml: 2, mb: 1 }}>
      {piece.heading && (
        <Typography variant="caption" color={piece.kind === 'failure' ? 'error' : 'textSecondary'}>
          {piece.heading}
        </Typography>
      )}
      {address ? (
        <Typography variant="body2">
          <WebLink href={address} target="_blank" rel="noopener noreferrer">
            {piece.text}
          </WebLink>
        </Typography>
      ) : (
        <FoldedText text={piece.text} mono={mono} />
      )}
    </Box>
  );
}
