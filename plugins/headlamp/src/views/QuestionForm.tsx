// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Link, TextField, Typography } from '@mui/material';
import { ChangeEvent } from 'react';
import { webAddress } from '../facts/links';
import { Field, Question, Values } from '../facts/question';
import { visible } from '../facts/visible';

interface QuestionFormProps {
  questions: Question[];
  values: Values;
  onChange: (values: Values) => void;
}

/** The questions of a call, each with a field for every part of the answer. */
export function QuestionForm({ questions, values, onChange }: QuestionFormProps) {
  return (
    <>
      {questions.map(({ id, message, url, fields }) => (
        <div key={id}>
          <Typography whiteSpace="pre-wrap">{message}</Typography>
          {url && (
            <Link href={webAddress(url)} target="_blank" rel="noopener noreferrer">
              {visible(url)}
            </Link>
          )}
          {fields.map(field => (
            <AnswerField
              key={field.key}
              field={field}
              value={values[field.key]}
              onChange={value => onChange({ ...values, [field.key]: value })}
            />
          ))}
        </div>
      ))}
    </>
  );
}

interface AnswerFieldProps {
  field: Field;
  value: string | string[];
  onChange: (value: string | string[]) => void;
}

function AnswerField({ field, value, onChange }: AnswerFieldProps) {
  const { choices, multiple } = field;
  const change = ({ target }: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => {
    const chosen = (target as unknown as HTMLSelectElement).selectedOptions;
    onChange(multiple ? Array.from(chosen, option => option.value) : target.value);
  };
  return (
    <TextField
      fullWidth
      size="small"
      margin="dense"
      label={field.label}
      helperText={field.description}
      FormHelperTextProps={{ sx: { whiteSpace: 'pre-wrap' } }}
      required={field.required}
      type={field.type === 'boolean' ? 'text' : field.type}
      select={choices.length > 0}
      SelectProps={{ native: true, multiple }}
      InputLabelProps={{ shrink: true }}
      autoComplete="off"
      value={value}
      onChange={change}
    >
      {choices.length > 0 && [
        ...(multiple ? [] : [<option key="" value="" />]),
        ...choices.map(choice => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        )),
      ]}
    </TextField>
  );
}
