// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { visible } from './visible';

interface Choice {
  value: string;
  label: string;
}

/** A member of the object that answers a request. Its texts can be shown. */
export interface Field {
  /** Tells the fields of all requests apart. */
  key: string;
  name: string;
  label: string;
  description: string;
  type: 'text' | 'password' | 'number' | 'boolean';
  /** The answers to choose from; empty if people type one. */
  choices: Choice[];
  multiple: boolean;
  required: boolean;
  initial: string | string[];
}

/** A request for input of the Model Context Protocol. */
export interface Question {
  id: string;
  message: string;
  url?: string;
  fields: Field[];
}

/** What people have typed or chosen, by the keys of the fields. */
export type Values = Record<string, string | string[]>;

interface Option {
  const: unknown;
  title?: unknown;
}

/** A property of a requestedSchema: the protocol has flat objects only. */
interface Schema {
  type?: string;
  title?: unknown;
  description?: unknown;
  format?: string;
  default?: unknown;
  enum?: unknown[];
  oneOf?: Option[];
  items?: { enum?: unknown[]; anyOf?: Option[] };
}

/** The requests of a call that asks people, none of another one; undefined if they cannot be read. */
export function questions(inputRequests = '{}'): Question[] | undefined {
  try {
    return parse(inputRequests);
  } catch {
    return undefined;
  }
}

function parse(inputRequests: string): Question[] {
  return Object.entries<any>(JSON.parse(inputRequests)).map(([id, { params = {} }]) => {
    // A server in Go writes null for an empty list.
    const { properties, required } = params.requestedSchema ?? {};
    const fields = Object.entries<Schema>(properties ?? {}).map(([name, schema]) => ({
      ...field(name, schema),
      key: `${id}/${name}`,
      required: (required ?? []).includes(name),
    }));
    return { id, message: text(params.message), url: params.url && String(params.url), fields };
  });
}

const types: Record<string, Field['type']> = {
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
};

function field(name: string, schema: Schema) {
  const multiple = schema.type === 'array';
  const initial = schema.default ?? [];
  return {
    name,
    label: text(schema.title || name),
    description: text(schema.description),
    type: schema.format === 'password' ? 'password' : types[schema.type ?? ''] ?? 'text',
    choices: choices(schema),
    multiple,
    initial: multiple ? [initial].flat().map(String) : String(initial),
  };
}

function choices({ type, items, ...schema }: Schema): Choice[] {
  const values = [
    ...(schema.enum ?? []),
    ...(items?.enum ?? []),
    ...(type === 'boolean' ? [true, false] : []),
  ];
  return [
    ...values.map(value => ({ const: value })),
    ...(schema.oneOf ?? []),
    ...(items?.anyOf ?? []),
  ].map((option: Option) => ({
    value: String(option.const),
    label: text(option.title ?? option.const),
  }));
}

function text(value: unknown): string {
  return visible(String(value ?? ''));
}

/** What the fields begin with. */
export function initial(asked: Question[]): Values {
  return Object.fromEntries(asked.flatMap(q => q.fields.map(f => [f.key, f.initial])));
}

/** Whether each required field has a value. */
export function isComplete(asked: Question[], values: Values): boolean {
  return asked.every(q => q.fields.every(f => !f.required || values[f.key]?.length > 0));
}

/** The content of a ToolApproval: the answer to a single request, or the answers to several by their ids. */
export function content(asked: Question[], values: Values): string {
  const answers = asked.map(q => [q.id, answer(q, values)] as const);
  return answers.length === 1 ? answers[0][1] : members(answers);
}

function answer(question: Question, values: Values): string {
  const given = question.fields.filter(f => values[f.key]?.length > 0);
  return members(given.map(f => [f.name, typed(f, values[f.key])] as const));
}

/** An object of members that are JSON already. */
function members(all: (readonly [string, string])[]): string {
  return `{${all.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join()}}`;
}

/** A value as JSON. A long integer, such as an id, stays as it was typed: a browser's numbers would round it. */
function typed({ type }: Field, value: string | string[]): string {
  switch (type) {
    case 'number':
      return /^-?[1-9]\d*$/.test(String(value)) ? String(value) : JSON.stringify(Number(value));
    case 'boolean':
      return String(value === 'true');
  }
  return JSON.stringify(value);
}
