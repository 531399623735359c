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

func TestWatchesListSenderOfEachWait(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, list, found := strings.Cut(read("../../../controllers/chat/watches.go"), "\n// SetupWithManager ")
	if !found {
		t.Fatal("the controller does not list who wakes chats")
	}
	list, _, _ = strings.Cut(list, "\nfunc ")
	waits := 0
	for _, found := range reasonDocs.FindAllStringSubmatch(read("../../../api/v1beta1/chat_conditions.go"), -1) {
		comment, reason := found[1], found[2]
		if !strings.Contains(comment, "Ready (Unknown)") {
			continue
		}
		waits++
		if !regexp.MustCompile(`\b` + reason + `\b`).MatchString(list) {
			t.Errorf("no one is listed to wake a chat that waits because of %s", reason)
		}
	}
	if waits < 10 {
		t.Errorf("only %d reasons to wait were found", waits)
	}
}
