// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// ran is a turn whose last call has the output.
func ran(output string, exitCode string) []*v1beta1.ChatMessage {
	result := &v1beta1.ChatMessage{}
	result.Spec.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{
		Output: `{"output":` + strconv.Quote(output) + `,"exit_code":` + exitCode + `}`}}}
	return []*v1beta1.ChatMessage{{}, result, {}}
}

func TestCommandRunsOnceWithAllItsOutput(t *testing.T) {
	first := &question{chat: "c03", kind: command}
	second := &question{chat: "c03", number: 1, kind: background}
	last := &question{chat: "c03", number: 2, kind: audit}
	for name, c := range map[string]struct {
		question       *question
		output, status string
		says           string
	}{
		"whole":            {first, "10\n30\ndone: command question c03-0\n", "0", ""},
		"lost output":      {first, "10\n", "0", `its command wrote "10\n"`},
		"other output":     {first, "10\n30\ndone: command question c03-1\n", "0", "its command wrote"},
		"killed":           {second, "10\n", "null", "has not ended"},
		"each once":        {last, "command question c03-0\nbackground question c03-1\n", "0", ""},
		"one ran twice":    {last, "command question c03-0\ncommand question c03-0\n", "0", "that ran are"},
		"one did not run":  {last, "background question c03-1\n", "0", "that ran are"},
		"another question": {&question{kind: quick}, "", "0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := c.question.checkResult(ran(c.output, c.status), []*question{first, second, last}); err != nil {
				got = err.Error()
			}
			if c.says == "" {
				check.Equal(t, "problem", "", got)
			}
			check.Contains(t, got, c.says)
		})
	}
}

func TestOnlyCommandsAcrossAMoveAreCounted(t *testing.T) {
	u := &upgrade{done: []move{{component: "manager", began: time.Unix(20, 0)}}}
	questions := []*question{
		{kind: command, began: time.Unix(10, 0), ended: time.Unix(30, 0)},
		{kind: background, began: time.Unix(21, 0), ended: time.Unix(41, 0)},
		{kind: quick},
	}
	check.Equal(t, "commands while the manager was moved", 1, u.commandsDuring("manager", questions))
	check.Equal(t, "commands while the gateway was moved", 0, u.commandsDuring("gateway", questions))
}
