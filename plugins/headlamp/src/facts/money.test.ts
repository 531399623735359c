// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { chatNamed } from '../testdata';
import { compareCosts, costs, money } from './money';

describe('money reads as in kubectl chat', () => {
  it.each([
    [0, '0.00 USD'],
    [4200, '0.0042 USD'],
    [10000, '0.01 USD'],
    [1, '0.000001 USD'],
    [1000000, '1.00 USD'],
    [12345678, '12.345678 USD'],
  ])('%i millionths', (microUnits, text) => {
    expect(money({ microUnits, currency: 'USD' })).toBe(text);
  });
});

describe('costs of several currencies', () => {
  it('stand beside each other', () => {
    expect(costs(chatNamed('triage').status?.cost)).toBe('0.01042 USD, 2.50 EUR');
  });
  it('are empty while nothing had a price', () => {
    expect(costs(chatNamed('new').status?.cost)).toBe('');
  });
});

describe('costs in a list', () => {
  const usd = (microUnits: number) => [{ currency: 'USD', microUnits }];
  it('stand by currency and amount, those without a price first', () => {
    const sorted = [usd(10000000), usd(2000000), [{ currency: 'EUR', microUnits: 3 }], []].sort(
      compareCosts
    );
    expect(sorted.map(costs)).toEqual(['', '0.000003 EUR', '2.00 USD', '10.00 USD']);
  });
});
