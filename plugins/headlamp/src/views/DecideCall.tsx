// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Button, Stack, TextField, Typography } from '@mui/material';
import { useEffect, useState } from 'react';
import { Decision, isWhole, toolApproval } from '../facts/decision';
import { content, initial, isComplete, Question } from '../facts/question';
import { PendingCall } from '../facts/types';
import { Chat, ToolApproval } from '../resources';
import { QuestionForm } from './QuestionForm';

interface DecideCallProps {
  item: Chat;
  call: PendingCall;
  /** What the call asks; empty if it needs approval only. */
  questions: Question[];
  /** Receives the name of the ToolApproval. */
  onDecided: (name: string) => void;
}

/** Decides about a call, once. There are no buttons unless the digest shows that people see all of the call. */
export function DecideCall({ item, call, questions, onDecided }: DecideCallProps) {
  const [whole, setWhole] = useState<boolean>();
  const [sent, setSent] = useState(false);
  const [error, setError] = useState('');
  const [comment, setComment] = useState('');
  const [values, setValues] = useState(() => initial(questions));
  useEffect(() => {
    isWhole(call).then(setWhole, () => setWhole(false));
  }, [call]);
  const asks = questions.length > 0;

  const decide = (decision: Decision) => {
    setSent(true);
    setError('');
    const body = toolApproval(item.chat, call, { ...decision, ...(comment && { comment }) });
    ToolApproval.apiEndpoint
      .post(body, {}, item.cluster)
      .then((created: any) => onDecided(created.metadata.name))
      .catch((refused: Error) => {
        setError(`Decision about call ${call.id}: ${refused.message}`);
        setSent(false);
      });
  };

  if (!whole) {
    return whole === undefined ? null : (
      <Typography color="error">
        This page cannot verify that it shows all of the call. Open it over https, or decide with
        kubectl chat.
      </Typography>
    );
  }
  return (
    <Stack spacing={1} mt={1} role="group" aria-label={`Decide about call ${call.id}`}>
      <QuestionForm questions={questions} values={values} onChange={setValues} />
      <TextField
        size="small"
        label="Comment"
        helperText="The model reads it if you deny the call."
        value={comment}
        onChange={event => setComment(event.target.value)}
        inputProps={{ maxLength: 1024 }}
      />
      <Stack direction="row" spacing={1}>
        <Button
          variant="contained"
          disabled={sent || !isComplete(questions, values)}
          onClick={() =>
            decide({ decision: 'Approve', ...(asks && { content: content(questions, values) }) })
          }
        >
          {asks ? 'Answer' : 'Approve'}
        </Button>
        <Button disabled={sent} onClick={() => decide({ decision: 'Deny' })}>
          Deny
        </Button>
      </Stack>
      {error && <Typography color="error">{error}</Typography>}
    </Stack>
  );
}
