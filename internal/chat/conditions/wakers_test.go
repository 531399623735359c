// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// reasonDocs finds the reasons of the API with what their comments say.
var reasonDocs = regexp.MustCompile(`((?:\t//[^\n]*\n)+)\tReason\w+ ConditionReason += "(\w+)"`)

// A chat that waits for something that nobody tells it of waits for good. Whoever adds a reason says who ends the wait.
func TestDesignDocumentsWakerOfEachWaitReason(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := read("../../../docs/explanation/design-decisions.md")
	_, table, found := strings.Cut(page, "## Who wakes a chat that waits\n")
	if !found {
		t.Fatal("the design does not say who wakes chats")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	waits := 0
	for _, found := range reasonDocs.FindAllStringSubmatch(read("../../../api/v1beta1/chat_conditions.go"), -1) {
		comment, reason := found[1], found[2]
		if !strings.Contains(comment, "Ready (Unknown)") {
			continue
		}
		waits++
		if !strings.Contains(table, "`"+reason+"`") {
			t.Errorf("nobody is said to wake a chat that waits because of %s", reason)
		}
	}
	if waits < 10 {
		t.Errorf("only %d reasons to wait were found", waits)
	}
}
