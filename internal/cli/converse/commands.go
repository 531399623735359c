// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"regexp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"parley.dev/parley/api/v1beta1"
)

// command is what a person types in place of a message. argument describes what it takes, if it takes something; in
// brackets, if it does not need it. values are all that it takes, in any case; nil: every word.
type command struct {
	name, argument, does string
	values               []string
}

// DefaultValue is the argument of a command that takes a setting out of the chat.
const DefaultValue = "default"

var (
	modes   = []string{string(v1beta1.ModePlan), string(v1beta1.ModeExplore), DefaultValue}
	efforts = []string{string(v1beta1.EffortNone), string(v1beta1.EffortMinimal), string(v1beta1.EffortLow),
		string(v1beta1.EffortMedium), string(v1beta1.EffortHigh), string(v1beta1.EffortXHigh), string(v1beta1.EffortMax),
		DefaultValue}
)

var commands = []command{
	{"model", "[NAME]", "have that ChatModelConfig answer; without NAME, list them", nil},
	{"mode", choice(modes), "bound what the model may do", modes},
	{"effort", choice(efforts), "how much the model thinks", efforts},
	{"compact", "", "replace what the model sees by a summary", nil},
	{"clear", "", "have the model see only later messages", nil},
	{"fork", "[NAME]", "copy the conversation into another chat", nil},
	{"help", "", "show this", nil},
	{"quit", "", "leave, as /exit and ctrl-D do", nil},
	{"exit", "", "", nil},
}

// keys are those of the screen, as /help describes them.
var keys = []string{
	"Enter: send; Alt-Enter or ctrl-J: begin a new line; Up, Down: texts that you have sent",
	"Tab: select with Up and Down, until Esc: Enter opens a call or reasoning; a approves, d denies or r answers a " +
		"waiting call; e edits or withdraws a queued message; other letters are text",
	"PgUp, PgDn, mouse wheel: scroll",
	"ctrl-C: remove what you typed; without a text, or Esc Esc: interrupt",
	"ctrl-L: switch to another chat",
	"ctrl-C ctrl-C, or ctrl-D in an empty line: leave",
	"The mouse scrolls. To select text with it, hold Shift in most terminals, Option on macOS",
}

// choice describes values as an argument.
func choice(values []string) string { return strings.ToLower(strings.Join(values, "|")) }

// takes reports whether the command takes an argument, or none if it is empty.
func (c command) takes(argument string) bool {
	return len(strings.Fields(argument)) < 2 && (c.values == nil || c.value(argument) != "") &&
		(strings.HasPrefix(c.argument, "[") || (argument == "") == (c.argument == ""))
}

// value is the argument as the API spells it; empty if it has no such value.
func (c command) value(argument string) string {
	for _, value := range c.values {
		if strings.EqualFold(value, argument) {
			return value
		}
	}
	return ""
}

var slash = regexp.MustCompile(`(?is)^/([a-z-]+)(?:\s+(.*))?$`)

// ParseCommand reads what a person typed. The name is empty for a message. If the text is no valid command, complaint
// says why.
func ParseCommand(text string) (name, argument, complaint string) {
	words := slash.FindStringSubmatch(strings.TrimSpace(text))
	if words == nil || !strings.HasPrefix(text, "/") {
		return "", "", ""
	}
	name, argument = strings.ToLower(words[1]), words[2]
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	switch {
	case i < 0:
		complaint = "there is no command /" + name + ": /help lists them; begin with a blank to send it as text"
	case !commands[i].takes(argument):
		complaint = strings.TrimSpace("type /" + name + " " + commands[i].argument)
	case commands[i].values != nil:
		argument = commands[i].value(argument)
	}
	return name, argument, complaint
}

// Help has a line for each command.
func Help() (lines []string) {
	for _, c := range commands {
		if c.does != "" {
			lines = append(lines, strings.TrimSpace("/"+c.name+" "+c.argument)+": "+c.does)
		}
	}
	return lines
}

// command does what a command says.
func (m *model) command(name, argument string) tea.Cmd {
	m.pane.scrolled = false // Long answers are at the end.
	switch name {
	case "help":
		say(m, append(Help(), keys...)...)
		return nil
	case "quit", "exit":
		return m.leave()
	}
	say(m, "[/"+name+" is being done]")
	return m.requests.addInOrder(func() outcome {
		lines, err := m.actions.Command(m.ctx, name, argument)
		if name == "fork" && err == nil {
			lines = append(lines, "or switch here: ctrl-L lists the chats")
		}
		for i := range lines {
			lines[i] = "[" + lines[i] + "]"
		}
		return outcome{words: lines, err: err}
	})
}
