// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Button, Typography } from '@mui/material';
import { useState } from 'react';
import { beginning } from '../facts/transcript';

/** A text of others with its line breaks, as text. */
export function WholeText({ text, mono = false }: { text: string; mono?: boolean }) {
  return (
    <Typography
      component="div"
      variant="body2"
      sx={{
        whiteSpace: 'pre-wrap',
        overflowWrap: 'anywhere',
        fontFamily: mono ? 'monospace' : undefined,
      }}
    >
      {text}
    </Typography>
  );
}

/** A text of others; a long one begins folded. */
export function FoldedText({ text, mono = false }: { text: string; mono?: boolean }) {
  const [open, setOpen] = useState(false);
  const short = beginning(text);
  return (
    <>
      <WholeText text={open || short === undefined ? text : `${short}…`} mono={mono} />
      {short !== undefined && (
        <Button size="small" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Show less' : `Show all ${text.length} characters`}
        </Button>
      )}
    </>
  );
}
