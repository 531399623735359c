// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// served is a tool of a server.
type served struct{ name string }

func (s served) Definition() tools.Definition { return tools.Definition{Name: s.name} }
func (s served) Run(context.Context, tools.Call) (string, error) {
	return s.name + " ran", nil
}

// once are the traits of one whose calls must not be made twice.
var once = tools.Traits{AtMostOnce: true}

func callsOf(names ...string) (calls []v1alpha1.ToolCall) {
	for _, name := range names {
		calls = append(calls, v1alpha1.ToolCall{ID: name, Name: name, Input: "{}"})
	}
	return calls
}

func TestToolsThatAreAddedAreCalledLikeOthers(t *testing.T) {
	builtIn := tools.NewRegistry(served{"built_in"})
	both := builtIn.Plus([]tools.Tool{served{"s__a"}, served{"built_in"}}, func(name string) error {
		if name == "t__b" {
			return errors.New("its server cannot be used")
		}
		return nil
	})
	chat := &v1alpha1.Chat{}
	results := both.Execute(t.Context(), &tools.Batch{Chat: chat, Calls: callsOf("s__a", "t__b", "u__c")}, nil)
	if results[0].Output != "s__a ran" {
		t.Errorf("got %+v", results[0])
	}
	if !results[1].IsError || results[1].Output != "its server cannot be used" {
		t.Errorf("got %+v", results[1])
	}
	if !results[2].IsError || !strings.Contains(results[2].Output, "does not exist") {
		t.Errorf("got %+v", results[2])
	}
	if both.Has("s__a") || !both.Has("built_in") || len(builtIn.Suited(chat)) != 1 {
		t.Error("the tool that was added counts as built in")
	}
}

func TestARefusedCallNeverRan(t *testing.T) {
	all := tools.NewRegistry().Plus([]tools.Tool{with{once, served{"s__once"}}}, nil)
	batch := &tools.Batch{Chat: &v1alpha1.Chat{}, Calls: callsOf("s__once"), Again: true}
	batch.Calls[0].Input, batch.Calls[0].Refusal = "7", v1alpha1.RefusalInputInvalid
	if got := all.Execute(t.Context(), batch, nil)[0]; !got.IsError || !strings.Contains(got.Output, "but is a number") {
		t.Errorf("got %+v", got)
	}
}

func TestNonrepeatableCallIsNotRepeatedAfterEarlierAttempt(t *testing.T) {
	all := tools.NewRegistry(served{"twice"}).Plus([]tools.Tool{with{once, served{"s__once"}}}, nil)
	batch := &tools.Batch{Chat: &v1alpha1.Chat{}, Calls: callsOf("twice", "s__once")}
	for _, again := range []bool{false, true} {
		batch.Again = again
		results := all.Execute(t.Context(), batch, nil)
		if results[0].IsError || results[1].IsError != again {
			t.Errorf("again: %v, the results are %+v", again, results)
		}
		if again && !strings.Contains(results[1].Output, "may have run or not") {
			t.Errorf("the model reads %q", results[1].Output)
		}
	}
}
