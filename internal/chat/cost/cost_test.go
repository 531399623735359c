// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cost_test

import (
	"fmt"
	"math"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
)

func TestCostIsTokensTimesPricesRoundedUp(t *testing.T) {
	full := &v1beta1.Pricing{Currency: "USD", InputPerMillion: "3", OutputPerMillion: "15", CacheReadPerMillion: "0.30",
		CacheWritePerMillion: "3.75"}
	short := &v1beta1.Pricing{Currency: "EUR", InputPerMillion: "2", OutputPerMillion: "0"}
	cheap := &v1beta1.Pricing{Currency: "USD", InputPerMillion: "0.000001", OutputPerMillion: "0.000001"}
	for name, c := range map[string]struct {
		pricing *v1beta1.Pricing
		usage   v1beta1.TokenUsage
		want    int64
	}{
		"everything has its price": {full, v1beta1.TokenUsage{InputTokens: 1000, OutputTokens: 200,
			CacheReadTokens: 100_000, CacheWriteTokens: 2000}, 3000 + 3000 + 30_000 + 7500},
		"reasoning is part of the output":      {full, v1beta1.TokenUsage{OutputTokens: 200, ReasoningTokens: 150}, 3000},
		"the sum is rounded up, not its terms": {full, v1beta1.TokenUsage{CacheReadTokens: 1, CacheWriteTokens: 1}, 5},
		"a whole sum stays":                    {full, v1beta1.TokenUsage{InputTokens: 1}, 3},
		"the smallest price is not lost":       {cheap, v1beta1.TokenUsage{InputTokens: 1}, 1},
		"the cache costs as much as input": {short, v1beta1.TokenUsage{CacheReadTokens: 10, CacheWriteTokens: 5,
			OutputTokens: 9}, 30},
		"a number beyond all bounds stops": {&v1beta1.Pricing{Currency: "USD", InputPerMillion: "999999999.999999",
			OutputPerMillion: "0"}, v1beta1.TokenUsage{InputTokens: math.MaxInt64}, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			got := cost.Of(c.pricing, c.usage)
			if got == nil || got.MicroUnits != c.want || got.Currency != c.pricing.Currency {
				t.Errorf("got %+v, want %d", got, c.want)
			}
		})
	}
}

func TestWithoutPricesOrUsageThereIsNoCost(t *testing.T) {
	usage := v1beta1.TokenUsage{InputTokens: 5}
	if got := cost.Of(nil, usage); got != nil {
		t.Errorf("without prices: %+v", got)
	}
	if got := cost.Of(&v1beta1.Pricing{Currency: "USD", InputPerMillion: "1", OutputPerMillion: "1"},
		v1beta1.TokenUsage{}); got != nil {
		t.Errorf("without usage: %+v", got)
	}
	if got := cost.Of(&v1beta1.Pricing{Currency: "USD", InputPerMillion: "a lot", OutputPerMillion: "1"},
		usage); got != nil {
		t.Errorf("with a price that is none: %+v", got)
	}
}

func TestAmountsAreReadToTheMillionth(t *testing.T) {
	for amount, want := range map[v1beta1.Amount]int64{"0": 0, "3": 3_000_000, "0.30": 300_000, "3.75": 3_750_000,
		"0.000001": 1, "999999999.999999": 999_999_999_999_999} {
		if got, ok := cost.Micros(amount); !ok || got != want {
			t.Errorf("%s is %d, %v", amount, got, ok)
		}
	}
	for _, amount := range []v1beta1.Amount{"", "-1", "1e3", "1,5", "1.2.3", "0.0000001", "1234567890", "+1", " 1"} {
		if got, ok := cost.Micros(amount); ok {
			t.Errorf("%q counts as %d", amount, got)
		}
	}
}

func TestCurrenciesAreNeverAddedToEachOther(t *testing.T) {
	costs := cost.Add(nil, v1beta1.Cost{Currency: "USD", MicroUnits: 5})
	costs = cost.Add(costs, v1beta1.Cost{Currency: "EUR", MicroUnits: 7})
	before := costs
	costs = cost.Add(costs, v1beta1.Cost{Currency: "USD", MicroUnits: 1})
	if cost.Spent(costs, "USD") != 6 || cost.Spent(costs, "EUR") != 7 || cost.Spent(costs, "JPY") != 0 {
		t.Errorf("got %+v", costs)
	}
	if before[0].MicroUnits != 5 {
		t.Error("an earlier sum was changed")
	}
	costs = cost.Add(costs, v1beta1.Cost{Currency: "USD", MicroUnits: math.MaxInt64})
	if cost.Spent(costs, "USD") != math.MaxInt64 {
		t.Errorf("the sum went over: %+v", costs)
	}
	for i := range 20 {
		costs = cost.Add(costs, v1beta1.Cost{Currency: v1beta1.Currency(fmt.Sprintf("X%02d", i)), MicroUnits: 1})
	}
	if len(costs) != v1beta1.MaxCurrencies {
		t.Errorf("%d currencies", len(costs))
	}
	more := []v1beta1.Cost{{Currency: "EUR", MicroUnits: 1}, {Currency: "YEN", MicroUnits: 1}}
	total := cost.Total(costs, more)
	if len(total) != len(costs)+1 || cost.Spent(total, "EUR") != 8 || cost.Spent(costs, "EUR") != 7 {
		t.Errorf("the total is %+v of %+v", total, costs)
	}
}

func TestMoneyIsWrittenAsPeopleDo(t *testing.T) {
	for micros, want := range map[int64]string{0: "0.00 USD", 10_000: "0.01 USD", 1_500_000: "1.50 USD",
		12_345: "0.012345 USD", 2_000_010: "2.00001 USD"} {
		if got := cost.String(micros, "USD"); got != want {
			t.Errorf("%d is written %s, not %s", micros, got, want)
		}
	}
}
