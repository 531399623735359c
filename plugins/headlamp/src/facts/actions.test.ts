// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { chatNamed } from '../testdata';
import { actions } from './actions';

it.each([
  ['triage', ['Interrupt', 'Suspend']],
  ['triage-logs', ['Interrupt', 'Suspend']],
  ['failed', ['Suspend']],
  ['done', ['Resume']],
  ['new', ['Suspend']],
])('%s takes %j', (name, names) => {
  expect(actions(chatNamed(name)).map(a => a.name)).toEqual(names);
});

describe('an action writes', () => {
  it('the annotation with the version of the history', () => {
    const [interrupt] = actions(chatNamed('triage'));
    expect(interrupt.patch).toEqual({
      metadata: { annotations: { 'parley.dev/interrupt': 'headlamp-5' } },
    });
  });
  it.each([
    ['failed', true],
    ['done', false],
  ])('spec.suspend of %s: %s', (name, suspend) => {
    expect(actions(chatNamed(name))[0].patch).toEqual({ spec: { suspend } });
  });
});
