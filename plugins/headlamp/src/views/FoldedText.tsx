// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Button, Typography } from '@mui/material';
import { useState } from 'react';
import { beginning } from '../facts/transcript';

/** A text of others with its line breaks, as text; a long one begins folded. */
export function FoldedText({ text, mono = false }: { text: string; mono?: boolean }) {
  const [open, setOpen] = useState(false);
  const short = beginning(text);
  return (
    <>
      <Typography
        component="div"
        variant="body2"
        sx={{
          whiteSpace: 'pre-wrap',
          overflowWrap: 'anywhere',
          fontFamily: mono ? 'monospace' : undefined,
        }}
      >
        {open || short === undefined ? text : `${short}…`}
      </Typography>
      {short !== undefined && (
        <Button size="small" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Show less' : `Show all ${text.length} characters`}
        </Button>
      )}
    </>
  );
}
