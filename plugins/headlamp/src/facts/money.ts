// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

import { Cost } from './types';

/** A millionth of a currency is the unit of microUnits. */
const unit = 1000000;

/** What one cost reads like, as in kubectl chat: at least cents, no digit lost, such as "0.0042 USD". */
export function money({ microUnits, currency }: Cost): string {
  const fraction = String(microUnits % unit).padStart(6, '0');
  const rest = fraction.slice(2).replace(/0+$/, '');
  return `${Math.floor(microUnits / unit)}.${fraction.slice(0, 2)}${rest} ${currency}`;
}

/** Costs of several currencies; they are never added up. Empty while nothing had a price. */
export function costs(all: Cost[] = []): string {
  return all.map(money).join(', ');
}

/** Orders costs for a list: by currency, then by amount, since nothing says what one currency is worth in another. */
export function compareCosts([a]: Cost[] = [], [b]: Cost[] = []): number {
  const currencies = (a?.currency ?? '').localeCompare(b?.currency ?? '');
  return currencies || (a?.microUnits ?? 0) - (b?.microUnits ?? 0);
}
