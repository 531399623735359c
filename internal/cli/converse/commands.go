// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"regexp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// command is what a person types in place of a message. argument describes what it takes, if it takes something; in
// brackets, if it does not need it.
type command struct{ name, argument, does string }

var commands = []command{
	{"model", "NAME", "have another ChatModelConfig answer"},
	{"mode", "Plan|Explore|none", "bound what the model may do"},
	{"effort", "LEVEL", "how much the model thinks"},
	{"compact", "", "replace what the model sees by a summary"},
	{"clear", "", "have the model see only later messages"},
	{"fork", "[NAME]", "copy the conversation into another chat"},
	{"help", "", "show this"},
	{"quit", "", "leave, as /exit and ctrl-D do"},
	{"exit", "", ""},
}

// takes reports whether the command takes an argument, or none if it is empty.
func (c command) takes(argument string) bool {
	return len(strings.Fields(argument)) < 2 &&
		(strings.HasPrefix(c.argument, "[") || (argument == "") == (c.argument == ""))
}

var slash = regexp.MustCompile(`(?s)^/([a-z-]+)(?:\s+(.*))?$`)

// ParseCommand reads what a person typed. The name is empty for a message. If the text is no valid command, complaint
// says why.
func ParseCommand(text string) (name, argument, complaint string) {
	words := slash.FindStringSubmatch(strings.TrimSpace(text))
	if words == nil || !strings.HasPrefix(text, "/") {
		return "", "", ""
	}
	name, argument = words[1], words[2]
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	switch {
	case i < 0:
		complaint = "there is no command /" + name + ": /help lists them; begin with a blank to send it as text"
	case !commands[i].takes(argument):
		complaint = strings.TrimSpace("type /" + name + " " + commands[i].argument)
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
		say(m, append(Help(), "[keys: "+strings.Join(typingKeys, ", ")+"]")...)
		return nil
	case "quit", "exit":
		return m.leave()
	}
	say(m, "[/"+name+" is being done]")
	return m.requests.addInOrder(func() outcome {
		lines, err := m.actions.Command(m.ctx, name, argument)
		for i := range lines {
			lines[i] = "[" + lines[i] + "]"
		}
		return outcome{words: lines, err: err}
	})
}
