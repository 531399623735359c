// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { chatNamed } from '../testdata';
import { content, isComplete, questions } from './question';

const [, ticket] = chatNamed('triage').status?.requiresAction?.toolCalls ?? [];
const request = (properties: object) => ({
  params: { message: '?', requestedSchema: { properties } },
});
const read = (json = '') => questions(json) ?? [];
const asked = (properties: object) => read(JSON.stringify({ a: request(properties) }));

describe('the fields of a question', () => {
  const [question] = read(ticket.inputRequests);
  it('have the labels and types of the schema', () => {
    expect(question.message).toBe('Which ticket is it for?');
    expect(question.fields.map(f => [f.key, f.label, f.type, f.required])).toEqual([
      ['ask/ticket', 'Ticket', 'text', true],
      ['ask/urgent', 'urgent', 'boolean', false],
    ]);
  });
  it.each([
    ['enum', { enum: ['a'] }],
    ['oneOf', { oneOf: [{ const: 'a' }] }],
    ['items.enum', { type: 'array', items: { enum: ['a'] } }],
    ['items.anyOf', { type: 'array', items: { anyOf: [{ const: 'a', title: 'a' }] } }],
  ])('have the choices of %s', (_, schema) => {
    expect(asked({ x: schema })[0].fields[0].choices).toEqual([{ value: 'a', label: 'a' }]);
  });
  it.each([
    ['a text', { type: 'string', default: 'x' }, 'x'],
    ['a boolean', { type: 'boolean', default: true }, 'true'],
    ['choices', { type: 'array', default: ['x'], items: {} }, ['x']],
    ['none', { type: 'string' }, ''],
  ])('begin with the default: %s', (_, schema, initial) => {
    expect(asked({ x: schema })[0].fields[0].initial).toEqual(initial);
  });
  it.each([
    '',
    'null',
    '{"a":null}',
    '{"a":{"params":{"requestedSchema":{"required":7,"properties":{"x":{}}}}}}',
  ])('are unknown of %s', json => {
    expect(questions(json)).toBeUndefined();
  });
  it.each([
    ['{"x":{}}', [false]],
    ['null', []],
  ])('are optional where null is required: %s', (properties, required) => {
    const json = `{"a":{"params":{"requestedSchema":{"properties":${properties},"required":null}}}}`;
    expect(read(json)[0].fields.map(f => f.required)).toEqual(required);
  });
  it('spell what cannot be seen', () => {
    expect(asked({ x: { title: 'a\u202eb' } })[0].fields[0].label).toBe('a⟨U+202E⟩b');
  });
});

describe('an answer', () => {
  it('has values of the types of its fields', () => {
    const fields = {
      n: { type: 'integer' },
      b: { type: 'boolean' },
      s: {},
      m: { type: 'array' },
      o: {},
    };
    const values = { 'a/n': '7', 'a/b': 'false', 'a/s': 'x', 'a/m': ['y'], 'a/o': '' };
    expect(content(asked(fields), values)).toBe('{"n":7,"b":false,"s":"x","m":["y"]}');
  });
  it('has long integers as they were typed', () => {
    const fields = { n: { type: 'integer' }, m: { type: 'number' } };
    const values = { 'a/n': '9007199254740993', 'a/m': '007.50' };
    expect(content(asked(fields), values)).toBe('{"n":9007199254740993,"m":7.5}');
  });
  it('is by the ids of several requests', () => {
    const two = read(JSON.stringify({ a: request({ x: {} }), b: request({ x: {} }) }));
    expect(content(two, { 'a/x': '1', 'b/x': '2' })).toBe('{"a":{"x":"1"},"b":{"x":"2"}}');
  });
  it('is complete with all required fields', () => {
    const question = read(ticket.inputRequests);
    expect(isComplete(question, { 'ask/urgent': 'true' })).toBe(false);
    expect(isComplete(question, { 'ask/ticket': 'NET-1' })).toBe(true);
  });
});
