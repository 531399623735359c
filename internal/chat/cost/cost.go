// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cost computes what calls of models cost. It is pure. Money is counted in millionths of a currency, each call
// rounded up once, so that a sum is never less than what was spent; currencies are never added to each other.
package cost

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"parley.dev/parley/api/v1beta1"
)

// unit is how many micro-units one unit of a currency has, and also the number of tokens that a price is for.
const unit = 1_000_000

// Of is what a call with that usage costs. It is nil if nothing has a price, if there is no usage, or if a price is no
// amount, which the API refuses.
func Of(pricing *v1beta1.Pricing, usage v1beta1.TokenUsage) *v1beta1.Cost {
	if pricing == nil || usage == (v1beta1.TokenUsage{}) {
		return nil
	}
	sum := new(big.Int)
	for _, item := range []struct {
		tokens int64
		price  v1beta1.Amount
	}{
		{usage.InputTokens, pricing.InputPerMillion},
		{usage.OutputTokens, pricing.OutputPerMillion}, // Reasoning is part of it.
		{usage.CacheReadTokens, or(pricing.CacheReadPerMillion, pricing.InputPerMillion)},
		{usage.CacheWriteTokens, or(pricing.CacheWritePerMillion, pricing.InputPerMillion)},
	} {
		price, ok := Micros(item.price)
		if !ok {
			return nil
		}
		sum.Add(sum, new(big.Int).Mul(big.NewInt(item.tokens), big.NewInt(price)))
	}
	sum.Add(sum, big.NewInt(unit-1)).Div(sum, big.NewInt(unit))
	micros := int64(math.MaxInt64)
	if sum.IsInt64() {
		micros = sum.Int64()
	}
	return &v1beta1.Cost{Currency: pricing.Currency, MicroUnits: micros}
}

func or(price, otherwise v1beta1.Amount) v1beta1.Amount {
	if price == "" {
		return otherwise
	}
	return price
}

// Micros is the amount in micro-units. It is false for what is no amount.
func Micros(amount v1beta1.Amount) (int64, bool) {
	whole, fraction, _ := strings.Cut(string(amount), ".")
	if whole == "" || len(whole) > 9 || len(fraction) > 6 {
		return 0, false
	}
	micros, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 6-len(fraction)), 10, 63)
	return int64(micros), err == nil // 15 digits fit.
}

// Add returns the costs with one more, which is added to those of its currency. There are at most MaxCurrencies: a cost
// in yet another one is left out.
func Add(costs []v1beta1.Cost, more v1beta1.Cost) []v1beta1.Cost {
	added := Total(costs, []v1beta1.Cost{more})
	return added[:min(len(added), max(len(costs), v1beta1.MaxCurrencies))]
}

// Total is both costs together, in however many currencies they are: unlike Add it leaves none out.
func Total(costs, more []v1beta1.Cost) []v1beta1.Cost {
	return merged(costs, more, func(a, b int64) int64 { return a + min(b, math.MaxInt64-a) })
}

// Newer is the newer one of two readings of costs that only grow: the larger amount of each currency.
func Newer(costs, others []v1beta1.Cost) []v1beta1.Cost {
	return merged(costs, others, func(a, b int64) int64 { return max(a, b) })
}

// merged has the currencies of both costs. The amounts of a currency that is in both are combined.
func merged(costs, others []v1beta1.Cost, combine func(a, b int64) int64) []v1beta1.Cost {
	costs = slices.Clone(costs)
	for _, c := range others {
		i := slices.IndexFunc(costs, func(of v1beta1.Cost) bool { return of.Currency == c.Currency })
		if i < 0 {
			costs = append(costs, c)
			continue
		}
		costs[i].MicroUnits = combine(costs[i].MicroUnits, c.MicroUnits)
	}
	return costs
}

// Sum is both costs together, as Add has it.
func Sum(costs, more []v1beta1.Cost) []v1beta1.Cost {
	for _, c := range more {
		costs = Add(costs, c)
	}
	return costs
}

// Spent is what was spent in a currency, in micro-units.
func Spent(costs []v1beta1.Cost, currency v1beta1.Currency) int64 {
	for _, c := range costs {
		if c.Currency == currency {
			return c.MicroUnits
		}
	}
	return 0
}

// String writes money as people do, such as "0.0042 USD".
func String(micros int64, currency v1beta1.Currency) string {
	fraction := fmt.Sprintf("%06d", micros%unit)
	cents, rest := fraction[:2], strings.TrimRight(fraction[2:], "0")
	return fmt.Sprintf("%d.%s%s %s", micros/unit, cents, rest, currency)
}
