// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fence names attempts. Whoever writes in the name of an attempt shows its fence, and what shows another fence
// than the chat's own is refused. The package depends on nothing, because the relay has fences and no Kubernetes.
package fence

import (
	"fmt"
	"regexp"
)

// Fence names one attempt at one step of one chat. It never comes back: the history's version grows with every commit,
// and the attempt with every try in between.
type Fence struct {
	// ChatUID is metadata.uid of the Chat.
	ChatUID string
	// HistoryVersion that the attempt builds on.
	HistoryVersion int64
	// Attempt number, from 1; 0 if no attempt is under way.
	Attempt int32
}

// String is "<chat UID>/<history version>/<attempt>", which is also the path of the attempt's parts in the relay's
// URLs.
func (f Fence) String() string {
	return fmt.Sprintf("%s/%d/%d", f.ChatUID, f.HistoryVersion, f.Attempt)
}

// Before reports whether the fence is of an earlier attempt of the same chat than the other one.
func (f Fence) Before(other Fence) bool {
	return f.ChatUID == other.ChatUID &&
		(f.HistoryVersion < other.HistoryVersion || f.HistoryVersion == other.HistoryVersion && f.Attempt < other.Attempt)
}

// ResultName is the name of the ChatMessage that answers the attempt. Two answers to one attempt have the same name, so
// that the API server takes one of them. config/admission and the validation of ChatMessage know its form, too.
func (f Fence) ResultName(chat string) string {
	return fmt.Sprintf("%s-%d-%d", chat, f.HistoryVersion, f.Attempt)
}

// resultForm is the form of ResultName.
var resultForm = regexp.MustCompile(`^(.+)-[0-9]+-[0-9]+$`)

// ChatOfResult is the name of the chat that a message of that name would answer; empty if it is no name of a result.
func ChatOfResult(name string) string {
	if form := resultForm.FindStringSubmatch(name); form != nil {
		return form[1]
	}
	return ""
}

// SummaryName is the name of the ChatMessage that sums up the turn whose last commit made that version of the history.
func SummaryName(chat string, version int64) string {
	return fmt.Sprintf("%s-%d-summary", chat, version)
}
