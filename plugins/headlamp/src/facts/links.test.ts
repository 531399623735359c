// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { messagePath, webAddress } from './links';

describe('addresses in texts of others', () => {
  it.each([
    ['https://kubernetes.io/docs/', 'https://kubernetes.io/docs/'],
    ['http://wiki', 'http://wiki/'],
    ['javascript:alert(1)', undefined],
    ['JavaScript:alert(1)', undefined],
    ['data:text/html,<b>', undefined],
    ['/apis', undefined],
    ['', undefined],
  ])('%s', (text, address) => {
    expect(webAddress(text)).toBe(address);
  });
});

describe('the path of a message', () => {
  it('has namespace and name', () => {
    const path = '/apis/parley.dev/v1beta1/namespaces/demo/chatmessages/triage.s1-x';
    expect(messagePath('demo', 'triage.s1-x')).toBe(path);
  });
  it.each(['', '..', '../secrets/key', 'a/b', 'a?watch=1', 'a%2fb', 'A', 'a..b'])(
    'is refused for %s',
    name => {
      expect(() => messagePath('demo', name)).toThrow('is no name of an object');
    }
  );
});
