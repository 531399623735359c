// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
)

func TestCallIsMadeOnlyWithinAllBudgets(t *testing.T) {
	euros := func(micros int64) []v1beta1.Cost { return []v1beta1.Cost{{Currency: "EUR", MicroUnits: micros}} }
	own := &v1beta1.Budget{Amount: "1", Currency: "EUR"}
	const reached, noPrice = v1beta1.ErrorBudgetReached, v1beta1.ErrorModelPriceMissing
	above := func(currency v1beta1.Currency, others int64) []tree.BudgetAbove {
		return []tree.BudgetAbove{{Chat: "root", Budget: &v1beta1.Budget{Amount: "2", Currency: currency},
			Others: []v1beta1.Cost{{Currency: currency, MicroUnits: others}}}}
	}
	for name, c := range map[string]struct {
		own      *v1beta1.Budget
		below    []v1beta1.Cost
		above    []tree.BudgetAbove
		currency v1beta1.Currency
		spent    int64
		want     v1beta1.ErrorReason
		says     string
	}{
		"no budget":              {nil, nil, nil, "", 5_000_000, "", ""},
		"room":                   {own, nil, nil, "EUR", 999_999, "", ""},
		"reached":                {own, nil, nil, "EUR", 1_000_000, reached, "The chat has cost 1.00 EUR, and"},
		"prices in another":      {own, nil, nil, "USD", 0, noPrice, "ChatModelConfig m has no prices"},
		"no prices":              {own, nil, nil, "", 0, noPrice, "The chat has a budget in EUR"},
		"reached without prices": {own, nil, nil, "", 1_000_000, reached, "its budget is 1 EUR"},
		"reached by sub-chats":   {own, euros(1_000_000), nil, "EUR", 0, reached, "and its sub-chats have"},
		"room above":             {own, nil, above("EUR", 1_500_000), "EUR", 499_999, "", ""},
		"reached above":          {nil, nil, above("EUR", 1_500_000), "EUR", 500_000, reached, "of chat root"},
		"another currency above": {own, nil, above("USD", 0), "EUR", 0, noPrice, "Chat root has a budget"},
		"more than can be counted": {own, euros(math.MaxInt64), nil, "EUR", math.MaxInt64, reached,
			"9223372036854.775807"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Refuse(Effective(c.own, c.below, c.above), euros(c.spent), Call{Config: "m", Currency: c.currency})
			if (got == nil) != (c.want == "") || got != nil && (got.Reason != c.want || !strings.Contains(got.Text(), c.says)) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAmountThatIsNoNumberAllowsNothing(t *testing.T) {
	all := Effective(&v1beta1.Budget{Amount: "much", Currency: "EUR"}, nil, nil)
	if got := Refuse(all, nil, Call{Currency: "EUR"}); got == nil {
		t.Error("the call is made")
	}
}
