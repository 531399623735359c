// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/model/reference"
)

// priceOfReply is what each reply and each summary costs, in millionths of a dollar: a cent.
const priceOfReply = 10_000

// priced lets budgets in dollars count what the model costs.
func priced(s *v1beta1.ChatModelConfigSpec) {
	s.Pricing = &v1beta1.Pricing{Currency: "USD", InputPerMillion: "1", OutputPerMillion: "1"}
}

// budgetVerbs are what people do with budgets. A chat that a quota holds finds out only with its next step that
// another one has used its budget up, so there are no quotas then.
var budgetVerbs = map[string]verb{
	"budget": {
		able: func(c *reference.Chat, o operation) bool {
			return *managersFlag == 1 && o.arg(0) != "" && len(c.Quotas()) == 0 // One manager knows each cost at once.
		},
		model: func(c *reference.Chat, o operation) { c.SetBudget(budgetOf(o)) },
		real:  func(ctx context.Context, d *driver, o operation) error { return d.setBudget(ctx, budgetOf(o)) },
	},
}

// budgetOf is how many replies the budget pays for; 0: any number.
func budgetOf(o operation) int {
	if n := numberOf(o.arg(0)); n != reference.Unlimited {
		return n
	}
	return 0
}

func (d *driver) setBudget(ctx context.Context, replies int) error {
	budget := "null"
	if d.hasBudget = replies > 0; d.hasBudget {
		budget = fmt.Sprintf(`{"currency":"USD","amount":"%d.%02d"}`, replies/100, replies%100)
	}
	return d.patch(ctx, d.bareChat(), `{"spec":{"limits":{"budget":%s}}}`, budget)
}

// awaitRecord waits until the chat has recorded the sub-chat, whose cost then counts also after its deletion. Without a
// budget it waits until the chat has no record.
func (d *driver) awaitRecord(ctx context.Context) error {
	for {
		chat, sub := d.bareChat(), d.sub.bareChat()
		for _, c := range []*v1beta1.Chat{chat, sub} {
			if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
				return client.IgnoreNotFound(err)
			}
		}
		if isRecorded(sub, chat.Status.Internal.SubChatCosts) == d.hasBudget {
			return nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("waiting until the cost of the sub-chat is recorded: %w", ctx.Err())
		}
	}
}

// isRecorded reports whether the sub-chat is in the record. A manager that may be killed forgets what the record lacks.
func isRecorded(sub *v1beta1.Chat, record []v1beta1.SubChatCost) bool {
	return slices.ContainsFunc(record, func(entry v1beta1.SubChatCost) bool {
		return entry.UID == string(sub.UID) && (*lifeFlag == 0 || equality.Semantic.DeepEqual(entry.Cost, sub.Status.Cost))
	})
}
